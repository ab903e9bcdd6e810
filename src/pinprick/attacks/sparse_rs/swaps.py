"""The random operators of Sparse-RS: the set it begins with, a swap in it, and the colours.

Images are seen as (batch, channel, unit): for elements there is one channel, and a unit for each
value. A random key for each unit decides: the largest keys inside the set go, the largest outside
come in, which draws both sets without replacement.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.parts.largest import find_largest
from pinprick.parts.units import Units, take
from pinprick.problem import Problem
from pinprick.types import Counts, Images, Mask, Rows

_PATTERNS = 16  # channels of a pixel among which at least one is flipped
_ABOVE_ZERO = 2**-25  # half a step of the random numbers, so that no key is zero


@dataclass(frozen=True)
class State:
    """Images in the making.

    Attributes:
        adv: The images, (batch, channel, unit).
        members: Which units are in the set, (batch, unit).
    """

    adv: Tensor
    members: Tensor

    def __getitem__(self, rows: Rows) -> "State":
        return State(self.adv[rows], self.members[rows])

    def where(self, take: Mask, other: "State") -> "State":
        """This where ``take`` says so, ``other`` elsewhere."""
        return State(
            torch.where(take.view(-1, 1, 1), self.adv, other.adv),
            torch.where(take.view(-1, 1), self.members, other.members),
        )

    def as_images(self, like: Images) -> Images:
        return self.adv.view_as(like)


class Swaps:
    """Proposals for each image of a problem, from its own random numbers.

    Attributes:
        problem: The images.

    Args:
        problem: The images.
        units: What the set is made of.
        k: How many units are in it; as many as may change, where those are fewer.
        trial: Tells the random numbers of one search from those of another.
    """

    def __init__(self, problem: Problem, units: Units, k: Counts, trial: int) -> None:
        self.problem, self._units, self._use = problem, units, f"sparse_rs, trial {trial}"
        self._clean = units.planes(problem.images)
        allowed = problem.allowed
        self._open = None if allowed is None else units.planes(allowed)
        free = torch.ones_like(self._clean[:, 0], dtype=torch.bool)
        self._free = free if self._open is None else self._open.any(dim=1)
        self._k = torch.minimum(k, self._free.sum(dim=1))
        self._spare = self._free.sum(dim=1) - self._k
        self._most = int(self._k.max()) if len(k) else 0
        self._pool = self._free & (self._spare > 0).unsqueeze(1)
        self._channel = torch.arange(self._clean.shape[1], device=k.device).unsqueeze(1)
        self._planned: tuple[float, Counts, int, Mask] | None = None

    def __getitem__(self, rows: Rows) -> "Swaps":
        cut = object.__new__(Swaps)
        cut.__dict__.update(self.__dict__)
        cut.problem = self.problem[rows]
        cut._open = None if self._open is None else self._open[rows]
        for name in ("_clean", "_free", "_k", "_spare", "_pool"):
            setattr(cut, name, getattr(self, name)[rows])
        cut._planned = None
        return cut

    def begin(self, near: Images) -> State:
        """A set of k units at random corners; those that ``near`` changed come first, as there.

        Where it changed fewer than k, the others stay as they are until they are swapped, so that
        the first question is about ``near`` itself.
        """
        found = self._units.planes(near)
        changed = (found != self._clean).any(dim=1)
        keys = self._keys(0) + changed  # above one where near changed something
        places, chosen = find_largest(keys * self._free, self._k, self._most)
        adv = self._put(self._clean, places, chosen, self._corners(places, 0))
        members = torch.zeros_like(self._free).scatter(1, places, chosen)
        begun = changed.any(dim=1, keepdim=True) & members  # what was not changed is clean there
        return State(torch.where(begun.unsqueeze(1), found, adv), members)

    def propose(self, state: State, share: float, step: int) -> State:
        """The set with a share of its units put back and as many others taken in."""
        if self._planned is None or share != self._planned[0]:
            self._planned = share, *self._plan(share)
        _, count, most, single = self._planned
        outside = self._pool ^ state.members  # the members themselves where nothing is left
        keys = self._keys(step).unsqueeze(1) * torch.stack((state.members, outside), dim=1)
        places, chosen = find_largest(keys, count.unsqueeze(1), most)
        (go, come), (goes, comes) = places.unbind(dim=1), chosen.unbind(dim=1)
        colours = self._other_than(take(state.adv, come), come, step, single)
        adv = self._put(state.adv, go, goes, take(self._clean, go))
        members = state.members.scatter(1, go, ~goes & state.members.gather(1, go))
        members = members.scatter(1, come, comes | members.gather(1, come))
        return State(self._put(adv, come, comes, colours), members)

    def _plan(self, share: float) -> tuple[Counts, int, Mask]:
        """How many are swapped for each image, a bound on that, and where it is a single one."""
        room = torch.where(self._spare == 0, self._k, self._spare)
        count = torch.minimum(_swapped(share, self._k), room)
        return count, int(_swapped(share, torch.tensor([self._most]))), count == 1

    def _keys(self, step: int) -> Tensor:
        units = self._free.shape[1]
        return self.problem.rng.uniform(units, step=step, use=f"{self._use}, keys") + _ABOVE_ZERO

    def _corners(self, places: Tensor, step: int) -> Tensor:
        """A random corner for each of some places, (batch, channel, place), as whole numbers."""
        shape = places.shape[1], self._clean.shape[1]
        bits = self.problem.rng.integers(2, *shape, step=step, use=f"{self._use}, colours")
        return bits.transpose(1, 2)

    def _other_than(self, current: Tensor, places: Tensor, step: int, single: Mask) -> Tensor:
        """Random corners; where one is single and the current one, drawn among all that are not.

        The colour at hand is a corner there, so some of its free channels are flipped: the set of
        them is one of all but the empty set, each as likely as the others.
        """
        colours, channels = self._corners(places, step), self._clean.shape[1]
        draw = self.problem.rng.uniform(places.shape[1], step=step, use=f"{self._use}, flips")
        same: Tensor = colours == current
        if self._open is None:
            rank, draw = self._channel, draw * (2 ** min(channels, _PATTERNS) - 1)
        else:
            free = take(self._open, places)
            same, rank = same | ~free, free.cumsum(dim=1) - 1
            draw = draw * (2 ** (rank[:, -1] + 1).clamp(max=_PATTERNS) - 1)
        again = same.all(dim=1, keepdim=True) & single.view(-1, 1, 1)
        flips = 1 + draw.long().unsqueeze(1)
        return colours ^ ((flips >> rank.clamp(0, _PATTERNS)) & again)

    def _put(self, adv: Tensor, places: Tensor, chosen: Tensor, colours: Tensor) -> Tensor:
        """``adv`` with new colours at the chosen places, in the channels that may change."""
        current = take(adv, places)
        put = chosen.unsqueeze(1)
        if self._open is not None:
            put = put & take(self._open, places)
        where = places.unsqueeze(1).expand_as(current)
        return adv.scatter(2, where, torch.where(put, colours.to(adv.dtype), current))


def _swapped(share: float, k: Counts) -> Counts:
    """How many of k are swapped, m."""
    return (share * k.float()).long().clamp_min(1)
