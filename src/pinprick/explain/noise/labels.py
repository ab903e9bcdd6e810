"""The kind of noise that a group is, by one stated rule.

From its obscuring effect O and its leading effect L, a tolerance (5 % of the whole change of the
margin, divided by the number of groups) and a ratio (2), the first that holds:

    inert               neither |O| nor |L| is above the tolerance
    counter-productive  O + L is below minus the tolerance: the attack would do better without it
    obscuring           O is above the tolerance and at least the ratio times L
    leading             L is above the tolerance and at least the ratio times O
    mixed               all else

An estimate is *undecided* if a pair (O, L) within two standard errors of it has another label.
The ellipse of those pairs takes in how the two errors go together, so each line of the rule is
cleared by two standard errors of the very difference it is about.
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
_DIRECTIONS = 64  # points of the ellipse that are looked at

Kinds = Int[Tensor, "batch group"]  # numbers into LABELS


def label_effects(
    effects: Effects,
    tolerance: PerImage,
    ratio: float,
    covariance: Covariance | None = None,
) -> Kinds:
    """The label of each group, as a number into ``LABELS``.

    Args:
        effects: The obscuring and the leading effect of each group.
        tolerance: What is too little to count, for each image.
        ratio: How many times larger one effect must be than the other.
        covariance: Of the estimates, as ``Shapley`` has it; None where they are exact.
    """
    kinds = _rule(effects, tolerance.view(-1, 1), ratio)
    undecided = ~effects.isfinite().all(dim=2)
    if covariance is not None:
        for shift in _ellipse(covariance):
            undecided |= _rule(effects + shift, tolerance.view(-1, 1), ratio) != kinds
    return kinds.masked_fill(undecided, _UNDECIDED)


def open_labels(
    effects: Effects, tolerance: PerImage, ratio: float, covariance: Covariance
) -> Bool[Tensor, "batch group"]:
    """The groups whose label is undecided."""
    return label_effects(effects, tolerance, ratio, covariance) == _UNDECIDED


def _rule(effects: Effects, tolerance: Tensor, ratio: float) -> Kinds:
    obscuring, leading = effects.unbind(dim=2)
    kinds = torch.full_like(obscuring, _MIXED, dtype=torch.long)
    rules = (  # the first that holds comes last
        (_LEADING, (leading > tolerance) & (leading >= ratio * obscuring.clamp_min(0))),
        (_OBSCURING, (obscuring > tolerance) & (obscuring >= ratio * leading.clamp_min(0))),
        (_COUNTER, obscuring + leading < -tolerance),
        (_INERT, (obscuring.abs() <= tolerance) & (leading.abs() <= tolerance)),
    )
    for kind, holds in rules:
        kinds = kinds.masked_fill(holds, kind)
    return kinds


def _ellipse(covariance: Covariance) -> list[Float[Tensor, "batch group 2"]]:
    """Steps of two standard errors in all directions."""
    first, second, mixed = covariance.unbind(dim=2)
    along = first.sqrt()
    slant = torch.where(along > 0, mixed / along.clamp_min(1e-300), 0)
    across = (second - slant.square()).clamp_min(0).sqrt()
    steps = []
    for turn in range(_DIRECTIONS):
        cos, sin = (f(2 * math.pi * turn / _DIRECTIONS) for f in (math.cos, math.sin))
        steps.append(2 * torch.stack([along * cos, slant * cos + across * sin], dim=2))
    return steps
