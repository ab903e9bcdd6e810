"""The label of a group: which kind of noise it is.

O is its obscuring effect, L its leading effect. The tolerance is 5 % of the change of the margin
divided by the number of groups; the ratio is 2. The first line that holds gives the label:

    inert               neither |O| nor |L| is above the tolerance
    counter-productive  O + L is below minus the tolerance: the attack would do better without it
    obscuring           O is above the tolerance and at least the ratio times L
    leading             L is above the tolerance and at least the ratio times O
    mixed               everything else

An estimate is *undecided* if a pair (O, L) within two standard errors has another label. These
pairs form an ellipse, which includes the correlation of the two errors.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.explain.noise.coalitions import Effects
from pinprick.explain.noise.shapley import Covariance
from pinprick.types import PerImage

LABELS = ("obscuring", "leading", "mixed", "inert", "counter-productive", "undecided")
_OBSCURING, _LEADING, _MIXED, _INERT, _COUNTER, _UNDECIDED = range(6)
_DIRECTIONS = 64  # points of the ellipse that are tested

Kinds = Int[Tensor, "batch group"]  # indices into LABELS


def label_effects(
    effects: Effects,
    tolerance: PerImage,
    ratio: float,
    covariance: Covariance | None = None,
) -> Kinds:
    """The label of each group, as an index into ``LABELS``.

    Args:
        effects: The obscuring and the leading effect of each group.
        tolerance: Effects up to this size count as zero, per image.
        ratio: How many times larger one effect must be than the other.
        covariance: Covariance of the estimates, as in ``Shapley``; None if they are exact.
    """
    kinds = _rule(effects, tolerance.view(-1, 1), ratio)
    undecided = ~effects.isfinite().all(dim=2)
    if covariance is not None:
        for shift in _ellipse(covariance):
            undecided |= _rule(effects + shift, tolerance.view(-1, 1), ratio) != kinds
    return kinds.masked_fill(undecided, _UNDECIDED)


def undecided_labels(
    effects: Effects, tolerance: PerImage, ratio: float, covariance: Covariance
) -> Bool[Tensor, "batch group"]:
    """The groups whose label is undecided."""
    return label_effects(effects, tolerance, ratio, covariance) == _UNDECIDED


def _rule(effects: Effects, tolerance: Tensor, ratio: float) -> Kinds:
    obscuring, leading = effects.unbind(dim=2)
    kinds = torch.full_like(obscuring, _MIXED, dtype=torch.long)
    rules = (  # in reverse: a later line overrides an earlier one
        (_LEADING, (leading > tolerance) & (leading >= ratio * obscuring.clamp_min(0))),
        (_OBSCURING, (obscuring > tolerance) & (obscuring >= ratio * leading.clamp_min(0))),
        (_COUNTER, obscuring + leading < -tolerance),
        (_INERT, (obscuring.abs() <= tolerance) & (leading.abs() <= tolerance)),
    )
    for kind, holds in rules:
        kinds = kinds.masked_fill(holds, kind)
    return kinds


def _ellipse(covariance: Covariance) -> list[Float[Tensor, "batch group 2"]]:
    """Shifts by two standard errors in all directions."""
    first, second, mixed = covariance.unbind(dim=2)
    along = first.sqrt()
    slant = torch.where(along > 0, mixed / along.clamp_min(1e-300), 0)
    across = (second - slant.square()).clamp_min(0).sqrt()
    shifts = []
    for turn in range(_DIRECTIONS):
        cos, sin = (f(2 * math.pi * turn / _DIRECTIONS) for f in (math.cos, math.sin))
        shifts.append(2 * torch.stack([along * cos, slant * cos + across * sin], dim=2))
    return shifts
