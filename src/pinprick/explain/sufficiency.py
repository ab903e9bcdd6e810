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

from pinprick.explain.coalitions import Coalitions
from pinprick.explain.labels import LABELS, Kinds
from pinprick.explain.states import States, states

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
