"""The paper's claim by place, with its direction, against every shift of the change.

The paper says that obscuring noise lies on the features of the true class, and leading noise on
those of the adversarial class. Of the groups that are purely obscuring or leading and lie on the
top area of exactly one of the two maps, some lie as said and the others the other way round. By
chance the change lies anywhere: the null is the mean over all cyclic shifts of the change over the
image, which a Fourier transform computes without sampling.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.explain.noise.explanation import Explanation, Group
from pinprick.explain.noise.spatial import top_area

_HALF = 0.5 + 1e-9  # of its change must lie in an area; the transform rounds


@dataclass(frozen=True)
class Places:
    """Groups of one image on exactly one map: their numbers, and by chance."""

    as_said: float = 0.0
    against: float = 0.0
    null_as_said: float = 0.0
    null_against: float = 0.0

    def __add__(self, other: "Places") -> "Places":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Places(*(mine + theirs for mine, theirs in pairs))


def places(told: Explanation, true_map: Tensor, adversarial_map: Tensor, top: float) -> Places:
    """The groups of one image; none where a map is zero.

    Args:
        told: The explanation, with the pixels of its groups.
        true_map: The map of the clean image for its label.
        adversarial_map: The map of the adversarial image for the class that it reached.
        top: Share of the pixels in the top area.
    """
    total = Places()
    if not (true_map > 0).any() or not (adversarial_map > 0).any():
        return total
    areas = [top_area(one.unsqueeze(0), top)[0].double() for one in (true_map, adversarial_map)]
    for group in told.groups:
        if group.shapley.label in ("obscuring", "leading"):
            own, other = areas if group.shapley.label == "obscuring" else areas[::-1]
            inside = [_over_shifts(group, area) > _HALF for area in (own, other)]
            said, against = inside[0] & ~inside[1], inside[1] & ~inside[0]
            total += Places(
                float(said[0, 0]),
                float(against[0, 0]),
                float(said.double().mean()),
                float(against.double().mean()),
            )
    return total


def _over_shifts(group: Group, area: Tensor) -> Tensor:
    """The share of a group's change that lies in an area, for every shift; [0, 0] is none."""
    weight = torch.zeros_like(area)
    for (row, column), before, after in zip(group.pixels, group.before, group.after, strict=True):
        changes = zip(before, after, strict=True)
        weight[row, column] = sum(abs(new - old) for old, new in changes)
    weight = weight / weight.sum()
    spectrum = torch.fft.rfft2(area) * torch.fft.rfft2(weight).conj()
    shares: Tensor = torch.fft.irfft2(spectrum, s=area.shape)
    return shares
