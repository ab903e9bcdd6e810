"""What the obscuring groups do alone, and the leading ones; and what is left without them.

Sufficiency puts one family into the clean image: does it leave its class, does it become the
other? Necessity takes it from the adversarial image: does the true class come back? If the two
kinds of noise do what their names say, obscuring ones alone bring the true class down without
settling on another, leading ones alone raise the other, and most images need both.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pinprick.explain.noise.coalitions import Coalitions, States, states
from pinprick.explain.noise.groups import single_pixels
from pinprick.explain.noise.labels import LABELS, Kinds
from pinprick.types import Counts, Mask

FAMILIES = (
    "obscuring alone",
    "leading alone",
    "obscuring and leading",
    "without obscuring",
    "without leading",
)


@dataclass(frozen=True)
class Sufficiency:
    """What the model says of each family of groups.

    Attributes:
        states: What the model says, for each of ``FAMILIES``, one row an image.
        members: Which groups are changed in it.
        sizes: How many groups the family itself has; a family of none is no test.
    """

    states: tuple[States, ...]
    members: tuple[Bool[Tensor, "batch group"], ...]
    sizes: tuple[Int[Tensor, " batch"], ...]


def ask_families(coalitions: Coalitions, kinds: Kinds) -> Sufficiency:
    """Ask about the five families of every image."""
    everything = coalitions.everything
    obscuring = everything & (kinds == LABELS.index("obscuring"))
    leading = everything & (kinds == LABELS.index("leading"))
    members = (
        obscuring,
        leading,
        obscuring | leading,
        everything & ~obscuring,
        everything & ~leading,
    )
    families = (obscuring, leading, obscuring | leading, obscuring, leading)
    rows = torch.arange(len(coalitions), device=everything.device)
    logits = coalitions.logits(rows.repeat(len(members)), torch.cat(members))
    return Sufficiency(
        states=tuple(
            states(part, coalitions.classes, coalitions.gauge) for part in logits.split(len(rows))
        ),
        members=members,
        sizes=tuple(family.sum(dim=1) for family in families),
    )


# Can any changed pixel be spared? Each is put back alone, and the goal looked at again.
#
# An explanation of a change that is larger than it has to be explains what need not be there. So a
# result is polished first (``pinprick.polish`` with ``unit="pixels"``), and here it is seen whether
# that is so: no pixel can be spared, or so many can, each by itself. One pass a pixel.


def spare_pixels(coalitions: Coalitions, met: Mask, most: int) -> Counts:
    """How many changed pixels each image could do without, one at a time; -1 if not looked at.

    Args:
        coalitions: What can be asked; its own groups play no part.
        met: Which images meet the goal; the others have nothing to lose and are not looked at.
        most: Images with more changed pixels are not looked at, for the cost.
    """
    problem, adversarial = coalitions.problem, coalitions.adversarial
    pixels = single_pixels(coalitions.groups.index >= 0)
    rows = (met & (pixels.count <= most)).nonzero().squeeze(1)
    spare = torch.full_like(pixels.count, -1)
    spare[rows] = 0
    if not int(pixels.count[rows].sum()):
        return spare
    which = rows.repeat_interleave(pixels.count[rows])
    start = pixels.count[rows].cumsum(dim=0) - pixels.count[rows]
    number = torch.arange(len(which), device=which.device)
    number = number - start.repeat_interleave(pixels.count[rows])
    for some, pixel in zip(
        which.split(coalitions.block), number.split(coalitions.block), strict=True
    ):
        part = problem[some]
        back = (pixels.index[some] == pixel.view(-1, 1, 1)).unsqueeze(1)
        with torch.no_grad():
            logits = part.logits(torch.where(back, part.images, adversarial[some]))
        spare.index_add_(0, some, part.goal.met(logits).long())
    return spare
