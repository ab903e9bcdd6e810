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
