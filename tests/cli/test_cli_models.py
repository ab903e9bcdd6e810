"""``pinprick models`` lists what can be loaded, and programs are loaded with --trust alone."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from cli.conftest import Run
from pinprick.zoo import load_model, registry, shipped
from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model

CARD = ModelCard(
    net="mnist_cnn",
    classes=tuple("0123456789"),
    mean=None,
    std=None,
    size=(28, 28),
    channels=1,
    facts={
        "data": {"name": "mnist"},
        "accuracy": 0.9912,
        "pgd": {"accuracy": 0.905, "eps": 0.3, "steps": 40},
        "l0_elements": {"accuracy": {"10": 0.5, "24": 0.25}},
    },
)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two shipped models, one of which has a card without facts."""
    folder = tmp_path / "weights"
    net = build_net("mnist_cnn")
    save_model(net, CARD, folder / "digits", half=True)
    save_model(net, replace(CARD, facts={}), folder / "bare", half=True)
    monkeypatch.setattr(shipped, "FOLDER", folder)
    return folder


def test_every_source_is_listed_with_what_is_missing(
    run: Run, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "timm" else object())
    lines = run("models").out.splitlines()
    here = {line.split()[0]: line.rstrip() for line in lines if ":" in line}
    assert here["timm:NAME"].endswith("pip install 'pinprick[timm]'")
    assert here["hf:ORG/NAME[@REVISION]"].endswith("pip install 'pinprick[timm]'")
    for form in ("torchvision:NAME[@WEIGHTS]", "file:PATH", "file:PATH.onnx", "pinprick:NAME"):
        assert here[form].endswith("ready")


def test_shipped_models_are_listed_with_their_accuracies(run: Run, weights: Path) -> None:
    for arguments in (("models",), ("models", "pinprick")):
        lines = run(*arguments).out.splitlines()
        (line,) = [line for line in lines if "pinprick:digits" in line]
        words = "mnist_cnn mnist 99.12 % 90.50 % (PGD-40, eps 0.3) - 50.00 % at 10, 25.00 % at 24"
        assert " ".join(line.split()) == f"pinprick:digits {words}"
        (bare,) = [line for line in lines if "pinprick:bare" in line]
        assert bare.split() == ["pinprick:bare", "mnist_cnn", "-", "-", "-", "-", "-"]
        assert lines[-1] == "elements changed: Pinprick, effort fast, alone"


def test_models_are_listed_with_the_attacks_of_their_own_cards(run: Run, weights: Path) -> None:
    strong = {"accuracy": 0.8446, "pgd_accuracy": 0.9, "eps": 0.3, "steps": 50, "restarts": 5}
    worst = {"accuracy": {"10": 0.06}, "attacks": ["Pinprick, effort fast", "Sparse-RS, 9 queries"]}
    facts = {**CARD.facts, "strong_pgd": {**strong, "loss": "margin"}, "l0_elements": worst}
    save_model(build_net("mnist_cnn"), replace(CARD, facts=facts), weights / "newer")
    lines = run("models", "pinprick").out.splitlines()
    (line,) = [line for line in lines if "pinprick:newer  " in line]
    beside = "PGD alone on these images 90.00 %"
    words = f"84.46 % (PGD-50 x 5, margin, eps 0.3; {beside}) 6.00 % at 10"
    assert " ".join(line.split()).endswith(words)
    assert lines[-2:] == [
        "elements changed of pinprick:digits: Pinprick, effort fast, alone",
        "elements changed of pinprick:newer: worst of Pinprick, effort fast; Sparse-RS, 9 queries",
    ]


def test_check_compares_the_two_figures_on_a_card(run: Run, weights: Path) -> None:
    strong = {"accuracy": 0.1, "pgd_accuracy": 0.35, "images": 100, "steps": 50, "eps": 0.3}
    facts = {**CARD.facts, "strong_pgd": strong}
    save_model(build_net("mnist_cnn"), replace(CARD, facts=facts), weights / "stalled")
    asked = ("--data", "fashion_sample", "--limit", "2", "--device", "cpu", "--json")
    shell = run("check", "--model", "pinprick:stalled", *asked)
    flags = {one["name"]: one["sentence"] for one in json.loads(shell.out)["flags"]}
    assert flags["pgd_overstates"].startswith("its card: PGD-40, eps 0.3 leaves 35.00 % of 100")
    assert shell.status == 2
    plain = json.loads(run("check", "--model", "pinprick:digits", *asked).out)["flags"]
    assert "pgd_overstates" not in {one["name"] for one in plain}
    refused = run("check", "--model", "pinprick:digits", *asked, "--eps", "3")
    assert (refused.status, "--eps must be above 0 and at most 1, got 3" in refused.err) == (
        2,
        True,
    )


def test_the_list_as_json(run: Run, weights: Path) -> None:
    document = json.loads(run("models", "--json").out)
    assert {one["name"] for one in document["sources"]} == {one.name for one in registry.SOURCES}
    names = [one["name"] for one in document["shipped"]]
    assert names == ["pinprick:bare", "pinprick:digits"]
    assert document["shipped"][1]["facts"] == CARD.facts
    for name in names:
        assert load_model(name).name == name


def test_a_package_without_models_says_so(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "none")
    assert "no models come with this copy" in run("models").out


def test_models_of_torchvision_are_listed_with_their_weights(run: Run) -> None:
    (line,) = [
        line for line in run("models", "torchvision").out.splitlines() if ":resnet50 " in line
    ]
    assert line.split() == ["torchvision:resnet50", "IMAGENET1K_V1,", "IMAGENET1K_V2"]
    entries = json.loads(run("models", "torchvision", "--json").out)
    assert {"name": "torchvision:vgg16"} in [{"name": one["name"]} for one in entries]


def test_models_of_timm_are_listed(run: Run) -> None:
    pytest.importorskip("timm")
    lines = run("models", "timm").out.splitlines()
    assert "timm:test_resnet.r160_in1k" in lines


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("file", "file:PATH has no list of models; pinprick, torchvision, timm, robustbench have"),
        ("timmm", "no source of models is called 'timmm'; did you mean timm?"),
    ],
)
def test_what_has_no_list_is_said(run: Run, source: str, message: str) -> None:
    shell = run("models", source)
    assert shell.status == 2
    assert message in shell.err


@pytest.mark.slow
@pytest.mark.parametrize("command", ["attack", "check", "compare"])
def test_a_program_needs_trust(run: Run, picture: Path, tmp_path: Path, command: str) -> None:
    layer = nn.Linear(192, 3, bias=False)
    layer.weight.data = (10 * torch.eye(3) / 64).repeat_interleave(64, dim=1)
    with warnings.catch_warnings(action="ignore"):
        torch.jit.script(nn.Sequential(nn.Flatten(), layer)).save(str(tmp_path / "m.ts"))
    arguments = [command, picture, "--model", f"file:{tmp_path / 'm.ts'}", "--device", "cpu"]
    refused = run(*arguments)
    assert refused.status == 2
    assert "--trust" in refused.err
    assert run(*arguments, "--trust").status == 0
