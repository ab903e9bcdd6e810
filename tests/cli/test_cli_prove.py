"""``pinprick prove RESULT`` says how few changes would have done."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from cli.conftest import Run
from pinprick import load_model, load_result, save_result
from pinprick.bounds.exact import prove
from pinprick.bounds.proof import Proof

MODEL = ("--model", "cli_test_models:colours")
SAVED = Path("found.safetensors")


@pytest.fixture
def saved(run: Run, picture: Path) -> Path:
    attack = ("--attack", "greedy", "--save", SAVED, "--label", "red")
    assert run("attack", picture, *MODEL, *attack).status == 0
    return SAVED


def waste(path: Path) -> None:
    """Change all of the image, so that the attack is far from the optimum."""
    result = load_result(path)
    adv = torch.zeros_like(result.images)
    adv[:, 2] = 1.0  # blue
    with torch.no_grad():
        logits = load_model("cli_test_models:colours")(adv)
    save_result(replace(result, adversarial=adv, adversarial_logits=logits), path)


def test_an_optimal_attack_is_called_optimal(run: Run, saved: Path) -> None:
    shell = run("prove", saved)
    assert shell.status == 0
    assert "optimal" in shell.out
    assert "attack, pixels" in shell.out  # which greedy counts
    assert "proved 1 of 1 images that were not fooled before" in shell.out
    assert "the attack needs 1.000 times the optimum, in the mean" in shell.out


def test_a_better_image_is_found_and_saved(run: Run, saved: Path) -> None:
    waste(saved)
    shell = run("prove", saved, "--save", "better.safetensors", "--json")
    document = json.loads(shell.out)
    (image,) = document["images"]
    assert image["status"] == "better attack found"
    assert image["needed"] == 64
    assert image["lower"] == image["upper"] < 64
    assert document["ratio"] > 1
    better = load_result("better.safetensors")
    assert better.needed_pixels.item() == image["upper"]
    assert better.attack["improved_by"] == "prove"


def test_lines_that_the_solver_prints_are_not_on_stdout(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS prints to the file descriptor, which the tests see as a file."""
    read = Path("stdout.txt")

    def chatty(*given: Any, **named: Any) -> Proof:
        os.write(1, b"transformNewIntegerFeasibleSolution")
        return prove(*given, **named)

    monkeypatch.setattr("pinprick.jobs.prove.prove", chatty)
    own = os.dup(1)
    with read.open("w") as file:
        os.dup2(file.fileno(), 1)
        try:
            status = run("prove", saved, "--json").status
        finally:
            os.dup2(own, 1)
            os.close(own)
    assert status == 0
    assert read.read_text() == ""


def test_elements_can_be_counted_instead(run: Run, saved: Path) -> None:
    document = json.loads(run("prove", saved, "--unit", "elements", "--json").out)
    assert document["unit"] == "elements"
    assert document["images"][0]["lower"] >= 1


def test_a_mask_that_the_attack_kept_is_kept_by_the_proof(run: Run, picture: Path) -> None:
    mask = Image.new("L", (8, 8), 0)
    mask.paste(255, (0, 0, 8, 6))
    mask.save("mask.png")
    attack = ("--attack", "greedy", "--save", SAVED, "--label", "red", "--mask", "mask.png")
    assert run("attack", picture, *MODEL, *attack).status == 0
    waste_rows = ("prove", SAVED, "--mask", "mask.png", "--save", "out.safetensors")
    assert run(*waste_rows).status == 0
    result = load_result("out.safetensors")
    assert torch.equal(result.adversarial[..., 6:, :], result.images[..., 6:, :])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "cli_test_models:soft"), "is not the model of"),
        (("--seconds", "0"), "seconds must be a number above 0, got 0.0"),
        (("--unit", "dots"), "unit must be one of 'elements', 'pixels'"),
    ],
)
def test_what_cannot_be_proved_is_said_in_one_line(
    run: Run, saved: Path, arguments: tuple[str, ...], message: str
) -> None:
    shell = run("prove", saved, *arguments)
    assert shell.status == 2
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1


def test_a_network_of_another_kind_is_refused(run: Run, picture: Path) -> None:
    soft = ("--model", "cli_test_models:soft")
    attack = ("--attack", "greedy", "--save", SAVED, "--label", "0")
    assert run("attack", picture, *soft, *attack).status == 0
    shell = run("prove", SAVED)
    assert shell.status == 2
    assert "needs an nn.Sequential of affine layers and ReLUs; soft holds Softmax" in shell.err
