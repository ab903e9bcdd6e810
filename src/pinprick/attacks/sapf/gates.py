"""Which elements are to change: gates between shut and open, driven to one or the other by ADMM.

Wu, Ghanem: lp-box ADMM: a versatile framework for integer programming. TPAMI 2019.

A vector is binary where it lies both in the cube [0, 1]^n and on the sphere around (1/2, ..., 1/2)
through the corners of that cube. So the gates ``G`` have a copy in each, a third that pays for its
groups, and a multiplier for each copy and for the sum:

    y1 = cube(G + z1 / r),   y2 = sphere(G + z2 / r),   y3 = shrink(G + z3 / r)
    G  = G - s * (pull + sum_i (z_i + r (G - y_i)) + z4 + r4 (sum G - k))
    z_i += r (G - y_i),      z4 += r4 (sum G - k)

The penalties ``r`` and ``r4`` grow from step to step, until neither the copies nor k can be left.
"""

import torch
from torch import Tensor

from pinprick.parts.groups import shrink_groups
from pinprick.types import Counts, PerImage

_MOST, _MOST_GROUPS, _MOST_SUM = 20.0, 100.0, 0.01  # where the penalties end
_SIZE = 3072  # elements of the image that the penalty of the sum is given for


class Gates:
    """A gate for each element, with its copies and multipliers; all begin open.

    Attributes:
        values: How far each is open; zero where nothing may change.

    Args:
        free: One where values may change, zero elsewhere.
        k: How many gates of each image are to be open.
        group: Side of a group, in pixels.
        group_weight: What a group pays for the length of its gates.
    """

    def __init__(self, free: Tensor, k: Counts, group: int, group_weight: float) -> None:
        self._free, self._group, self._group_weight = free, group, group_weight
        self._number, self._k = _wide(free.flatten(1).sum(dim=1)), _wide(k.to(free.dtype))
        self.values = free
        self._duals = [torch.zeros_like(free) for _ in range(3)]
        self._dual_sum = torch.zeros_like(self._k)

    def step(self, pull: Tensor, step_size: float, rho: float, rho_sum: float) -> None:
        """One step; ``pull`` is the gradient of all that is no constraint."""
        penalties = (min(rho, _MOST), min(rho, _MOST), min(rho, _MOST_GROUPS))
        each = min(rho_sum, _MOST_SUM) * _SIZE / self._number
        copies = self._copies(penalties)
        towards = pull + self._dual_sum + each * self._excess()
        for dual, penalty, copy in zip(self._duals, penalties, copies, strict=True):
            towards = towards + dual + penalty * (self.values - copy)
        self.values = self._free * (self.values - step_size * towards)
        for dual, penalty, copy in zip(self._duals, penalties, copies, strict=True):
            dual += penalty * (self.values - copy)
        self._dual_sum = self._dual_sum + each * self._excess()

    def _copies(self, penalties: tuple[float, float, float]) -> tuple[Tensor, Tensor, Tensor]:
        """The nearest points in the cube and on the sphere, and the one with shrunk groups."""
        cube, sphere, groups = (
            self.values + dual / penalty
            for dual, penalty in zip(self._duals, penalties, strict=True)
        )
        return (
            cube.clamp(0, 1),
            into_sphere(sphere, self._free),
            shrink_groups(groups, self._group_weight / penalties[2], self._group),
        )

    def _excess(self) -> Tensor:
        """How much more than k is open."""
        return _wide(self.values.flatten(1).sum(dim=1)) - self._k


def into_sphere(point: Tensor, free: Tensor) -> Tensor:
    """The nearest point on the sphere through all binary ones, where ``free`` is one."""
    away = free * (point - 0.5)
    length = away.flatten(1).square().sum(dim=1).sqrt().clamp_min(torch.finfo(point.dtype).tiny)
    radius = free.flatten(1).sum(dim=1).sqrt() / 2
    return free * (0.5 + away * _wide(radius / length))


def _wide(values: PerImage) -> Tensor:
    return values.view(-1, 1, 1, 1)
