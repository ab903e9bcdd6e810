"""The loss of a search by scores, by hand."""

import pytest
import torch

from pinprick import Goal
from pinprick.parts.score_loss import score_loss

LOGITS = torch.tensor([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
LABELS, TARGETS = torch.tensor([0, 1]), torch.tensor([2, 2])


def test_the_margin_leaves_a_label_and_the_cross_entropy_reaches_a_target() -> None:
    assert score_loss(Goal(LABELS), LOGITS).tolist() == [2.0, 0.0]
    reach = score_loss(Goal(LABELS, TARGETS), LOGITS)
    torch.testing.assert_close(reach, LOGITS.exp().sum(dim=1).log())


def test_either_can_be_asked_for() -> None:
    leave = score_loss(Goal(LABELS), LOGITS, "cross_entropy")
    torch.testing.assert_close(leave, torch.tensor([3.0, 0.0]) - LOGITS.exp().sum(dim=1).log())
    assert score_loss(Goal(LABELS, TARGETS), LOGITS, "margin").tolist() == [3.0, 0.0]


@pytest.mark.parametrize("targets", [None, TARGETS])
def test_what_is_no_number_is_as_bad_as_can_be(targets: torch.Tensor | None) -> None:
    logits = LOGITS.clone()
    logits[0] = torch.nan
    loss = score_loss(Goal(LABELS, targets), logits)
    assert loss[0] == torch.inf
    assert loss[1].isfinite()


def test_half_precision_is_not_enough() -> None:
    logits = torch.tensor([[2048.0, 0.5, 0.0]], dtype=torch.float16)
    assert score_loss(Goal(LABELS[:1]), logits).tolist() == [2047.5]
