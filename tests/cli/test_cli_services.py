"""The shell on a remote model that fails: what was paid for is shown, and the rest goes on."""

import json
from pathlib import Path

import pytest
from PIL import Image

from cli.conftest import Run
from pinprick.result_file import load_result

SERVICES = '''
import time
from functools import partial

import cli_test_models
import torch

from pinprick import score_model

colours = cli_test_models.colours()


def _service(fails):
    def ask(images):
        if fails(images):
            raise TimeoutError("timed out")
        with torch.no_grad():
            return colours(images)

    return score_model(
        ask, name="service", prepare=colours.prepare, retries=1, backoff=0.0, remember=0
    )


def picky():
    """Takes no picture with much blue in it."""
    return _service(lambda images: bool((images[:, 2].mean(dim=(1, 2)) > 0.9).any()))


def tired(after=30):
    """Answers for so many images, then never again."""
    asked = []

    def fails(images):
        asked.append(images)
        return sum(map(len, asked)) > after

    return _service(fails)


def down():
    return tired(after=0)


def __getattr__(name):
    """tired_35 and the like."""
    if not name.startswith("tired_"):
        raise AttributeError(name)
    return partial(tired, int(name.removeprefix("tired_")))


def brittle():
    """Has a bug of its own that shows late."""
    asked = []

    def ask(images):
        asked.append(images)
        if sum(map(len, asked)) > 30:
            raise ZeroDivisionError("a bug")
        with torch.no_grad():
            return colours(images)

    return score_model(ask, name="brittle", prepare=colours.prepare, remember=0)


def hanging():
    """Never comes back after a while."""
    asked = []

    def ask(images):
        asked.append(images)
        if sum(map(len, asked)) > 30:
            time.sleep(1)  # long enough to be given up
        with torch.no_grad():
            return colours(images)

    return score_model(
        ask, name="service", prepare=colours.prepare, retries=0, timeout=0.05, remember=0
    )
'''
FEW = ("--attack", "sparse_rs", "--option", "k=2", "--option", "queries=12", "--figures", "0")


@pytest.fixture(autouse=True)
def pictures(tmp_path: Path) -> None:
    (tmp_path / "cli_test_services.py").write_text(SERVICES)
    (tmp_path / "set").mkdir()
    colours = {"a": (150, 100, 250), "b": (180, 60, 50), "c": (190, 60, 50), "d": (90, 200, 30)}
    for name, colour in colours.items():
        Image.new("RGB", (8, 8), colour).save(tmp_path / "set" / f"{name}.png")
    lines = [f"{tmp_path}/set/{name}.png,{i}" for name, i in zip("abcd", (2, 0, 0, 1), strict=True)]
    (tmp_path / "list.csv").write_text("\n".join(["file,label", *lines]))


@pytest.mark.parametrize("given", [("set",), ("--data", "csv:list.csv")])
def test_a_picture_that_the_service_does_not_take_is_set_aside(
    run: Run, tmp_path: Path, given: tuple[str, ...]
) -> None:
    shell = run("attack", *given, "--model", "cli_test_services:picky", *FEW)
    assert shell.status == 2
    line = "service did not answer in 3 tries (the last: timed out)"
    assert "a.png" in shell.err or "list.csv" in shell.err
    assert line in shell.err
    assert "of 3 images that were classified correctly" in shell.out
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert [file["reason"] for file in document["unreadable"]] == [line]
    assert [row["name"][-1] for row in document["images"]] == ["b", "c", "d"]
    assert all(row["forwards"] == 12 for row in document["images"])


def test_what_was_done_before_the_service_broke_down_is_shown(run: Run, tmp_path: Path) -> None:
    shell = run("attack", "set", "--model", "cli_test_services:tired", *FEW)
    assert shell.status == 2
    last = shell.err.splitlines()[-1]
    assert last.startswith("pinprick: service did not answer 12 of 42 questions; ")
    assert document_sent(tmp_path)["unanswered"] == 12
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    rows = document["images"]
    assert [row["forwards"] for row in rows] == [12, 8, 0, 0]
    assert "did not answer" not in rows[0]["remark"]
    assert all("did not answer" in row["remark"] for row in rows[1:])
    assert [row["clean"]["confidence"] is None for row in rows] == [False, False, True, True]
    assert shell.out.count("no answer") == 5  # before and after, but for the second's before


def document_sent(tmp_path: Path) -> dict[str, int]:
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    sent: dict[str, int] = document["sent"]
    return sent


def test_a_service_that_hangs_half_way_is_the_same(run: Run, tmp_path: Path) -> None:
    shell = run("attack", "set", "--model", "cli_test_services:hanging", *FEW)
    assert shell.status == 2
    assert shell.err.splitlines()[-1].startswith("pinprick: service did not answer 12 of ")
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert [row["forwards"] for row in document["images"]] == [12, 8, 0, 0]
    assert "no answer within 0.05 s" in document["images"][1]["remark"]


@pytest.mark.parametrize(
    ("answered", "last"),
    [
        (35, "pinprick: service did not answer 2 of 37 questions; "),
        (37, "pinprick: service did not answer in 2 tries (the last: timed out)"),
    ],
)
def test_what_was_done_before_the_run_ended_is_shown_and_saved(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answered: int, last: str
) -> None:
    """The service breaks down where the second half of the images is read, or just after that."""
    monkeypatch.setattr("pinprick.jobs.pictures._ELEMENTS", 2 * 3 * 224 * 224)
    given = ("--data", "csv:list.csv", "--save", "saved.safetensors")
    shell = run("attack", *given, "--model", f"cli_test_services:tired_{answered}", *FEW)
    assert shell.status == 2
    assert shell.err.splitlines()[-1].startswith(last)
    assert "of 2 images that were classified correctly" in shell.out
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert [row["forwards"] for row in document["images"]] == [12, 12]
    assert len(load_result(tmp_path / "saved.safetensors")) == 2


def test_an_error_of_the_function_loses_nothing_either(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(
            "attack",
            "set",
            "--save",
            "saved.safetensors",
            "--model",
            "cli_test_services:brittle",
            *FEW,
        )
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert [row["forwards"] for row in document["images"]] == [12]
    assert len(load_result(tmp_path / "saved.safetensors")) == 1


def test_a_comparison_shows_the_attacks_that_were_done(run: Run, tmp_path: Path) -> None:
    attacks = ("--attacks", "sparse_rs,brusle", "--option", "sparse_rs.queries=6")
    shell = run("compare", "set", "--model", "cli_test_services:tired_36", *attacks)
    assert shell.status == 2
    assert shell.err.splitlines()[-1].startswith("pinprick: service did not answer in ")
    assert shell.out.partition("Fooling rate")[0].count("sparse_rs, ") == 4
    assert "brusle" not in shell.out
    document = json.loads((tmp_path / "pinprick-out" / "compare.json").read_text())
    assert [len(row["attacks"]) for row in document["images"]] == [1] * 4


def test_pictures_that_were_explained_are_shown(run: Run, tmp_path: Path) -> None:
    shell = run("explain", "set", "--model", "cli_test_services:tired_100", *FEW)
    assert shell.status == 2
    assert "service did not answer" in shell.err.splitlines()[-1]
    document = json.loads((tmp_path / "pinprick-out" / "explanation.json").read_text())
    assert 0 < len(document["images"]) < 4


def test_a_comparison_goes_on_too(run: Run) -> None:
    attacks = ("--attacks", "sparse_rs", "--option", "sparse_rs.queries=12")
    judged = ("--judge", "cli_test_services:tired")
    shell = run("compare", "set", "--model", "cli_test_services:picky", *attacks, *judged)
    assert shell.status == 2
    assert "b.png" not in shell.err
    assert shell.out.partition("Fooling rate")[0].count("sparse_rs, ") == 3


def test_a_service_that_is_down_is_one_line(run: Run) -> None:
    shell = run("attack", "set", "--model", "cli_test_services:down", *FEW)
    assert shell.status == 2
    assert shell.out == ""
    assert shell.err.count("\n") == 1
    assert shell.err.startswith("pinprick: service did not answer in 3 tries (the last: timed out)")
