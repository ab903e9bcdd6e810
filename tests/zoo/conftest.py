"""Small models on disk, and pickles that leave a trace where they are run."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import build_net

CARD = ModelCard(
    net="mnist_cnn",
    classes=tuple("0123456789"),
    mean=(0.1,),
    std=(0.3,),
    size=(28, 28),
    channels=1,
)


HUB_CONFIG = {  # of a model on the Hugging Face Hub
    "architecture": "test_resnet",
    "num_classes": 3,
    "label_names": ["cat", "dog", "owl"],
    "pretrained_cfg": {
        "input_size": [3, 64, 64],
        "crop_pct": 0.9,
        "interpolation": "bicubic",
        "mean": [0.4, 0.5, 0.6],
        "std": [0.2, 0.25, 0.3],
        "first_conv": "conv1.0",
        "classifier": "fc",
    },
    "model_args": {"num_classes": 3},
}


@pytest.fixture
def net() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build_net("mnist_cnn").eval()


@pytest.fixture
def digits() -> Tensor:
    return torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(0))


class Trap:
    """Makes a folder when it is unpickled, and so stands for any code at all."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Where the trap leaves its trace."""
    return tmp_path / "the-trap-was-run"


@pytest.fixture
def lay_trap(trace: Path) -> Callable[[Path], Path]:
    """Writes a checkpoint that would run code where it is read without care."""

    def lay(path: Path, *, torch_format: bool = True) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"weight": torch.zeros(2), "trap": Trap(trace)}
        if torch_format:
            torch.save(content, path)
        else:
            path.write_bytes(pickle.dumps(content))
        return path

    return lay


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Where the files of a repository lie once they were downloaded; there is no network."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def place(name: str) -> Path:
        folder = tmp_path / "hub" / f"models--{name.replace('/', '--')}"
        version = "0" * 40
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(version)
        (folder / "snapshots" / version).mkdir(parents=True)
        return folder / "snapshots" / version

    return place
