"""From what was measured about a batch to one explanation an image, in plain numbers."""

import math
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pinprick.explain.noise.assemble_groups import groups_of
from pinprick.explain.noise.coalitions import states
from pinprick.explain.noise.explanation import Explanation, Family, MapTest, State
from pinprick.explain.noise.measured import Measured
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.spatial import Lift, Spatial
from pinprick.explain.noise.sufficiency import FAMILIES, Sufficiency
from pinprick.explain.path import rivals
from pinprick.result import AttackResult


def assemble(
    result: AttackResult, settings: NoiseSettings, measured: Measured | None
) -> list[Explanation]:
    """One explanation for each image of a result; ``measured`` is None where nothing changed."""
    facts = _facts(result, settings)
    if measured is None:
        return [Explanation(**row, **_nothing(row)) for row in facts]
    at_home, clean, adversarial = on_cpu((measured, result.images, result.adversarial))
    return [
        Explanation(
            **{**row, **_measured(at_home, i, row)},
            groups=groups_of(at_home, i, clean[i], adversarial[i]),
        )
        for i, row in enumerate(facts)
    ]


def on_cpu(value: Any) -> Any:
    """The same dataclass with all its tensors on the CPU."""
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, tuple):
        return tuple(on_cpu(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        moved = {field.name: on_cpu(getattr(value, field.name)) for field in fields(value)}
        return replace(value, **moved)
    return value


def state_of(row: list[float]) -> State:
    """A row of ``states`` by name."""
    guess, margin, true, adversarial, true_chance, adversarial_chance = row
    return State(
        guess=int(guess),
        margin=margin,
        true_score=true,
        adversarial_score=adversarial,
        true_probability=true_chance,
        adversarial_probability=adversarial_chance,
    )


def _facts(result: AttackResult, settings: NoiseSettings) -> list[dict[str, Any]]:
    """What is known of each image before anything is asked."""
    led_to = rivals(result)
    classes = torch.stack([result.goal.labels, led_to], dim=1)
    clean = states(result.clean_logits, classes, settings.gauge).tolist()
    targets = result.goal.targets
    rows = zip(
        result.ids.tolist(),
        _statuses(result),
        result.remarks,
        result.goal.labels.tolist(),
        [None] * len(result) if targets is None else targets.tolist(),
        led_to.tolist(),
        clean,
        result.l0_pixels.tolist(),
        result.l0_elements.tolist(),
        _unsettled(result),
        strict=True,
    )
    return [
        {
            "id": number,
            "model": result.model,
            "attack": result.attack,
            "status": status,
            "remark": remark,
            "label": label,
            "target": target,
            "rival": rival,
            "clean": state_of(before),
            "settings": asdict(settings),
            "gauge": settings.gauge,
            "changed_pixels": pixels,
            "changed_elements": elements,
            "polished": str(result.attack.get("polished", "")),
            "settled": None if open_units is None else open_units == 0,
            "most_spare_pixels": _most_spare(result, status, pixels, open_units),
            "ratio": settings.ratio,
        }
        for (
            number,
            status,
            remark,
            label,
            target,
            rival,
            before,
            pixels,
            elements,
            open_units,
        ) in rows
    ]


def _statuses(result: AttackResult) -> list[str]:
    words = zip(result.success.tolist(), result.skipped.tolist(), strict=True)
    return ["skipped" if skipped else "fooled" if met else "failed" for met, skipped in words]


def _unsettled(result: AttackResult) -> list[int | None]:
    """What polishing left open in each image; None where there was none."""
    if result.unsettled is None:
        return [None] * len(result)
    return [None if units < 0 else units for units in result.unsettled.tolist()]


def _most_spare(
    result: AttackResult, status: str, pixels: int, open_units: int | None
) -> int | None:
    """How many pixels can be spared at most, by what polishing knows of pixels."""
    if status != "fooled" or not pixels:
        return None
    by_pixels = result.attack.get("polished") == "pixels" and open_units is not None
    return open_units if by_pixels else pixels


def _nothing(row: dict[str, Any]) -> dict[str, Any]:
    """The rest of an explanation where nothing changed."""
    return {
        "adversarial": row["clean"],
        "spare_pixels": None,
        "obscuring": 0.0,
        "leading": 0.0,
        "margin": 0.0,
        "obscuring_share": math.nan,
        "tolerance": 0.0,
        "method": "none",
        "pairs": 0,
        "largest_error": 0.0,
        "shapley_gap": math.nan,
        "ablation_gap": math.nan,
        "path_gap": math.nan,
        "path_steps": 0,
        "groups": (),
        "order": (),
        "stages": (row["clean"],),
        "families": (),
        "maps": None,
        "forwards": 0,
        "backwards": 0,
    }


def _measured(measured: Measured, i: int, row: dict[str, Any]) -> dict[str, Any]:
    """The rest of an explanation, for image ``i`` of those that were measured."""
    count = int(measured.groups.count[i])
    obscuring, leading = measured.totals[i].tolist()
    margin = obscuring + leading
    stages = [state_of(stage) for stage in measured.build.states[i, : count + 1].tolist()]
    pairs, spare = int(measured.shapley.pairs[i]), int(measured.spare[i])
    error = float(measured.shapley.covariance[i, :, :2].clamp_min(0).max().sqrt())
    path = measured.path
    return {
        "clean": stages[0],
        "adversarial": stages[-1],
        **_spare(spare, row),
        "obscuring": obscuring,
        "leading": leading,
        "margin": margin,
        "obscuring_share": _share(obscuring, margin),
        "tolerance": float(measured.tolerance[i]),
        "method": "sampled" if pairs else "exact",
        "pairs": pairs,
        "largest_error": _share(error, abs(margin)) if error else 0.0,
        "shapley_gap": _gap(measured.shapley.effects[i], margin),
        "ablation_gap": _gap(measured.ablation.both[i], margin),
        "path_gap": math.nan if path is None else _gap(path.parts[i], margin),
        "path_steps": 0 if path is None else int(path.steps[i]),
        "order": tuple(measured.build.order[i, :count].tolist()),
        "stages": tuple(stages),
        "families": _families(measured.sufficiency, i, row),
        "maps": None if measured.spatial is None else _map_test(measured.spatial, i),
        "forwards": int(measured.forwards[i]),
        "backwards": int(measured.backwards[i]),
    }


def _spare(tried: int, row: dict[str, Any]) -> dict[str, Any]:
    """What was tried, or else what polishing knows."""
    if tried >= 0:
        return {"spare_pixels": tried, "most_spare_pixels": tried}
    most = row["most_spare_pixels"]
    return {"spare_pixels": 0 if most == 0 else None}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _gap(effects: Tensor, margin: float) -> float:
    return 1 - float(effects.sum()) / margin if margin else math.nan


def _families(sufficiency: Sufficiency, i: int, row: dict[str, Any]) -> tuple[Family, ...]:
    told = zip(FAMILIES, sufficiency.states, sufficiency.members, sufficiency.sizes, strict=True)
    families = []
    for name, answers, members, sizes in told:
        state = state_of(answers[i].tolist())
        families.append(
            Family(
                name=name,
                size=int(sizes[i]),
                changed=tuple(members[i].nonzero().squeeze(1).tolist()),
                state=state,
                leaves=state.guess != row["label"],
                reaches=state.guess == row["rival"],
            )
        )
    return tuple(families)


def _map_test(spatial: Spatial, i: int) -> MapTest:
    def numbers(lift: Lift | None) -> tuple[float, float]:
        return (math.nan, math.nan) if lift is None else (float(lift.lift[i]), float(lift.p[i]))

    true, adversarial, control = map(numbers, (spatial.true, spatial.adversarial, spatial.control))
    return MapTest(
        true_lift=true[0],
        true_p=true[1],
        adversarial_lift=adversarial[0],
        adversarial_p=adversarial[1],
        control_lift=control[0],
        control_p=control[1],
        inside_share=float(spatial.inside_share[i]),
        inside_chance=float(spatial.area[i]),
        inside_p=float(spatial.inside.p[i]),
        no_true_map=bool(spatial.no_true_map[i]),
        no_adversarial_map=bool(spatial.no_adversarial_map[i]),
    )
