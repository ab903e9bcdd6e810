"""``pinprick certify`` says how many changes the label of each picture survives."""

import json
from pathlib import Path

import pytest

from cli.conftest import Run

MODEL = ("--model", "cli_test_models:colours")


def test_a_picture_is_certified(run: Run, picture: Path) -> None:
    shell = run("certify", picture, *MODEL, "--label", "red")
    assert shell.status == 0
    assert "certified, pixels" in shell.out
    assert "all certified" in shell.out


def test_json_has_one_entry_per_picture(run: Run, picture: Path) -> None:
    shell = run("certify", picture, *MODEL, "--unit", "elements", "-t", "2", "--json")
    document = json.loads(shell.out)
    (image,) = document["images"]
    assert (document["unit"], document["t"]) == ("elements", 2)
    assert image["certified"] == 2
    assert image["fewest_known"] is None
    assert image["nodes"] >= 1


def test_a_wrong_label_is_already_fooled(run: Run, picture: Path) -> None:
    shell = run("certify", picture, *MODEL, "--label", "blue")
    assert shell.status == 0
    assert "already fooled" in shell.out


def test_with_a_target_other_classes_do_not_fool(run: Run, picture: Path) -> None:
    options = (*MODEL, "--label", "red", "--target", "blue", "--json")
    (image,) = json.loads(run("certify", picture, *options).out)["images"]
    assert (image["label"], image["target"]) == (0, 2)
    assert image["certified"] == 1


def test_a_network_of_another_kind_is_one_clear_line(run: Run, picture: Path) -> None:
    shell = run("certify", picture, "--model", "cli_test_models:soft")
    assert shell.status == 2
    assert "Softmax" in shell.err
    assert len(shell.err.strip().splitlines()) == 1


def test_an_unknown_unit_is_refused(run: Run, picture: Path) -> None:
    shell = run("certify", picture, *MODEL, "--unit", "squares")
    assert shell.status == 2
    assert "unit must be one of" in shell.err


def test_a_vote_is_certified_in_one_pass(run: Run, picture: Path) -> None:
    shell = run("certify", picture, "--model", "cli_test_models:votes", "-t", "9", "--json")
    assert shell.status == 0, shell.err
    (image,) = json.loads(shell.out)["images"]
    assert image["certified"] == 3  # each pixel is seen by 2 of 16 draws
    assert image["outcome"] == "undecided"


def test_a_smoothed_certificate_says_its_probability_and_what_it_is_about(
    run: Run, picture: Path
) -> None:
    vote = ("--model", "cli_test_models:votes", "--smoothed", "--alpha", "0.01")
    shell = run("certify", picture, *vote, "--draws", "300")
    assert shell.status == 0, shell.err
    assert "radius, pixels" in shell.out
    assert "Each line is wrong with probability at most 0.01." in " ".join(shell.out.split())
    document = json.loads(run("certify", picture, *vote, "--draws", "300", "--json").out)
    (image,) = document["images"]
    assert (document["alpha"], document["draws"], document["kept"]) == (0.01, 300, 8)
    assert image["outcome"] == "certified"
    assert 0.9845 < image["probability"] < 0.985
    assert "0.984" in shell.out  # rounded down
    assert image["radius"] == 4  # 56 of 64, 55 of 63, ... pixels are not seen: 0.575 of the draws


def test_only_a_vote_has_a_smoothed_certificate(run: Run, picture: Path) -> None:
    shell = run("certify", picture, *MODEL, "--smoothed")
    assert shell.status == 2
    assert "--recipe ablation" in shell.err
    assert len(shell.err.strip().splitlines()) == 1


def test_a_probability_of_one_is_refused(run: Run, picture: Path) -> None:
    vote = ("--model", "cli_test_models:votes", "--smoothed", "--alpha", "1")
    shell = run("certify", picture, *vote)
    assert shell.status == 2
    assert "alpha must be a number above 0 and below 1" in shell.err


@pytest.mark.parametrize("option", ["-t", "--nodes", "--seconds"])
def test_an_option_of_the_search_is_refused_with_smoothed(
    run: Run, picture: Path, option: str
) -> None:
    vote = ("--model", "cli_test_models:votes", "--smoothed")
    shell = run("certify", picture, *vote, option, "3")
    assert shell.status == 2
    assert f"{option} has no effect with --smoothed" in shell.err


def test_an_option_of_the_draws_is_refused_without_smoothed(run: Run, picture: Path) -> None:
    shell = run("certify", picture, *MODEL, "--draws", "100")
    assert shell.status == 2
    assert "--draws has no effect without --smoothed" in shell.err
