"""A shell for the tests, with small models of the user's own and pictures for them."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from pinprick.cli import main

MODELS = '''
import torch
from torch import nn

from pinprick import Classifier
from pinprick.zoo.prepare import short_side_and_crop


def _linear(weights, **facts):
    """Scores are weighted means of the three channels of 8 x 8 pixels."""
    layer = nn.Linear(192, 3, bias=False)
    layer.weight.data = (10 * torch.tensor(weights) / 64).repeat_interleave(64, dim=1)
    return Classifier(
        nn.Sequential(nn.Flatten(), layer, *facts.pop("after", ())).eval(),
        prepare=short_side_and_crop(8, 8),
        **facts,
    )


def colours():
    weights = [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]
    return _linear(weights, classes=("red", "green", "blue"), size=(8, 8), name="colours")


def fragile():
    """Red and blue pull against green, so three channels can change by less than 8 bits hold."""
    weights = [[1.0, 0, 1], [0, 1, 0], [0, 0, 0]]
    return _linear(weights, classes=("warm", "green", "none"), size=(8, 8), name="fragile")


def soft():
    weights = [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]
    return _linear(weights, name="soft", after=(nn.Softmax(dim=1),))


class _Rounding(nn.Module):
    """Answers in steps of a sixteenth, over a faint slope that leads the other way."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images):
        return self.net((images * 16).round() / 16) - self.net(images) / 1024


def misleading():
    model = colours()
    return Classifier(
        _Rounding(model.net), classes=model.classes, prepare=model.prepare, name="misleading"
    )


def nameless():
    return colours().net


def twins():
    model = colours()
    return Classifier(
        model.net, classes=("crane", "Crane", "red"), prepare=model.prepare, name="twins"
    )


def thousand():
    """As many scores as ImageNet has classes; the first two are red and green."""
    layer = nn.Linear(192, 1000)
    layer.weight.data.zero_()
    layer.weight.data[:2] = colours().net[1].weight.data[:2]
    layer.bias.data.fill_(-1.0)
    return Classifier(
        nn.Sequential(nn.Flatten(), layer), prepare=short_side_and_crop(8, 8), name="thousand"
    )


class _SeesColour(nn.Module):
    """The mean of each channel over the pixels that a draw sees."""

    def forward(self, seen):
        return seen[:, :3].mean(dim=(2, 3))


def votes():
    """The vote of 16 draws, each of 8 of the 64 pixels."""
    from pinprick.zoo.card import Ablation
    from pinprick.zoo.voting import VotingNetwork

    net = VotingNetwork(_SeesColour(), (3, 8, 8), Ablation(kept=8, draws=16))
    model = colours()
    return Classifier(
        net, classes=model.classes, prepare=model.prepare, access="gradients", name="votes"
    )


def small():
    """Another size and other names, to be the judge."""
    layer = nn.Linear(48, 3, bias=False)
    layer.weight.data = torch.eye(3).repeat_interleave(16, dim=1)
    net = nn.Sequential(nn.Flatten(), layer)
    return Classifier(net, classes=("r", "g", "b"), size=(4, 4), name="small")
'''


@dataclass(frozen=True)
class Shell:
    """What a command left behind."""

    status: int
    out: str
    err: str


Run = Callable[..., Shell]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "cli_test_models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())  # a model of the user's adds its folder
    monkeypatch.setenv("COLUMNS", "200")

    def _run(*arguments: str | Path) -> Shell:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Shell(int(stop.value.code or 0), captured.out, captured.err)

    return _run


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Red by 1.96 of the score; a pixel pushed from red to green gains 0.187: 11 are needed."""
    Image.new("RGB", (8, 8), (150, 100, 50)).save(tmp_path / "brick.png")
    return tmp_path / "brick.png"
