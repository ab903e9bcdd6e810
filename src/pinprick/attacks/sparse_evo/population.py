"""The population of SparseEvo: for each image some sets of units that are taken from its start.

Sets are masks of shape (batch, unit), several of them (batch, member, unit). A child lies inside
the best set and lacks at least one of its units. So one that fools is nearer to the clean image
than any other, in whatever norm: it is the new best, and no distance has to be compared.
"""

import torch
from torch import Tensor

from pinprick.parts.largest import open_largest
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Labels, Mask, Rows

_ABOVE_ZERO = 2**-25  # half a step of the random numbers, so that no key is zero


class Population:
    """Sets of units, all of which fool, in the order of their distance from the clean image.

    Attributes:
        masks: The sets, (batch, member, unit).
        order: The members of each image by their distance, the nearest first, (batch, member).
        tried: Units without which the best is known not to fool, (batch, unit).

    Args:
        images: The clean images.
        start: Images that fool; the sets are parts of where they differ.
        units: What a set is made of.
        size: How many members there are, all of them the whole set at first.
    """

    def __init__(self, images: Images, start: Images, units: Units, size: int) -> None:
        self._images, self._start, self._units = images, start, units
        whole = units.changed(start, images)
        self.masks = whole.unsqueeze(1).repeat(1, size, 1)
        self.order = torch.arange(size, device=whole.device).repeat(len(whole), 1)
        self.tried = torch.zeros_like(whole)
        self._row = torch.arange(len(whole), device=whole.device)

    def __getitem__(self, rows: Rows) -> "Population":
        cut = object.__new__(Population)
        cut._units = self._units
        for name in ("_images", "_start", "masks", "order", "tried"):
            setattr(cut, name, getattr(self, name)[rows])
        cut._row = torch.arange(len(cut.order), device=cut.order.device)
        return cut

    @property
    def best(self) -> Tensor:
        """The nearest set."""
        return self._member(self.order[:, 0])

    @property
    def finished(self) -> Mask:
        """Where one unit is left, or no child can be made that was not asked about before."""
        best = self.best
        count, stuck = best.sum(dim=1), (self.tried | ~best).all(dim=1)
        if stuck.any():  # members that lack a unit of the best may still make other children
            lacking = (best[stuck].unsqueeze(1) & ~self.masks[stuck]).flatten(1).any(dim=1)
            stuck[stuck.clone()] = ~lacking | (count[stuck] == 2)
        return stuck | (count <= 1)

    def thinned(
        self, problem: Problem, rows: Labels, number: Counts, most: int, step: int
    ) -> Tensor:
        """The whole set of some images without a number of its units, for a first member."""
        whole = self._units.changed(self._start[rows], self._images[rows])
        return whole & ~_draw(problem, whole, number, most, step, "sparse_evo, first")

    def place(self, rows: Labels, member: Labels, sets: Tensor, chosen: Mask) -> None:
        """Put ``sets`` in the place of one member of some images, where ``chosen``."""
        self.masks[rows[chosen], member[chosen]] = sets[chosen]

    def rank(self) -> None:
        """Order the members by their l2 distance from the clean image."""
        squares = (self._start - self._images).double().square()
        distance = (self._units.total(squares).unsqueeze(1) * self.masks).sum(dim=2)
        self.order = distance.argsort(dim=1, stable=True)

    def child(self, problem: Problem, *, crossover: float, mutation: float, step: int) -> Tensor:
        """What the best has in common with a mixture of two others, less some units."""
        rng, size, best = problem.rng, self.order.shape[1], self.best
        one = rng.integers(size - 1, step=step, use="sparse_evo, one")
        two = rng.integers(size - 2, step=step, use="sparse_evo, two")
        two = two + (two >= one)  # never the same, and neither is the best
        first, second = (
            self._member(self.order.gather(1, 1 + rank.unsqueeze(1)).squeeze(1))
            for rank in (one, two)
        )
        draw = rng.uniform(best.shape[1], step=step, use="sparse_evo, cross")
        crossed = best & torch.where(draw < crossover, first, second)
        count = crossed.sum(dim=1)
        number = torch.minimum((mutation * count.double()).long().clamp_min(1), count - 1)
        fresh = crossed & ~self.tried  # to do without one of the others was tried in vain
        again = (number != 1) | (crossed != best).any(dim=1) | ~fresh.any(dim=1)
        spare = torch.where(again.unsqueeze(1), crossed, fresh)
        most = max(1, int(mutation * best.shape[1]))
        return crossed & ~_draw(problem, spare, number, most, step, "sparse_evo, mutate")

    def learn(self, child: Tensor, met: Mask) -> None:
        """Take in the children that fool in the place of the farthest; note what was in vain."""
        left_out = self.best & ~child
        single = (left_out.sum(dim=1) == 1) & ~met
        self.tried = (self.tried | (left_out & single.unsqueeze(1))) & ~met.unsqueeze(1)
        last = self.order[:, -1]
        self.masks[self._row, last] = torch.where(met.unsqueeze(1), child, self._member(last))
        self.order = torch.where(met.unsqueeze(1), self.order.roll(1, dims=1), self.order)

    def made(self, sets: Tensor, rows: Labels | None = None) -> Images:
        """The images that ``sets`` make, of all or of some."""
        images, start = self._images, self._start
        if rows is not None:
            images, start = images[rows], start[rows]
        return torch.where(self._units.spread(sets, images), start, images)

    def _member(self, which: Labels) -> Tensor:
        return self.masks[self._row, which]


def _draw(problem: Problem, sets: Tensor, number: Counts, most: int, step: int, use: str) -> Tensor:
    """A number of random units of each set; ``most`` bounds the numbers."""
    keys = problem.rng.uniform(sets.shape[1], step=step, use=use) + _ABOVE_ZERO
    return open_largest(keys * sets, number, most)
