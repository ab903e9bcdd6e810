"""Gradients of several losses from one forward pass, one after the other or several at once.

A GPU is through with a small network before the next kernel can be started, so that a backward
pass takes as long for 64 images as for 256. There the passes of several losses go through the
network as one (``torch.vmap``): as many as have ``AT_ONCE`` image values together. For 64 images
of 32 px that is ten losses; 8 images of 224 px go one loss at a time and take no more memory than
ever. A processor has nothing to gain by it and is not in the table.

Not every network allows it: a step of one's own may raise an error, and a few of torch's give
wrong gradients without one (``cdist``). So the first gradients made at once are held against one
that was made alone. Where anything is wrong, all go one after the other from then on.

The switch of ``torch.autograd.grad`` for this, ``is_grads_batched``, takes convolutions and
normalisations one loss at a time all the same.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pinprick.types import Counts, Images

AT_ONCE = {"cuda": 2**21}  # image values that go back together, by the kind of device
_ROUNDING = 0.01  # the share of a gradient that may be another when it is made at once with others


class Backward:
    """The backward passes of a problem, several at once unless the network does not allow it.

    Args:
        counts: Where the passes of each image are counted when they come through.
        together: Whether several may go at once at all.
    """

    def __init__(self, counts: Counts, together: bool) -> None:
        self._counts, self._together, self._proven = counts, together, False

    def gradients(self, totals: Tensor, images: Images) -> Iterator[Images]:
        """The gradient of each of the ``totals``; a pass counts when its gradient is asked for."""
        units = torch.eye(len(totals), dtype=totals.dtype, device=totals.device)
        while len(units):
            some = units[: _fitting(images) if self._together else 1]
            if len(some) == 1:
                yield torch.autograd.grad(totals, images, some[0], retain_graph=len(units) > 1)[0]
            else:
                made = self._at_once(totals, images, some)
                if made is None:
                    self._together = False
                    continue
                for grad in made.gradients:
                    self._counts.add_(made.passes)
                    yield grad
            units = units[len(some) :]

    def _at_once(self, totals: Tensor, images: Images, units: Tensor) -> "_Made | None":
        """The gradients along the ``units``, not counted yet; None where they cannot be had."""

        def along(unit: Tensor) -> Images:
            return torch.autograd.grad(totals, images, unit, retain_graph=True)[0]

        before = self._counts.clone()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="There is a performance drop")
                gradients = torch.vmap(along)(units)
            passes = self._counts - before
            self._proven = self._proven or _alike(gradients[-1], along(units[-1]))
            return _Made(gradients, passes) if self._proven else None
        except Exception:  # of any kind, from a step of one's own; one by one it comes again
            return None
        finally:
            self._counts.copy_(before)


class _Made(NamedTuple):
    """Gradients that were made at once, and what one of them costs each image in passes."""

    gradients: Tensor
    passes: Counts


def _fitting(images: Images) -> int:
    """How many passes may go at once."""
    return max(1, AT_ONCE.get(images.device.type, 0) // max(1, images.numel()))


def _alike(one: Images, other: Images) -> bool:
    """Whether two gradients are the same but for rounding, and for what is not finite."""
    one, other = one.nan_to_num(0.0, 0.0, 0.0), other.nan_to_num(0.0, 0.0, 0.0)
    return bool((one - other).norm() <= _ROUNDING * other.norm())
