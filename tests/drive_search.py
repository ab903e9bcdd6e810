"""One search of Pinprick alone: the model of the problem answers for each candidate."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pinprick import Problem
from pinprick.attacks.pinprick.lockstep import Answer, Search
from pinprick.parts.best import Best
from pinprick.parts.units import Units

ELEMENTS = Units("elements")


class Driven(NamedTuple):
    """What a search found, and its candidates, one tensor per pass."""

    found: Best
    candidates: list[Tensor]


def drive(
    problem: Problem, search: Search, units: Units = ELEMENTS, *, slot: int | None = None
) -> Driven:
    """Take all passes of a search, in slots of so many passes; None for a single slot."""
    passes, candidates = int(search.length.max()), list[Tensor]()
    while (done := len(candidates)) < passes:
        taken = passes - done if slot is None else min(slot, passes - done)
        candidates += each_pass(problem, search, units, taken, done)
    return Driven(search.found, candidates)


def each_pass(
    problem: Problem, search: Search, units: Units, passes: int, done: int = 0
) -> Iterator[Tensor]:
    """Take a slot after ``done`` passes; yields each candidate once the search has its answer."""
    part = problem[search.rows]
    slot = search.slot(part, units, passes, done)
    for now in range(passes):
        candidate = search.adv
        slot(answer(part, candidate, units), now)
        if now == passes - 1:
            search.taken = search.taken + passes
        yield candidate


def answer(problem: Problem, adv: Tensor, units: Units = ELEMENTS) -> Answer:
    """What the model of the problem says of one candidate per image."""
    logits, grad = problem.logits_and_gradient(adv, problem.goal.margin)
    margin, met = problem.goal.margin(logits).to(adv.dtype), problem.goal.met(logits)
    return Answer(margin, met, units.count(adv, problem.images), grad)


def cut_and_joined(
    problem: Problem, begin: Callable[[Tensor], Search], units: Units = ELEMENTS
) -> tuple[list[Driven], list[Driven]]:
    """Four images that share searches, and each of them alone, in passes 20 to 39 of an attack.

    Images 0, 1 and 2 begin at first. After a slot of 20, image 1 leaves, the others change places,
    and images 3 and 4 join them, at the beginning of their search. Alone, nothing is cut or joined,
    and 40 passes are one slot.
    """
    early, late = begin(torch.arange(3)), begin(torch.tensor([3, 4]))
    list(each_pass(problem, early, units, 20))
    search = type(early).join([early[torch.tensor([2, 0])], late])
    together = torch.stack(list(each_pass(problem, search, units, 20, done=20)))
    rows = search.rows.tolist()
    assert rows == [2, 0, 3, 4]
    shared = [
        Driven(search.found[torch.tensor([i])], [*together[:, i : i + 1]]) for i in range(len(rows))
    ]
    return shared, [_alone(problem, begin, units, row) for row in rows]


def _alone(problem: Problem, begin: Callable[[Tensor], Search], units: Units, row: int) -> Driven:
    """Passes 20 to 39 of an attack on one image."""
    search, done = begin(torch.tensor([row])), 0 if row < 3 else 20
    candidates = list(each_pass(problem, search, units, 40 - done, done))
    return Driven(search.found, candidates[-20:])


def assert_same(one: list[Driven], other: list[Driven]) -> None:
    """The same candidates, which are not all equal, and the same best."""
    for mine, yours in zip(one, other, strict=True):
        assert torch.equal(torch.stack(mine.candidates), torch.stack(yours.candidates))
        assert torch.equal(mine.found.images, yours.found.images)
        assert torch.equal(mine.found.cost, yours.found.cost)
        assert len({adv.numpy().tobytes() for adv in mine.candidates}) > 4
