"""Which changes suffice, and which are needed: families, groups one by one, single pixels.

Sufficiency puts one family of groups into the clean image: is the true class lost, is the rival
predicted? Necessity removes the family from the adversarial image: does the true class return?
Obscuring groups alone should lower the true class without settling on another. Leading groups alone
should raise the rival. Most images need both.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.explain.noise.coalitions import Coalitions, Effects, Outputs, as_model_output
from pinprick.explain.noise.explanation import Family
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
    """The model's outputs for each of ``FAMILIES``.

    Attributes:
        outputs: Per family, one row per image.
        members: The groups that are changed.
        sizes: How many groups the family itself has; an empty family is no test.
    """

    outputs: tuple[Outputs, ...]
    members: tuple[Bool[Tensor, "batch group"], ...]
    sizes: tuple[Int[Tensor, " batch"], ...]

    def families(self, i: int, label: int, rival: int) -> tuple[Family, ...]:
        """The families of image ``i``, whose true class is ``label``."""
        families = []
        for name, outputs, members, sizes in zip(
            FAMILIES, self.outputs, self.members, self.sizes, strict=True
        ):
            output = as_model_output(outputs[i].tolist())
            families.append(
                Family(
                    name=name,
                    size=int(sizes[i]),
                    changed=tuple(members[i].nonzero().squeeze(1).tolist()),
                    state=output,
                    leaves=output.guess != label,
                    reaches=output.guess == rival,
                )
            )
        return tuple(families)


def measure_families(coalitions: Coalitions, kinds: Kinds) -> Sufficiency:
    """One forward pass per family and image."""
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
        outputs=tuple(coalitions.outputs(part, rows) for part in logits.split(len(rows))),
        members=members,
        sizes=tuple(family.sum(dim=1) for family in families),
    )


@dataclass(frozen=True)
class Stages:
    """From clean to adversarial, one group at a time.

    Attributes:
        order: Numbers of the groups in the order in which they are added; groups that an image
            lacks come last.
        outputs: The model's outputs before the first group and after each. Stages after an image's
            last group repeat the adversarial image.
    """

    order: Int[Tensor, "batch group"]
    outputs: Float[Tensor, "batch stage 6"]


def add_one_by_one(coalitions: Coalitions, effects: Effects) -> Stages:
    """Add the groups of each image, the largest effect on the margin first; ties by number."""
    count, most = coalitions.groups.count, coalitions.groups.most
    margin = effects.sum(dim=2).masked_fill(~coalitions.everything, -torch.inf)
    order = margin.argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    stage = torch.arange(1, most, device=count.device)
    members = rank.unsqueeze(1) < stage.view(1, -1, 1)
    between = stage < count.unsqueeze(1)
    rows = torch.arange(len(count), device=count.device)
    clean, adversarial = (coalitions.outputs(logits, rows) for logits in coalitions.end_logits)
    outputs = adversarial.unsqueeze(1).repeat(1, most + 1, 1)
    outputs[:, 0] = clean
    which = rows.unsqueeze(1).expand_as(between)[between]
    if len(which):
        logits = coalitions.logits(which, members[between])
        outputs[:, 1:most][between] = coalitions.outputs(logits, which)
    return Stages(order, outputs)


def spare_pixels(coalitions: Coalitions, met: Mask, most: int) -> Counts:
    """How many changed pixels of each image can be restored, each by itself; -1 if not tested.

    Zero means that the change is minimal, as polishing by pixels should leave it. One forward pass
    per pixel.

    Args:
        coalitions: The images; their groups play no part.
        met: Which images meet the goal; the others are not tested.
        most: Images with more changed pixels are not tested, for the cost.
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
        restored = (pixels.index[some] == pixel.view(-1, 1, 1)).unsqueeze(1)
        with torch.no_grad():
            logits = part.logits(torch.where(restored, part.images, adversarial[some]))
        spare.index_add_(0, some, part.goal.met(logits).long())
    return spare
