"""Real pictures that train in seconds: scikit-learn's digits, at 28 x 28 as MNIST's are."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.data.dataset import Dataset
from pinprick.train.material import Material
from pinprick.train.plan import Plan, build_plan

QUICK = {"batch_size": 50, "optimiser": "adam", "lr": 3e-3, "weight_decay": 0.0}
SMALL_EXAM = {
    "exam_images": 60, "exam_steps": 5, "strong_images": 20, "strong_steps": 5,
    "strong_restarts": 2, "l0_images": 8, "l0_queries": 30, "watch_images": 100,
}  # fmt: skip


def _part(images: Tensor, labels: Tensor, split: str) -> Dataset:
    return Dataset(
        name="digits",
        classes=tuple(str(i) for i in range(10)),
        labels=labels,
        pixels=images,
        files=(),
        indices=torch.arange(len(labels)),
        source=f"digits/{split}",
    )


@pytest.fixture(scope="session")
def digits() -> Material:
    """1500 pictures to train on and 297 for the test, 8 x 8 enlarged threefold, in a frame."""
    from sklearn.datasets import load_digits

    found = load_digits()
    small = torch.from_numpy(found.images * 15.9375).round().to(torch.uint8).unsqueeze(1)
    large = F.pad(small.repeat_interleave(3, dim=2).repeat_interleave(3, dim=3), (2, 2, 2, 2))
    labels = torch.from_numpy(found.target).long()
    return Material(
        "digits",
        _part(large[:1500], labels[:1500], "train"),
        _part(large[1500:], labels[1500:], "test"),
    )


@pytest.fixture(scope="session")
def few(digits: Material) -> Material:
    """200 of them, where only the way counts."""
    return Material("digits", digits.train[:200], digits.test[:100])


PlanMaker = Callable[..., Plan]


@pytest.fixture
def plan_for() -> PlanMaker:
    """A quick plan for the digits: the name of a recipe, and options."""

    def make(recipe: str, *, seed: int = 0, **options: Any) -> Plan:
        chosen = {**QUICK, **SMALL_EXAM, "epochs": 3, **options}
        return build_plan(data="digits", net="mnist_cnn", recipe=recipe, options=chosen, seed=seed)

    return make
