"""The individuals of SA-MOO, how they are made, crossed and mutated, and which are preferred.

An individual is a set of k units and a direction for each of their values: -1, 0 or 1. Images have
the shape (batch, channel, unit); elements have one channel and one unit per value. The units of the
largest random keys are chosen, which draws a set without replacement. Every individual has a
number, which addresses its random numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.parts.largest import find_largest
from pinprick.parts.units import Units, take
from pinprick.problem import Problem
from pinprick.types import Counts, Images

_ABOVE_ZERO = 2**-25  # half a step of the random numbers, so that no key is zero


@dataclass(frozen=True)
class Individuals(BatchRows):
    """Several individuals of each image of a batch.

    Attributes:
        members: Which units are in the set, (batch, individual, unit).
        signs: Where each value goes, (batch, individual, channel, unit); 0 outside the set.
    """

    members: Tensor
    signs: Tensor

    def choose(self, which: Tensor) -> "Individuals":
        """Some of them, (batch, some), for each image its own."""
        row = torch.arange(len(which), device=which.device).unsqueeze(1)
        return Individuals(self.members[row, which], self.signs[row, which])

    def first(self, copies: int = 1) -> "Individuals":
        """Copies of the first of each image."""
        members, signs = self.members[:, :1], self.signs[:, :1]
        return Individuals(members.expand(-1, copies, -1), signs.expand(-1, copies, -1, -1))

    @staticmethod
    def side_by_side(parts: Sequence["Individuals"]) -> "Individuals":
        """All individuals of the same images, one after another."""
        return Individuals(
            torch.cat([part.members for part in parts], dim=1),
            torch.cat([part.signs for part in parts], dim=1),
        )


@dataclass(frozen=True)
class Ranked(BatchRows):
    """Individuals that were queried, the preferred ones of each image first.

    Attributes:
        people: The individuals.
        met: Which of them fool, (batch, individual).
        cost: The squared l2 norm of those that fool, the loss of the others, (batch, individual).
    """

    people: Individuals
    met: Tensor
    cost: Tensor

    @staticmethod
    def best(groups: Sequence["Ranked"], number: int) -> "Ranked":
        """The preferred ones of all groups, in order; at a tie those of an earlier group."""
        met = torch.cat([group.met for group in groups], dim=1)
        cost = torch.cat([group.cost for group in groups], dim=1)
        order = preferred_first(met, cost)[:, :number]
        people = Individuals.side_by_side([group.people for group in groups]).choose(order)
        return Ranked(people, met.gather(1, order), cost.gather(1, order))


def preferred_first(met: Tensor, cost: Tensor) -> Tensor:
    """The order of preference: those that fool, then the rest, each by cost; ties as they stand."""
    order = cost.argsort(dim=1, stable=True)
    fools_first = (~met).int().gather(1, order).argsort(dim=1, stable=True)
    return order.gather(1, fools_first)


class Breeding(BatchRows):
    """Makes individuals for each image of a problem, from its own random numbers.

    Args:
        problem: The images.
        units: What a set is made of.
        k: Number of units in it; as many as may change if those are fewer.
        zeros: Probability that a direction is 0.
        eps: Change of a value.
        use: What the random numbers are drawn for.
    """

    def __init__(
        self, problem: Problem, units: Units, k: Counts, *, zeros: float, eps: float, use: str
    ) -> None:
        self._problem, self._units, self._zeros, self.use = problem, units, zeros, use
        images = problem.images
        low, high = (images - eps).clamp_min(0), (images + eps).clamp_max(1)
        free = torch.ones_like(images[:, :1], dtype=torch.bool).expand_as(images)
        if problem.allowed is not None:
            free = problem.allowed
            low, high = low.where(free, images), high.where(free, images)
        self._clean, self._low, self._high = (units.planes(x) for x in (images, low, high))
        self._free = units.planes(free).any(dim=1)
        number = self._free.sum(dim=1)
        self._k = torch.minimum(k, number)
        self._spare = number - self._k  # units that may change and are not in the set
        self._most = int(self._k.max()) if len(k) else 0
        full = self._spare == 0
        self._room = torch.where(full, self._k, self._spare)
        self._pool = self._free & ~full.unsqueeze(1)

    def begin(self, near: Images, numbers: range) -> Individuals:
        """Random sets and directions; units that ``near`` changed come first, as they are there.

        Where it changed fewer than k, the first individual leaves the others alone.
        """
        way = (self._units.planes(near) - self._clean).sign().to(torch.int8)
        changed = (way != 0).any(dim=1)
        keys = (self._keys(numbers, "first") + changed.unsqueeze(1)) * self._free.unsqueeze(1)
        count = self._k.unsqueeze(1).expand(-1, len(numbers))
        places, chosen = find_largest(keys, count, self._most)
        known = take(way.unsqueeze(1).expand(-1, len(numbers), -1, -1), places)
        is_known = changed.unsqueeze(1).expand_as(keys).gather(2, places).unsqueeze(2)
        signs = torch.where(is_known, known, self._signs(places, numbers, "first"))
        if numbers.start == 0:
            begun = changed.any(dim=1).view(-1, 1, 1) & ~is_known[:, 0]
            signs[:, 0] = signs[:, 0].masked_fill(begun, 0)
        shape = *keys.shape[:2], *self._clean.shape[1:]
        nobody = Individuals(
            torch.zeros_like(keys, dtype=torch.bool),
            torch.zeros(shape, dtype=torch.int8, device=keys.device),
        )
        return _take_in(nobody, places, chosen, signs)

    def cross(
        self, people: Individuals, others: Individuals, share: float, numbers: range
    ) -> Individuals:
        """``people``, a share of whose units make room for units of ``others`` they do not have."""
        theirs = others.members & ~people.members
        count = torch.minimum(self._share(share).unsqueeze(1), theirs.sum(dim=2))
        keys = self._keys(numbers, "cross")
        come, comes = find_largest(keys * theirs, count, self._most_of(share))
        left = self._drop(people, keys, count, share)
        return _take_in(left, come, comes, take(others.signs, come))

    def mutate(self, people: Individuals, share: float, numbers: range) -> Individuals:
        """``people``, a share of whose units make room for others with random directions.

        Where fewer are outside the set, so many are replaced; where none are, units of the set
        get new directions.
        """
        count = torch.minimum(self._share(share), self._room).unsqueeze(1)
        outside = self._pool.unsqueeze(1) ^ people.members  # the set itself where none are left
        keys = self._keys(numbers, "mutate")
        come, comes = find_largest(keys * outside, count, self._most_of(share))
        left = self._drop(people, keys, count, share)
        return _take_in(left, come, comes, self._signs(come, numbers, "mutate"))

    def made(self, people: Individuals) -> Images:
        """Their images, those of one image after another."""
        low, high, clean = (x.unsqueeze(1) for x in (self._low, self._high, self._clean))
        adv = torch.where(people.signs > 0, high, torch.where(people.signs < 0, low, clean))
        return adv.reshape(-1, *self._problem.images.shape[1:])

    def _drop(self, people: Individuals, keys: Tensor, count: Tensor, share: float) -> Individuals:
        go, goes = find_largest(keys * people.members, count, self._most_of(share))
        stay = people.members.gather(2, go) & ~goes
        signs = take(people.signs, go).masked_fill(goes.unsqueeze(2), 0)
        return Individuals(people.members.scatter(2, go, stay), _put(people.signs, go, signs))

    def _share(self, share: float) -> Counts:
        return (share * self._k.double()).long().clamp_min(1)

    def _most_of(self, share: float) -> int:
        return max(1, int(share * self._most))

    def _keys(self, numbers: range, use: str) -> Tensor:
        """A key above 0 for each unit, (batch, individual, unit)."""
        return self._draw(self._free.shape[1], numbers, f"{use}, keys") + _ABOVE_ZERO

    def _signs(self, places: Tensor, numbers: range, use: str) -> Tensor:
        """A direction for each value at some units, (batch, individual, channel, place)."""
        shape = places.shape[2], self._clean.shape[1]
        draw = self._draw(shape[0] * shape[1], numbers, f"{use}, signs").unflatten(2, shape)
        up = (draw >= (1 + self._zeros) / 2).to(torch.int8)
        down = ((draw >= self._zeros) & (up == 0)).to(torch.int8)
        signs: Tensor = (up - down).transpose(2, 3)
        return signs

    def _draw(self, count: int, numbers: range, use: str) -> Tensor:
        """Each individual's by itself, so that it does not matter how many are made at once."""
        rng, use = self._problem.rng, f"{self.use}, {use}"
        return torch.stack([rng.uniform(count, step=one, use=use) for one in numbers], dim=1)


def _take_in(people: Individuals, come: Tensor, comes: Tensor, signs: Tensor) -> Individuals:
    """``people`` with the chosen units added."""
    inside = people.members.gather(2, come) | comes
    signs = torch.where(comes.unsqueeze(2), signs, take(people.signs, come))
    return Individuals(people.members.scatter(2, come, inside), _put(people.signs, come, signs))


def _put(signs: Tensor, places: Tensor, values: Tensor) -> Tensor:
    return signs.scatter(3, places.unsqueeze(2).expand_as(values), values)
