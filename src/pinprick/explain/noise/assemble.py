"""One ``Explanation`` per image, from a result and what was measured on it."""

import math
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from pinprick.explain.class_scores import rivals
from pinprick.explain.noise.coalitions import as_model_output, outputs
from pinprick.explain.noise.explanation import Explanation, Status
from pinprick.explain.noise.measured import Measured
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.result import AttackResult

T = TypeVar("T")


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
            groups=measured.groups_of(i, clean[i], adversarial[i]),
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
        forwards=int(measured.forwards[i]),
        backwards=int(measured.backwards[i]),
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _gap(effects: Tensor, margin: float) -> float:
    return 1 - float(effects.sum()) / margin if margin else math.nan
