"""The best try of an attack with a budget: the first that met the goal, or that of lowest loss."""

import torch
from torch import Tensor

from pinprick import Goal
from pinprick.parts.best import Lowest


def tries(*values: float) -> Tensor:
    return torch.tensor(values).view(-1, 1, 1, 1)


def test_keeps_the_lowest_loss_and_the_first_that_met_the_goal() -> None:
    goal, rows = Goal(torch.zeros(2, dtype=torch.long)), torch.arange(2)
    lowest = Lowest(tries(0.0, 0.0))
    unmet = torch.tensor([[2.0, 0.0], [3.0, 0.0]])
    assert not lowest.offer(tries(0.1, 0.1), unmet, goal, rows).any()
    better, worse = torch.tensor([[1.0, 0.0], [4.0, 0.0]]), torch.tensor([[5.0, 0.0], [0.0, 1.0]])
    lowest.offer(tries(0.2, 0.2), better, goal, rows)
    assert lowest.offer(tries(0.3, 0.3), worse, goal, rows).tolist() == [False, True]
    lowest.offer(tries(0.4, 0.4), torch.tensor([[0.0, 9.0], [0.0, 99.0]]), goal, rows)
    torch.testing.assert_close(lowest.images.flatten(), torch.tensor([0.4, 0.3]))
    assert lowest.met.all()


def test_offers_are_of_some_images_alone() -> None:
    lowest, rows = Lowest(tries(0.0, 0.0, 0.0)), torch.tensor([2])
    goal = Goal(torch.zeros(1, dtype=torch.long))
    lowest.offer(tries(0.5), torch.tensor([[0.0, 1.0]]), goal, rows)
    assert lowest.images.flatten().tolist() == [0.0, 0.0, 0.5]
    assert lowest.met.tolist() == [False, False, True]


def test_a_loss_that_is_no_number_is_never_better() -> None:
    lowest, rows = Lowest(tries(0.0)), torch.tensor([0])
    goal = Goal(torch.zeros(1, dtype=torch.long))
    lowest.offer(tries(0.5), torch.tensor([[float("nan"), 1.0]]), goal, rows)
    assert lowest.images.item() == 0.0
    assert not lowest.met.any()


def test_a_try_without_an_answer_is_never_better() -> None:
    lowest, rows = Lowest(tries(0.0, 0.0)), torch.arange(2)
    goal = Goal(torch.zeros(2, dtype=torch.long))
    lowest.offer(tries(0.5, 0.5), torch.tensor([[1.0, 0.0], [torch.nan] * 2]), goal, rows)
    assert lowest.images.flatten().tolist() == [0.5, 0.0]
