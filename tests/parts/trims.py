"""Trims for tests: of a problem with known answers, and told by hand what the model says."""

import math
from collections.abc import Callable

import torch
from drive_search import ELEMENTS, drive
from torch import Tensor

from parts.long_results import (
    as_found,
    problem_of,
)
from pinprick import Classifier, Goal, Problem, Streams
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.attacks.pinprick.trim import Trim
from pinprick.parts.best import Best
from pinprick.parts.units import Units

SLOPES = torch.linspace(-1, 1, 100)


def trim_of(
    problem: Problem,
    found: Best,
    length: int,
    units: Units = ELEMENTS,
    *,
    eight_bit: bool = False,
    stride: float = 0.0,
) -> Trim:
    """A trim of all images of a problem, which aims at no class."""
    rows = torch.arange(len(problem))
    aims, lengths = torch.full_like(rows, -1), torch.full_like(rows, length)
    images = problem.images
    return Trim(images, units, rows, aims, found, lengths, eight_bit=eight_bit, stride=stride)


def run(
    problem: Problem, found: Best, units: Units, length: int, *, stride: float = 0.0
) -> list[Tensor]:
    """Trim what was found, in place; returns the candidates."""
    return drive(problem, trim_of(problem, found, length, units, stride=stride), units).candidates


def judge(fools: Callable[[Tensor], Tensor], slopes: list[float]) -> Classifier:
    """The margin is -100 where the values fool and 100 elsewhere, with these slopes."""

    def model(images: Tensor) -> Tensor:
        flat = images.flatten(1)
        lead = torch.where(fools(flat.detach() > 0), -100.0, 100.0)
        small = (flat - flat.detach()) @ torch.tensor(slopes)
        return torch.stack((lead - small, torch.zeros_like(lead)), dim=1)

    return Classifier(model)


def all_changed(model: Classifier, number: int, count: int = 1) -> tuple[Problem, Best]:
    """Images of so many values, and what was found: all of them changed."""
    images = torch.zeros(count, 1, 1, number)
    problem = problem_of(model, images, Goal(torch.zeros(count, dtype=torch.long)))
    return problem, as_found(images + 1, images, ELEMENTS)


def changed_units(model: Classifier, number: int, steps: int) -> list[list[int]]:
    """The units that are changed in each candidate, from all of them on."""
    candidates = run(*all_changed(model, number), ELEMENTS, steps)
    return [adv.flatten().nonzero().squeeze(1).tolist() for adv in candidates]


class Told:
    """A trim of one image for many passes, of which the first answer is of what was found."""

    def __init__(
        self,
        adv: Tensor,
        images: Tensor,
        units: Units = ELEMENTS,
        *,
        allowed: Tensor | None = None,
        length: int = 10**6,
        eight_bit: bool = False,
        stride: float = 0.0,
    ) -> None:
        self.images, self.units = images, units
        self.problem = Problem(
            Classifier(lambda batch: batch.flatten(1)[:, :2]),
            images,
            Goal(torch.tensor([0])),
            Streams(0, torch.arange(1)),
            allowed=allowed,
        )
        found = as_found(adv, images, units)
        self.search = trim_of(
            self.problem, found, length, units, eight_bit=eight_bit, stride=stride
        )
        self.slot = self.search.slot(self.problem, units, 10**4, 0)
        self.now = 0

    def tell(self, margin: float, grad: Tensor, *, met: bool = False) -> Tensor:
        """Answer for the candidate; returns the next one."""
        count = self.units.count(self.search.adv, self.images)
        told = torch.tensor([margin]), torch.tensor([met]), count, grad.view_as(self.images)
        self.slot(Answer(*told), self.now)
        self.now += 1
        return self.search.adv

    def removed(self) -> list[int]:
        """The units of the best that are clean in the candidate."""
        gone = self.units.changed(self.search.adv, self.search.found.images)
        gone &= ~self.units.changed(self.search.adv, self.images)
        return gone[0].nonzero().squeeze(1).tolist()

    @property
    def swaps(self) -> bool:
        """Whether the candidate changes units that the best does not."""
        best, adv = self.search.found.images, self.search.adv
        new = self.units.changed(adv, self.images) & ~self.units.changed(best, self.images)
        return bool(new.any())


def black(number: int, *changed: int) -> Told:
    """A black image of so many units, of which some are white."""
    images = torch.zeros(1, 1, 1, number)
    adv = images.clone()
    adv[..., list(changed)] = 1
    return Told(adv, images)


def at_first(number: int, values: list[float]) -> Tensor:
    """So many values, these in front and zeros behind them."""
    return torch.tensor(values + [0.0] * (number - len(values)))


def grey(
    cost: int,
    units: Units = ELEMENTS,
    shape: tuple[int, int, int] = (1, 10, 10),
    *,
    allowed: Tensor | None = None,
    grad: Tensor = SLOPES,
    stride: float = 0.0,
) -> Told:
    """A trim that is about to swap; the margin of what was found is -1."""
    images = torch.full((1, *shape), 0.5)
    may = torch.ones_like(images, dtype=torch.bool) if allowed is None else allowed
    first = units.largest(may.float()).bool()
    first &= first.cumsum(dim=1) <= cost
    adv = torch.where(units.spread(first, images) & may, 0.0, images)
    trim = Told(adv, images, units, allowed=allowed, stride=stride)
    trim.tell(-1, grad, met=True)
    settle(trim, grad)
    return trim


def settle(trim: Told, grad: Tensor = SLOPES) -> None:
    """Say that no unit can go, without a margin that a swap could be compared with."""
    while not trim.swaps:
        assert trim.removed()
        trim.tell(math.nan, grad)


def differing(trim: Told, other: Tensor) -> int:
    return int(trim.units.count(trim.search.adv, other))
