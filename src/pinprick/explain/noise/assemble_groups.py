"""The groups of one image, in plain numbers."""

import math
from typing import Any

from torch import Tensor

from pinprick.explain.noise.changes import as_values
from pinprick.explain.noise.explanation import (
    AblationEffect,
    Effect,
    Group,
    Place,
    ShapleyEffect,
    Values,
)
from pinprick.explain.noise.labels import LABELS
from pinprick.explain.noise.measured import Measured
from pinprick.explain.noise.spatial import PLACES, Spatial
from pinprick.types import Picture


def groups_of(
    measured: Measured, i: int, clean: Picture, adversarial: Picture
) -> tuple[Group, ...]:
    """All groups of image ``i``, which is given before and after; the tensors are on the CPU."""
    places = (measured.groups.index[i] >= 0).nonzero()
    numbers = measured.groups.index[i][places[:, 0], places[:, 1]]
    sizes = measured.size[i][places[:, 0], places[:, 1]].double()
    whole = float(sizes.sum())
    groups = []
    for number in range(int(measured.groups.count[i])):
        own = numbers == number
        rows, columns = places[own].unbind(dim=1)
        before, after = (as_values(of[:, rows, columns].T) for of in (clean, adversarial))
        groups.append(_group(measured, i, number, places[own], sizes[own], whole, before, after))
    return tuple(groups)


def _group(
    measured: Measured,
    i: int,
    number: int,
    pixels: Tensor,
    sizes: Tensor,
    whole: float,
    before: Values,
    after: Values,
) -> Group:
    weight = float(sizes.sum())
    centre = (pixels * sizes.unsqueeze(1)).sum(dim=0) / weight
    shapley = _shapley(measured, i, number)
    path = None
    if measured.path is not None and measured.path_kinds is not None:
        path = Effect(**_effect(measured.path.parts, measured.path_kinds, i, number))
    low, high = pixels.amin(dim=0).tolist(), pixels.amax(dim=0).tolist()
    return Group(
        number=number,
        pixels=tuple((row, column) for row, column in pixels.tolist()),
        before=before,
        after=after,
        centre=(float(centre[0]), float(centre[1])),
        box=(low[0], low[1], high[0], high[1]),
        weight=weight / whole,
        shapley=shapley,
        ablation=_ablation(measured, i, number),
        path=path,
        place=_place(measured.spatial, i, number, shapley.label),
    )


def _effect(effects: Tensor, kinds: Tensor, i: int, number: int) -> dict[str, Any]:
    obscuring, leading = effects[i, number].tolist()
    both = abs(obscuring) + abs(leading)
    return {
        "obscuring": obscuring,
        "leading": leading,
        "margin": obscuring + leading,
        "balance": (obscuring - leading) / both if both else 0.0,
        "label": LABELS[int(kinds[i, number])],
    }


def _shapley(measured: Measured, i: int, number: int) -> ShapleyEffect:
    first, second, mixed = measured.shapley.covariance[i, number].tolist()
    return ShapleyEffect(
        **_effect(measured.shapley.effects, measured.shapley_kinds, i, number),
        obscuring_error=math.sqrt(first),
        leading_error=math.sqrt(second),
        margin_error=math.sqrt(max(0.0, first + second + 2 * mixed)),
    )


def _ablation(measured: Measured, i: int, number: int) -> AblationEffect:
    removed = measured.ablation.removed[i, number].tolist()
    inserted = measured.ablation.inserted[i, number].tolist()
    return AblationEffect(
        **_effect(measured.ablation.both, measured.ablation_kinds, i, number),
        removed_obscuring=removed[0],
        removed_leading=removed[1],
        inserted_obscuring=inserted[0],
        inserted_leading=inserted[1],
    )


def _place(spatial: Spatial | None, i: int, number: int, label: str) -> Place | None:
    if spatial is None:
        return None
    place = PLACES[int(spatial.places[i, number])]
    agrees = place in (label, "overlap") and label in ("obscuring", "leading")
    return Place(
        label=place,
        true_share=float(spatial.weight_true[i, number]),
        adversarial_share=float(spatial.weight_adversarial[i, number]),
        strict=label if agrees else "",
    )
