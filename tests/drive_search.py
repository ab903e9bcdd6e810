"""One search of Pinprick alone: the problem answers what the search asks."""

from typing import NamedTuple

from torch import Tensor

from pinprick import Problem
from pinprick.attacks.pinprick.lockstep import Answer, Search
from pinprick.parts.best import Best


class Driven(NamedTuple):
    """What a search found, and its candidates, one tensor per pass."""

    found: Best
    candidates: list[Tensor]


def drive(problem: Problem, search: Search) -> Driven:
    """Run a search to its end, one forward and one backward pass per candidate."""
    candidates, adv = [], next(search)
    while True:
        candidates.append(adv)
        try:
            adv = search.send(answer(problem, adv))
        except StopIteration as end:
            return Driven(end.value, candidates)


def answer(problem: Problem, adv: Tensor) -> Answer:
    """What the model of the problem says of one candidate per image."""
    logits, grad = problem.logits_and_gradient(adv, problem.goal.margin)
    return Answer(problem.goal.margin(logits).to(adv.dtype), problem.goal.met(logits), grad)
