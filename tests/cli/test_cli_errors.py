"""What the user can mend is one line on stderr and exit status 2, without a traceback."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from cli.conftest import Run

MODEL = ("--model", "cli_test_models:colours")
GREEDY = ("--attack", "greedy")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--attack", "pinprik"), "no attack is called 'pinprik'; did you mean pinprick?"),
        (("--option", "max_pixel=3"), "no option of greedy is called 'max_pixel'; did you mean"),
        (("--option", "max_pixels=many"), "max_pixels of greedy must be int, got 'many'"),
        (("--option", "max_pixels=0"), "greedy needs max_pixels >= 1, got 0"),
        (("--option", "max_pixels"), "an option is written key=value, as in eps=8/255"),
        (("--option", "a=1", "--option", "a=2"), "the option a is given twice, as 1 and 2"),
        (("--target", "bleu"), "no class of colours is called 'bleu'; did you mean blue?"),
        (("--target", "3"), "a class of colours is a number from 0 to 2, got 3"),
        (("--target", "-1"), "a class of colours is a number from 0 to 2, got -1"),
        (("--target", "--1"), "no class of colours is called '--1'"),
        (("--target", "1.0"), "a class of colours is a number from 0 to 2, got 1.0"),
        (("--label", "²"), "no class of colours is called '²'"),
        (("--label", "9" * 5000), "a class of colours is a number from 0 to 2, got 999"),
        (
            ("--target", "red"),
            "there is no image to attack: 1 image labelled red already; a target",
        ),
        (("--label", "purple"), "no class of colours is called 'purple'; known: blue, green, red"),
        (("--label", "0", "--label", "1"), "2 labels for 1 pictures; give one, or one each"),
        (("--model", "colours"), "no model is called 'colours'"),
        (("--model", "torchvision:resnet5"), "did you mean resnet50"),
        (("--model", "cli_test_models:colour"), "did you mean colours?"),
        (("--model", "cli_test_models:nameless", "--target", "red"), "no names for its classes"),
        (("--model", "cli_test_models:twins", "--target", "crane"), "give the number: 0 and 1"),
        (
            ("--model", "cli_test_models:small"),
            "small takes pictures of 4 x 4 and does not say how others are resized",
        ),
        (("--device", "gpu"), "the device 'gpu' cannot be used"),
        (("--batch-size", "0"), "equal to 1; see pinprick attack --help"),
        (("--seed", "one"), "--seed"),
        (("--sed", "1"), "--seed"),
        (("--attack", "deepfool", "--target", "1"), "deepfool has no targeted form"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_bad_options_are_one_line(
    run: Run, picture: Path, arguments: tuple[str, ...], message: str
) -> None:
    shell = run("attack", picture, *MODEL, *GREEDY, *arguments)
    assert (shell.status, shell.out) == (2, "")
    assert shell.err.startswith("pinprick: ")
    assert message in shell.err
    assert len(shell.err.splitlines()) == 1


def test_an_unknown_command_offers_the_nearest(run: Run) -> None:
    shell = run("atack")
    assert shell.status == 2
    assert shell.err.startswith("pinprick: No such command 'atack'")
    assert shell.err.endswith("; see pinprick --help\n")


def test_without_a_single_picture_there_is_nothing_to_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shell = run("attack", "empty", "gone.png", *MODEL)
    assert shell.status == 2
    assert shell.err.splitlines()[-1] == "pinprick: there is no picture to work on"


def test_pictures_of_several_sizes_need_a_model_that_prepares(run: Run, tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    Image.new("RGB", (9, 8)).save(tmp_path / "b.png")
    shell = run("attack", "a.png", "b.png", "--model", "cli_test_models:nameless")
    assert shell.status == 2
    assert "a is (3, 8, 8) and b (3, 8, 9)" in shell.err


def test_a_folder_that_cannot_be_made_is_found_before_the_work(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise AssertionError("the work has started")

    monkeypatch.setattr("pinprick.jobs.device.load_model", load)
    for command in ("attack", "compare"):
        shell = run(command, picture, *MODEL, "--out", picture / "folder")
        assert (shell.status, shell.out) == (2, "")
        assert "brick.png/folder: Not a directory; choose another with --out" in shell.err


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only_is_found(run: Run, picture: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    shell = run("attack", picture, *MODEL, "--out", "locked")
    assert shell.status == 2
    assert "locked: Permission denied" in shell.err


def test_a_disk_that_fills_up_is_said(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pinprick.jobs.attack.save_png", fail)
    shell = run("attack", picture, *MODEL)
    assert shell.status == 2
    assert shell.err == "pinprick: cannot write to pinprick-out: No space left on device\n"


def test_stopping_leaves_no_traceback(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pinprick.jobs.attack.open_out", stop)
    shell = run("attack", picture, *MODEL)
    assert (shell.status, shell.err.strip()) == (130, "pinprick: stopped")


@pytest.mark.parametrize(
    ("module", "arguments", "package"),
    [
        ("skimage", MODEL, "scikit-image"),
        ("efficientnet_lite_pytorch", (), "efficientnet_lite_pytorch"),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    arguments: tuple[str, ...],
    package: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    shell = run("attack", *arguments)
    assert shell.status == 2
    assert f"needs the package {package}; install it with: pip install" in shell.err


def test_a_bug_keeps_its_traceback(
    run: Run, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pinprick.cli import main

    run("attacks")  # sets the folder up
    monkeypatch.setattr("pinprick.jobs.attack.open_out", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["attack", str(picture), *MODEL])
