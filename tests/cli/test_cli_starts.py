"""``--save`` and ``--start``: an attack of the shell goes on from another, or from the set."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cli.conftest import Run
from pinprick import load_result

SERVICE = """
import cli_test_models

from pinprick import Classifier


def tops():
    \"\"\"Gives the top class alone.\"\"\"
    net = cli_test_models.colours()
    return Classifier(net.net, classes=net.classes, size=(8, 8), access="labels", name="tops")
"""
COLOURS = {"red": (150, 100, 50), "green": (90, 160, 30), "blue": (20, 60, 200)}
SET = "tensors:colours.safetensors"
OWN = ("--model", "cli_test_models:colours", "--figures", "0", "--quiet")
TOPS = ("--model", "cli_test_tops:tops", "--figures", "0", "--quiet")
BRIEF = ("--attack", "sparse_rs", "--option", "k=64", "--option", "queries=5")


@pytest.fixture(autouse=True)
def colours(tmp_path: Path) -> None:
    (tmp_path / "cli_test_tops.py").write_text(SERVICE)
    images = [
        torch.tensor([value + 3 * turn for value in colour], dtype=torch.uint8)
        for turn in range(3)
        for colour in COLOURS.values()
    ]
    tensors = {
        "images": torch.stack(images).view(9, 3, 1, 1).repeat(1, 1, 8, 8),
        "labels": torch.tensor([0, 1, 2] * 3),
    }
    save_file(tensors, tmp_path / "colours.safetensors", {"classes": json.dumps(list(COLOURS))})


def test_an_attack_begins_where_another_ended(run: Run, tmp_path: Path) -> None:
    greedy = ("--attack", "greedy", "--save", "own.safetensors")
    assert run("attack", "--data", SET, *OWN, *greedy).status == 0
    own = load_result(tmp_path / "own.safetensors")
    assert len(own) == 9
    assert own.success.all()
    shell = run("attack", "--data", f"{SET}[2:7]", *OWN, *BRIEF, "--start", "own.safetensors")
    assert shell.status == 0
    spent = int(own.forwards[2:7].sum()), int(own.backwards[2:7].sum())
    made = f"started from the result of greedy on colours; its {spent[0]} + {spent[1]} passes"
    assert made in shell.out
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert document["attack"]["started_from"]["name"] == "greedy"
    rows = document["images"]
    assert [row["forwards"] for row in rows] == [1] * 5  # the start fools as it is
    assert [row["l0_pixels"] for row in rows] == own.l0_pixels[2:7].tolist()
    assert [row["start"] for row in rows] == [
        [int(one.forwards), int(one.backwards)]
        for one in (own[torch.tensor([i])] for i in range(2, 7))
    ]


def test_without_a_start_nothing_is_said_of_one(run: Run, tmp_path: Path) -> None:
    shell = run("attack", "--data", f"{SET}[0:1]", *OWN, *BRIEF)
    assert "begun at" not in shell.out
    document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
    assert "started_from" not in document["attack"]
    assert document["images"][0]["start"] is None


@pytest.mark.parametrize("attack", ["sparse_evo", "hopskipjump"])
def test_a_target_is_reached_by_classes_alone_from_an_image_of_the_set(
    run: Run, tmp_path: Path, attack: str
) -> None:
    asked = ("attack", "--data", f"{SET}[0:1]", *TOPS, "--attack", attack, "--target", "blue")
    few = ("--option", "queries=1")

    def first(*more: str) -> dict[str, object]:
        assert run(*asked, *few, *more).status == 0
        document = json.loads((tmp_path / "pinprick-out" / "result.json").read_text())
        row: dict[str, object] = document["images"][0]
        return row

    assert not first()["success"]
    row = first("--start", "data")
    assert row["success"]
    assert row["forwards"] == 1
    assert row["start"] == [0, 0]


def test_each_image_draws_its_own_and_the_same_again(run: Run, tmp_path: Path) -> None:
    asked = ("attack", "--data", f"{SET}[class=red]", *TOPS, "--attack", "hopskipjump")
    begun = ("--option", "queries=1", "--target", "blue", "--start", "data")
    path = tmp_path / "pinprick-out" / "result.json"

    def distances(*more: str) -> list[float]:
        assert run(*asked, *begun, *more).status == 0
        return [row["l2"] for row in json.loads(path.read_text())["images"]]

    assert distances() == distances()
    assert len({tuple(distances("--seed", str(seed))) for seed in range(4)}) > 1


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (("--start", "none.safetensors"), "there is no file none.safetensors"),
        (("--start", "colours.safetensors"), "colours.safetensors is not a result saved by"),
        (("--start", "data"), "--start data takes images of the class of --target from the set"),
        (("--start", "own.safetensors"), "has 2 images, but not colours-2; it must be of the same"),
        (("--save", "none/own.safetensors"), "cannot write none/own.safetensors: give --save a"),
    ],
)
def test_what_cannot_be_a_start_is_one_line(run: Run, more: tuple[str, ...], line: str) -> None:
    greedy = ("--attack", "greedy", "--save", "own.safetensors")
    assert run("attack", "--data", f"{SET}[0:2]", *OWN, *greedy).status == 0
    shell = run("attack", "--data", f"{SET}[2:4]", *OWN, *BRIEF, *more)
    assert shell.status == 2
    assert shell.err.count("\n") == 1
    assert line in shell.err


def test_a_class_that_the_set_does_not_have_is_said(run: Run, tmp_path: Path) -> None:
    tensors = {"images": torch.full((1, 3, 8, 8), 9, dtype=torch.uint8), "labels": torch.zeros(1)}
    tensors["labels"] = tensors["labels"].long()
    save_file(tensors, tmp_path / "one.safetensors", {"classes": json.dumps(list(COLOURS))})
    asked = ("--data", "tensors:one.safetensors", *TOPS, "--attack", "sparse_evo")
    shell = run("attack", *asked, "--target", "blue", "--start", "data")
    assert shell.status == 2
    assert "is labelled blue" in shell.err
