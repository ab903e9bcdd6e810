"""``pinprick explain RESULT`` explains what ``attack --save`` wrote, without attacking again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from cli.conftest import Run
from pinprick import load_result, save_result

MODEL = ("--model", "cli_test_models:colours")
PLAIN = ("--layer", "none", "--figures", "0")
SAVED = Path("found.safetensors")


@pytest.fixture
def pictures(picture: Path, tmp_path: Path) -> list[Path]:
    Image.new("RGB", (8, 8), (50, 100, 150)).save(tmp_path / "sea.png")
    return [picture, tmp_path / "sea.png"]


@pytest.fixture
def saved(run: Run, pictures: list[Path]) -> Path:
    shell = run("attack", *pictures, *MODEL, "--attack", "greedy", "--save", SAVED)
    assert shell.status == 0
    return SAVED


@pytest.fixture
def no_attack(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pinprick.jobs.attack_group.attack_batches", lambda *_, **__: pytest.fail("attacked")
    )


def read(folder: str = "pinprick-out") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((Path(folder) / "explanation.json").read_text())
    return document


def test_gives_what_attacking_and_explaining_gives(
    run: Run, pictures: list[Path], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("explain", *pictures, *MODEL, "--attack", "greedy", *PLAIN)
    expected = read()
    monkeypatch.setattr(
        "pinprick.jobs.attack_group.attack_batches", lambda *_, **__: pytest.fail("attacked")
    )
    shell = run("explain", saved, *pictures, *MODEL, *PLAIN)
    assert shell.status == 0
    found = read()
    assert found["result"] == str(saved)
    assert (found["attack"], found["unit"]) == (expected["attack"], "pixels")
    assert shell.out.splitlines()[0] == whole.out.splitlines()[0] == "Greedy pixels on colours"
    for one, other in zip(found["images"], expected["images"], strict=True):
        assert one["label_from"] == "result"
        for row in (one, other):
            del row["seconds"], row["label_from"]
        assert one == other


@pytest.mark.usefixtures("no_attack")
def test_without_pictures_images_are_named_by_their_ids(run: Run, saved: Path) -> None:
    assert run("explain", saved, *MODEL, "--layer", "none").status == 0
    assert [image["name"] for image in read()["images"]] == ["image-0", "image-1"]
    assert Path("pinprick-out/image-1-explained.png").exists()


@pytest.mark.usefixtures("no_attack")
def test_some_of_the_pictures_will_do(run: Run, saved: Path, pictures: list[Path]) -> None:
    assert run("explain", saved, pictures[0], *MODEL, *PLAIN).status == 0
    assert [image["name"] for image in read()["images"]] == ["brick"]


@pytest.mark.usefixtures("no_attack")
def test_the_model_in_the_file_is_the_default(run: Run, saved: Path) -> None:
    assert load_result(saved).model_from == "cli_test_models:colours"
    assert run("explain", saved, *PLAIN).status == 0


@pytest.mark.usefixtures("no_attack")
def test_a_model_that_cannot_be_loaded_by_its_name_must_be_given(run: Run, saved: Path) -> None:
    save_result(replace(load_result(saved), model_from=""), saved)
    shell = run("explain", saved, *PLAIN)
    assert shell.status == 2
    assert shell.err == (
        f"pinprick: {saved} is of the model 'colours', which cannot be loaded by that name; "
        "give it with --model\n"
    )


@pytest.mark.usefixtures("no_attack")
@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("fragile", "fragile is not the model of found.safetensors, which names 'colours': its"),
        ("thousand", "it has 1000 classes, the result 3"),
        ("small", "small does not take images of found.safetensors, (3, 8, 8)"),
    ],
)
def test_another_model_is_refused_in_one_line(run: Run, saved: Path, model: str, line: str) -> None:
    shell = run("explain", saved, "--model", f"cli_test_models:{model}", *PLAIN)
    assert (shell.status, shell.out) == (2, "")
    assert line in shell.err
    assert shell.err.count("\n") == 1


@pytest.mark.usefixtures("no_attack")
def test_other_pictures_are_refused_in_one_line(
    run: Run, saved: Path, pictures: list[Path]
) -> None:
    shell = run("explain", saved, *reversed(pictures), *MODEL, *PLAIN)
    assert (shell.status, shell.out) == (2, "")
    assert "sea is not the picture that was saved in found.safetensors" in shell.err
    shell = run("explain", saved, *pictures, pictures[0], *MODEL, *PLAIN)
    assert "found.safetensors has 2 images, but not" in shell.err
    assert shell.err.count("\n") == 1


@pytest.mark.usefixtures("no_attack")
@pytest.mark.parametrize("given", ["--attack=greedy", "--max-forwards=3", "--batch-size=1"])
def test_options_of_an_attack_are_refused(run: Run, saved: Path, given: str) -> None:
    shell = run("explain", saved, *MODEL, given)
    assert shell.status == 2
    assert shell.err == (
        f"pinprick: {saved} is explained as it is, without an attack; "
        f"leave {given.partition('=')[0]} out\n"
    )


def test_what_is_no_result_is_one_line(run: Run, tmp_path: Path) -> None:
    save_file({"images": torch.zeros(1)}, tmp_path / "other.safetensors")
    for name, line in (
        ("none.safetensors", "there is no file none.safetensors"),
        ("other.safetensors", "other.safetensors is not a result saved by pinprick"),
    ):
        shell = run("explain", name, *MODEL)
        assert shell.status == 2
        assert line in shell.err


def test_a_result_is_known_by_what_it_holds(run: Run, saved: Path) -> None:
    other = saved.rename("found.bin")
    assert run("explain", other, *MODEL, *PLAIN).status == 0
    two = run("explain", other, "more.safetensors", *MODEL)
    assert "explain takes one saved result, got found.bin, more.safetensors" in two.err
