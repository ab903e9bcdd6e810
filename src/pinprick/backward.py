"""Gradients of several losses from one forward pass, one after the other or several at once.

On a GPU a small network finishes before the next kernel can be started, so a backward pass takes
as long for 64 images as for 256. There several losses go through the network as one backward pass
(``torch.vmap``), as many as have ``AT_ONCE`` image values together. For 64 images of 32 px that is
ten losses; 8 images of 224 px go one loss at a time and need no extra memory. A CPU gains nothing,
so it is not in the table.

Not every network allows it. A custom operation may raise an error, and a few of torch's give wrong
gradients without one (``cdist``). So the first gradients made together are compared with one made
alone. Where they differ, all passes go one by one from then on.

``is_grads_batched`` of ``torch.autograd.grad`` is no alternative: it still takes convolutions and
normalisations one loss at a time. Gradients of one loss are made without ``grad_outputs``, whose
first use in a process imports sympy, which takes seconds.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pinprick.types import Counts, Images

AT_ONCE = {"cuda": 2**21}  # image values in one joint backward pass, by kind of device
_ROUNDING = 0.01  # relative difference allowed between a gradient made together and one alone


class Backward:
    """The backward passes of a problem, several together where the network allows it.

    Args:
        counts: The counters of backward passes per image.
        together: Whether several passes may be made together.
    """

    def __init__(self, counts: Counts, together: bool) -> None:
        self._counts, self._together, self._proven = counts, together, False

    def gradients(self, totals: Tensor, images: Images) -> Iterator[Images]:
        """The gradient of each of the ``totals``; a pass counts when its gradient is taken."""
        if len(totals) == 1:
            yield torch.autograd.grad(totals, images)[0]
            return
        done, units = 0, torch.eye(len(totals), dtype=totals.dtype, device=totals.device)
        while done < len(totals):
            some = units[done : done + (_fitting(images) if self._together else 1)]
            if len(some) == 1:
                more = done + 1 < len(totals)
                yield torch.autograd.grad(totals[done], images, retain_graph=more)[0]
            else:
                made = self._at_once(totals, images, some)
                if made is None:
                    self._together = False
                    continue
                for grad in made.gradients:
                    self._counts.add_(made.passes)
                    yield grad
            done += len(some)

    def _at_once(self, totals: Tensor, images: Images, units: Tensor) -> "_Made | None":
        """The gradients along the ``units``, not counted yet; None where the network fails."""

        def along(unit: Tensor) -> Images:
            return torch.autograd.grad(totals, images, unit, retain_graph=True)[0]

        before = self._counts.clone()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="There is a performance drop")
                gradients = torch.vmap(along)(units)
            passes = self._counts - before
            self._proven = self._proven or alike(gradients[-1], along(units[-1]))
            return _Made(gradients, passes) if self._proven else None
        except Exception:  # of any kind, from a custom operation; one by one it is raised again
            return None
        finally:
            self._counts.copy_(before)


class _Made(NamedTuple):
    """Gradients made together, and the passes per image that each of them counts."""

    gradients: Tensor
    passes: Counts


def _fitting(images: Images) -> int:
    """How many passes may be made together."""
    return max(1, AT_ONCE.get(images.device.type, 0) // max(1, images.numel()))


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors agree up to rounding; values that are not finite are ignored."""
    one, other = one.nan_to_num(0.0, 0.0, 0.0), other.nan_to_num(0.0, 0.0, 0.0)
    return bool((one - other).norm() <= _ROUNDING * other.norm())
