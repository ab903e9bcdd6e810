"""The shell on a remote model that fails: what was paid for is shown, and the rest goes on."""

import json
from pathlib import Path

import pytest
from PIL import Image

from cli.conftest import Run

SERVICES = '''
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
    assert "of 3 that were right to begin with" in shell.out
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert [file["reason"] for file in document["unreadable"]] == [line]
    assert [row["name"][-1] for row in document["images"]] == ["b", "c", "d"]
    assert all(row["forwards"] == 12 for row in document["images"])


def test_what_was_done_before_the_service_broke_down_is_shown(run: Run, tmp_path: Path) -> None:
    shell = run("attack", "set", "--model", "cli_test_services:tired", *FEW)
    assert shell.status == 0
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    rows = document["images"]
    assert [row["forwards"] for row in rows] == [12, 8, 0, 0]
    assert "did not answer" not in rows[0]["remark"]
    assert all("did not answer" in row["remark"] for row in rows[1:])
    assert [row["clean"]["confidence"] is None for row in rows] == [False, False, True, True]
    assert shell.out.count("no answer") == 5  # before and after, but for the second's before


def test_a_comparison_goes_on_too(run: Run) -> None:
    attacks = ("--attacks", "sparse_rs", "--option", "sparse_rs.queries=12")
    judged = ("--judge", "cli_test_services:tired")
    shell = run("compare", "set", "--model", "cli_test_services:picky", *attacks, *judged)
    assert shell.status == 2
    assert "b.png" not in shell.err
    assert shell.out.count("sparse_rs") == 3


def test_a_service_that_is_down_is_one_line(run: Run) -> None:
    shell = run("attack", "set", "--model", "cli_test_services:down", *FEW)
    assert shell.status == 2
    assert shell.out == ""
    assert shell.err.count("\n") == 1
    assert shell.err.startswith("pinprick: service did not answer in 3 tries (the last: timed out)")
