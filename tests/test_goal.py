"""Goals: met, how far, and the paper's targets."""

import torch

from pinprick import Goal, least_likely
from pinprick.goal import strongest_other


def test_nan_never_counts_as_success() -> None:
    logits = torch.tensor([[float("nan"), 1.0], [0.0, float("inf")], [0.0, 1.0]])
    labels = torch.zeros(3, dtype=torch.long)
    assert Goal(labels).met(logits).tolist() == [False, False, True]
    assert Goal(labels, labels + 1).met(logits).tolist() == [False, False, True]


def test_margin_is_the_gap_to_the_best_rival() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.0]])
    assert Goal(torch.tensor([0])).margin(logits).item() == 1.0
    assert Goal(torch.tensor([0]), torch.tensor([1])).margin(logits).item() == 2.0
    assert Goal(torch.tensor([2])).margin(logits).item() == -1.0


def test_of_equal_logits_the_first_is_the_prediction() -> None:
    logits = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    assert Goal(torch.tensor([0, 1])).met(logits).tolist() == [False, True]
    assert Goal(torch.tensor([1, 0]), torch.tensor([0, 1])).met(logits).tolist() == [True, False]


def test_with_slack_the_lead_must_be_larger_than_that() -> None:
    logits = torch.tensor([[0.0, 0.25], [0.0, 0.5], [0.0, 0.75]])
    labels = torch.zeros(3, dtype=torch.long)
    for goal in (Goal(labels, slack=0.5), Goal(labels, labels + 1, slack=0.5)):
        assert goal.margin(logits).tolist() == [0.25, 0, -0.25]
        assert goal.met(logits).tolist() == [False, False, True]
        assert goal.plain.met(logits).tolist() == [True, True, True]


def test_least_likely_is_never_the_label() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    assert least_likely(logits, torch.tensor([0, 2])).tolist() == [1, 0]


def test_the_strongest_other_class_is_never_the_label() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0], [1.0, 1.0, 0.0]])
    assert strongest_other(logits, torch.tensor([0, 2, 1])).tolist() == [2, 1, 0]
