"""The loss of a step against its formula."""

import pytest
import torch
from torch.nn import functional as F

from pinprick.train.optimise import step_loss
from pinprick.train.schedule import Schedule

LABELS = torch.tensor([0, 2, 1])


def test_without_trades_it_is_the_cross_entropy_of_the_perturbed_images() -> None:
    logits = torch.tensor([[1.0, 0.0, 2.0], [0.5, 0.5, 0.5], [3.0, -1.0, 0.0]])
    loss = step_loss(logits, LABELS, Schedule(label_smoothing=0.1))
    assert loss == F.cross_entropy(logits, LABELS, label_smoothing=0.1)


def test_with_trades_the_clean_images_are_learnt_and_the_perturbed_ones_held_to_them() -> None:
    torch.manual_seed(0)
    perturbed, clean = torch.randn(2, 3, 3, dtype=torch.double)
    loss = step_loss(torch.cat((perturbed, clean)), LABELS, Schedule(trades=6.0))
    said, asked = clean.softmax(dim=1), perturbed.softmax(dim=1)
    divergence = (said * (said / asked).log()).sum(dim=1).mean()
    assert loss.item() == pytest.approx((F.cross_entropy(clean, LABELS) + 6 * divergence).item())


def test_with_trades_images_that_were_left_alone_cost_nothing_more() -> None:
    clean = torch.tensor([[1.0, 0.0, 2.0], [0.5, 0.5, 0.5], [3.0, -1.0, 0.0]])
    loss = step_loss(torch.cat((clean, clean)), LABELS, Schedule(trades=6.0))
    assert loss.item() == pytest.approx(F.cross_entropy(clean, LABELS).item())
