"""From what was measured on a batch to one ``Explanation`` per image, in plain numbers."""

import math
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from pinprick.explain.class_scores import rivals
from pinprick.explain.maps.maps import PixelMaps
from pinprick.explain.noise.changes import as_values
from pinprick.explain.noise.coalitions import Effects, as_model_output, outputs
from pinprick.explain.noise.cross_checks import Ablation
from pinprick.explain.noise.explanation import (
    AblationEffect,
    Effect,
    Explanation,
    Group,
    ShapleyEffect,
    Status,
)
from pinprick.explain.noise.groups import Groups
from pinprick.explain.noise.labels import LABELS, Kinds
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.shapley import Shapley
from pinprick.explain.noise.spatial import Spatial
from pinprick.explain.noise.structure import Structure
from pinprick.explain.noise.sufficiency import Stages, Sufficiency
from pinprick.explain.path_integral import Integral
from pinprick.result import AttackResult
from pinprick.types import Counts, PerImage, Picture

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Tensors with one row per image.

    Attributes:
        groups: The group of each changed pixel.
        size: Size of the change of each pixel, summed over its channels.
        totals: The whole obscuring and leading effect.
        tolerance: Effects up to this size count as zero.
        shapley, ablation, path: Effects by three definitions; ``path`` is None without gradients.
        shapley_kinds, ablation_kinds, path_kinds: Their labels.
        stages: Model outputs as groups are added one by one.
        sufficiency: Model outputs for families of groups.
        spatial: Where the change lies on the maps; None without maps.
        structure: How the change is laid out.
        spare: Number of pixels that can be restored, each by itself; -1 where not tested.
        forwards, backwards: Passes spent.
    """

    groups: Groups
    size: PixelMaps
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
    structure: Structure
    spare: Counts
    forwards: Counts
    backwards: Counts


def assemble(
    result: AttackResult, settings: NoiseSettings, measured: Measured | None
) -> list[Explanation]:
    """One explanation per image of a result; ``measured`` is None if no pixel changed."""
    known = _from_result(result, settings)
    if measured is None:
        return known
    measured, clean, adversarial = on_cpu((measured, result.images, result.adversarial))
    return [
        replace(
            _with_measured(explanation, measured, i),
            groups=_groups(measured, i, clean[i], adversarial[i]),
        )
        for i, explanation in enumerate(known)
    ]


def on_cpu(value: T) -> T:
    """The same value with its tensors on the CPU, also those in tuples and dataclasses."""
    moved: Any = value
    if isinstance(value, Tensor):
        moved = value.cpu()
    elif isinstance(value, tuple):
        moved = tuple(on_cpu(item) for item in value)
    elif is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: on_cpu(getattr(value, field.name)) for field in fields(value)}
        moved = replace(value, **changes)
    result: T = moved
    return result


def _from_result(result: AttackResult, settings: NoiseSettings) -> list[Explanation]:
    """Explanations as the result alone gives them: complete where no pixel changed."""
    classes = torch.stack([result.goal.labels, rivals(result)], dim=1)
    labels, led_to = classes.T.tolist()
    clean = outputs(result.clean_logits, classes, settings.gauge).tolist()
    ids, elements, targets = result.ids.tolist(), result.l0_elements.tolist(), result.goal.targets
    wanted = [None] * len(result) if targets is None else targets.tolist()
    statuses, untested = _statuses(result), _untested(result)
    explanations = []
    for i, pixels in enumerate(result.l0_pixels.tolist()):
        output = as_model_output(clean[i])
        explanations.append(
            Explanation(
                id=ids[i],
                model=result.model,
                attack=result.attack,
                status=statuses[i],
                remark=result.remarks[i],
                label=labels[i],
                target=wanted[i],
                rival=led_to[i],
                clean=output,
                adversarial=output,
                settings=asdict(settings),
                gauge=settings.gauge,
                changed_pixels=pixels,
                changed_elements=elements[i],
                most_spare_pixels=_most_spare(result, statuses[i], pixels, untested[i]),
                polished=str(result.attack.get("polished", "")),
                settled=None if untested[i] is None else untested[i] == 0,
                ratio=settings.ratio,
                stages=(output,),
            )
        )
    return explanations


def _statuses(result: AttackResult) -> list[Status]:
    rows = zip(result.success.tolist(), result.skipped.tolist(), strict=True)
    return ["skipped" if skipped else "fooled" if met else "failed" for met, skipped in rows]


def _untested(result: AttackResult) -> list[int | None]:
    """How many units polishing left untested in each image; None without polishing."""
    if result.unsettled is None:
        return [None] * len(result)
    return [None if units < 0 else units for units in result.unsettled.tolist()]


def _most_spare(
    result: AttackResult, status: Status, pixels: int, untested: int | None
) -> int | None:
    """Upper bound on the pixels that can be restored, by what polishing tested."""
    if status != "fooled" or not pixels:
        return None
    by_pixels = result.attack.get("polished") == "pixels" and untested is not None
    return untested if by_pixels else pixels


def _with_measured(explanation: Explanation, measured: Measured, i: int) -> Explanation:
    """The explanation with what was measured on image ``i``, its groups apart."""
    count = int(measured.groups.count[i])
    obscuring, leading = measured.totals[i].tolist()
    margin = obscuring + leading
    stages = [as_model_output(row) for row in measured.stages.outputs[i, : count + 1].tolist()]
    pairs, path = int(measured.shapley.pairs[i]), measured.path
    error = float(measured.shapley.covariance[i, :, :2].clamp_min(0).max().sqrt())
    spare, most_spare = int(measured.spare[i]), explanation.most_spare_pixels
    overlap = float(measured.structure.saliency_overlap[i])
    return replace(
        explanation,
        clean=stages[0],
        adversarial=stages[-1],
        spare_pixels=spare if spare >= 0 else 0 if most_spare == 0 else None,
        most_spare_pixels=spare if spare >= 0 else most_spare,
        obscuring=obscuring,
        leading=leading,
        margin=margin,
        obscuring_share=_share(obscuring, margin),
        tolerance=float(measured.tolerance[i]),
        method="sampled" if pairs else "exact",
        pairs=pairs,
        largest_error=_share(error, abs(margin)) if error else 0.0,
        shapley_gap=_gap(measured.shapley.effects[i], margin),
        ablation_gap=_gap(measured.ablation.both[i], margin),
        path_gap=math.nan if path is None else _gap(path.parts[i], margin),
        path_steps=0 if path is None else int(path.steps[i]),
        order=tuple(measured.stages.order[i, :count].tolist()),
        stages=tuple(stages),
        families=measured.sufficiency.families(i, explanation.label, explanation.rival),
        maps=None if measured.spatial is None else measured.spatial.map_test(i),
        clusters=int(measured.structure.clusters[i]),
        windows=int(measured.structure.windows[i]),
        saliency_overlap=math.nan if math.isnan(overlap) else overlap,  # equal to itself
        forwards=int(measured.forwards[i]),
        backwards=int(measured.backwards[i]),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _gap(effects: Tensor, margin: float) -> float:
    return 1 - float(effects.sum()) / margin if margin else math.nan


def _groups(measured: Measured, i: int, clean: Picture, adversarial: Picture) -> tuple[Group, ...]:
    """All groups of image ``i``; the tensors and both pictures are on the CPU."""
    index = measured.groups.index[i]
    pixels = (index >= 0).nonzero()
    rows, columns = pixels.unbind(dim=1)
    numbers, sizes = index[rows, columns], measured.size[i][rows, columns].double()
    whole = float(sizes.sum())
    groups = []
    for number in range(int(measured.groups.count[i])):
        own = numbers == number
        members, weight = pixels[own], float(sizes[own].sum())
        centre = (members * sizes[own].unsqueeze(1)).sum(dim=0) / weight
        low, high = members.amin(dim=0).tolist(), members.amax(dim=0).tolist()
        shapley, spatial = _shapley(measured, i, number), measured.spatial
        groups.append(
            Group(
                number=number,
                pixels=tuple((row, column) for row, column in members.tolist()),
                before=as_values(clean[:, rows[own], columns[own]].T),
                after=as_values(adversarial[:, rows[own], columns[own]].T),
                centre=(float(centre[0]), float(centre[1])),
                box=(low[0], low[1], high[0], high[1]),
                weight=weight / whole,
                shapley=shapley,
                ablation=_ablation(measured, i, number),
                path=_path(measured, i, number),
                place=None if spatial is None else spatial.map_label(i, number, shapley.label),
            )
        )
    return tuple(groups)


def _shapley(measured: Measured, i: int, number: int) -> ShapleyEffect:
    effect = _effect(measured.shapley.effects, measured.shapley_kinds, i, number)
    first, second, mixed = measured.shapley.covariance[i, number].tolist()
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


def _ablation(measured: Measured, i: int, number: int) -> AblationEffect:
    effect = _effect(measured.ablation.both, measured.ablation_kinds, i, number)
    removed = measured.ablation.removed[i, number].tolist()
    inserted = measured.ablation.inserted[i, number].tolist()
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


def _path(measured: Measured, i: int, number: int) -> Effect | None:
    if measured.path is None or measured.path_kinds is None:
        return None
    return _effect(measured.path.parts, measured.path_kinds, i, number)


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
