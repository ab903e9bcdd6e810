"""What was measured on a batch of adversarial images, and its groups as plain numbers."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from pinprick.explain.maps.maps import PixelMaps
from pinprick.explain.noise.changes import as_values
from pinprick.explain.noise.coalitions import Effects
from pinprick.explain.noise.cross_checks import Ablation
from pinprick.explain.noise.explanation import AblationEffect, Effect, Group, ShapleyEffect
from pinprick.explain.noise.groups import Groups
from pinprick.explain.noise.labels import LABELS, Kinds
from pinprick.explain.noise.shapley import Shapley
from pinprick.explain.noise.spatial import Spatial
from pinprick.explain.noise.sufficiency import Stages, Sufficiency
from pinprick.explain.path_integral import Integral
from pinprick.types import Counts, Labels, PerImage, Picture


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Tensors with one row per image.

    Attributes:
        groups: The group of each changed pixel.
        size: Size of the change of each pixel, summed over its channels.
        rivals: The class that each image is led to.
        totals: The whole obscuring and leading effect.
        tolerance: Effects up to this size count as zero.
        shapley, ablation, path: Effects by three definitions; ``path`` is None without gradients.
        shapley_kinds, ablation_kinds, path_kinds: Their labels.
        stages: Model outputs as groups are added one by one.
        sufficiency: Model outputs for families of groups.
        spatial: Where the change lies on the maps; None without maps.
        spare: Number of pixels that can be restored, each by itself; -1 where not tested.
        forwards, backwards: Passes spent.
    """

    groups: Groups
    size: PixelMaps
    rivals: Labels
    totals: Float[Tensor, "batch 2"]
    tolerance: PerImage
    shapley: Shapley
    shapley_kinds: Kinds
    ablation: Ablation
    ablation_kinds: Kinds
    path: Integral | None
    path_kinds: Kinds | None
    stages: Stages
    sufficiency: Sufficiency
    spatial: Spatial | None
    spare: Counts
    forwards: Counts
    backwards: Counts

    def groups_of(self, i: int, clean: Picture, adversarial: Picture) -> tuple[Group, ...]:
        """All groups of image ``i``; the tensors and both pictures are on the CPU."""
        index = self.groups.index[i]
        pixels = (index >= 0).nonzero()
        rows, columns = pixels.unbind(dim=1)
        numbers, sizes = index[rows, columns], self.size[i][rows, columns].double()
        whole = float(sizes.sum())
        groups = []
        for number in range(int(self.groups.count[i])):
            own = numbers == number
            group = self._group(i, number, pixels[own], sizes[own], whole, clean, adversarial)
            groups.append(group)
        return tuple(groups)

    def _group(
        self,
        i: int,
        number: int,
        pixels: Tensor,
        sizes: Tensor,
        whole: float,
        clean: Picture,
        adversarial: Picture,
    ) -> Group:
        rows, columns = pixels.unbind(dim=1)
        weight = float(sizes.sum())
        centre = (pixels * sizes.unsqueeze(1)).sum(dim=0) / weight
        low, high = pixels.amin(dim=0).tolist(), pixels.amax(dim=0).tolist()
        shapley = self._shapley(i, number)
        return Group(
            number=number,
            pixels=tuple((row, column) for row, column in pixels.tolist()),
            before=as_values(clean[:, rows, columns].T),
            after=as_values(adversarial[:, rows, columns].T),
            centre=(float(centre[0]), float(centre[1])),
            box=(low[0], low[1], high[0], high[1]),
            weight=weight / whole,
            shapley=shapley,
            ablation=self._ablation(i, number),
            path=self._path(i, number),
            place=None
            if self.spatial is None
            else self.spatial.map_label(i, number, shapley.label),
        )

    def _shapley(self, i: int, number: int) -> ShapleyEffect:
        effect = _effect(self.shapley.effects, self.shapley_kinds, i, number)
        first, second, mixed = self.shapley.covariance[i, number].tolist()
        return ShapleyEffect(
            obscuring=effect.obscuring,
            leading=effect.leading,
            margin=effect.margin,
            balance=effect.balance,
            label=effect.label,
            obscuring_error=math.sqrt(first),
            leading_error=math.sqrt(second),
            margin_error=math.sqrt(max(0.0, first + second + 2 * mixed)),
        )

    def _ablation(self, i: int, number: int) -> AblationEffect:
        effect = _effect(self.ablation.both, self.ablation_kinds, i, number)
        removed = self.ablation.removed[i, number].tolist()
        inserted = self.ablation.inserted[i, number].tolist()
        return AblationEffect(
            obscuring=effect.obscuring,
            leading=effect.leading,
            margin=effect.margin,
            balance=effect.balance,
            label=effect.label,
            removed_obscuring=removed[0],
            removed_leading=removed[1],
            inserted_obscuring=inserted[0],
            inserted_leading=inserted[1],
        )

    def _path(self, i: int, number: int) -> Effect | None:
        if self.path is None or self.path_kinds is None:
            return None
        return _effect(self.path.parts, self.path_kinds, i, number)


def _effect(effects: Effects, kinds: Kinds, i: int, number: int) -> Effect:
    obscuring, leading = effects[i, number].tolist()
    both = abs(obscuring) + abs(leading)
    return Effect(
        obscuring=obscuring,
        leading=leading,
        margin=obscuring + leading,
        balance=(obscuring - leading) / both if both else 0.0,
        label=LABELS[int(kinds[i, number])],
    )
