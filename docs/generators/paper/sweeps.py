"""The ablations of figure 7: one hyperparameter changed at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from generators.paper.printed import LITE0, RESNET18, RESNET20
from generators.paper.rows import Layout, Sample, fooled_by_both
from generators.paper.text import DASH, NOT_MEASURED, mean_of_fooled, measured_table, percent

NETWORKS = {
    LITE0: "EfficientNet-Lite0, 224 px",
    RESNET18: "ResNet-18, CIFAR-10",
    RESNET20: "ResNet-20, CIFAR-10",
}
RADII = {"6/255": 6 / 255, "4/255": 4 / 255}
_TAU, _A, _SCALE, _PRODUCT = 0.30, 0.1, 1e5, 100.0  # the printed values; CE: lam * loss_scale
FEWEST = 10  # images that an end of a sweep must fool, so that its mean says something
_LAM = {LITE0: 1e-3, RESNET18: 1e-2, RESNET20: 1e-2}
Point = tuple[float, Sample]


def sweep(plan: Layout, model: str, radius: float, name: str) -> list[Point]:
    """Samples by the value of one hyperparameter, the others as printed.

    Args:
        plan: The ablations.
        model: The network.
        radius: eps of I-FGSM.
        name: "a", "tau", "lam" (weight on the count), or "ce" (weight on the cross-entropy).
    """
    points = {}
    for attack, sample in plan.each(model):
        one: Any = attack
        if not np.isclose(one.start_eps, radius):
            continue
        values = {"a": one.a == _A, "tau": one.tau == _TAU, "lam": one.lam == _LAM[model]}
        scaled = one.loss_scale == _SCALE
        inverse = bool(np.isclose(one.lam * one.loss_scale, _PRODUCT))
        if name == "ce":
            if values["a"] and values["tau"] and inverse:
                points[float(f"{1 / one.lam:g}")] = sample
        elif scaled and all(same for other, same in values.items() if other != name):
            points[float(getattr(one, name))] = sample
    return sorted(points.items())


SWEEPS = {
    "a": "a",
    "tau": "τ",
    "lam": "λ, weight on the count",
    "ce": "λ, weight on the cross-entropy",
}


def all_sweeps(plan: Layout) -> dict[str, list[list[Point]]]:
    """Every sweep per network, of those that have rows."""
    found = {
        model: [sweep(plan, model, radius, name) for radius in RADII.values() for name in SWEEPS]
        for model in NETWORKS
    }
    return {model: sweeps for model, sweeps in found.items() if any(sweeps)}


def sweeps_table(plan: Layout) -> str:
    """Every sweep as a line of fooling rates and mean elements."""
    lines = []
    for model, network in NETWORKS.items():
        for eps, radius in RADII.items():
            for name, title in SWEEPS.items():
                points = sweep(plan, model, radius, name)
                lines.append([network, eps, title, *_line(points)])
    head = ("network", "ε", "varied", "values", "fooled, %", "mean elements", "n")
    return measured_table(head, lines)


def _line(points: Sequence[Point]) -> list[str]:
    if not points:
        return [NOT_MEASURED, DASH, DASH, DASH]
    fooling = [number for number, (_, one) in enumerate(points) if one.fooled.any()]
    shown = points[max(0, fooling[0] - 1) : fooling[-1] + 2] if fooling else points
    shown = shown if len(shown) <= 10 else shown[::4]  # the page says so
    values, samples = zip(*shown, strict=True)
    return [
        ", ".join(f"{value:g}" for value in values),
        ", ".join(f"{100 * one.fooled.mean():.3g}" for one in samples),
        ", ".join(mean_of_fooled(one) for one in samples),
        str(samples[0].n),
    ]


def direction(plan: Layout) -> str:
    """Which convention of lambda has the direction that the paper states."""
    lines = []
    for model, network in NETWORKS.items():
        for eps, radius in RADII.items():
            for name in ("lam", "ce"):
                points = sweep(plan, model, radius, name)
                lines.append([network, eps, SWEEPS[name], *_trend(points)])
    head = ("network", "ε", "convention", "λ", "fooled", "mean elements", "n", "as stated")
    return measured_table(head, lines)


def stated_by(plan: Layout) -> list[str]:
    """The conventions of lambda that have the stated direction wherever they are measured."""
    found = {
        title: [
            _as_stated(sweep(plan, model, radius, name))
            for model in all_sweeps(plan)
            for radius in RADII.values()
        ]
        for name, title in SWEEPS.items()
        if name in ("lam", "ce")
    }
    return [title for title, stated in found.items() if stated and all(stated)]


def holds(plan: Layout, name: str) -> str:
    """Whether the extremes of a sweep differ as the paper says, in a sentence.

    A smaller a should need fewer elements and more passes to the first success. A larger tau should
    need fewer elements and fool fewer images.
    """
    found = [
        pair
        for model in all_sweeps(plan)
        for radius in RADII.values()
        if (pair := _ends(sweep(plan, model, radius, name))) is not None
    ]
    if not found:
        return f"That is {NOT_MEASURED}."
    sparser = rarer = 0
    for (_, low), (_, high) in found:
        before, after = fooled_by_both(*((high, low) if name == "a" else (low, high)))
        sparser += bool(after.elements.sum() < before.elements.sum())
        later = float(np.median(after.first)) > float(np.median(before.first))
        rarer += later if name == "a" else _rate(high) < _rate(low)
    second = "takes more passes" if name == "a" else "fools fewer images"
    return (
        f"Of {len(found)} sweeps here, it is sparser in {sparser} and {second} in {rarer}, between "
        f"the ends that fool at least {FEWEST} images."
    )


def _trend(points: Sequence[Point]) -> list[str]:
    if not points:
        return [NOT_MEASURED, DASH, DASH, DASH, DASH]
    ends = _ends(points)
    if ends is None:
        values = f"{points[0][0]:g} to {points[-1][0]:g}"
        return [values, DASH, DASH, DASH, "too few are fooled"]
    (low, first), (high, last) = ends
    both = fooled_by_both(first, last)
    return [
        f"{low:g} to {high:g}",
        f"{percent(_rate(first))} to {percent(_rate(last))}",
        " to ".join(map(mean_of_fooled, both)),
        str(both[0].n),
        "yes" if _as_stated(points) else "no",
    ]


def _as_stated(points: Sequence[Point]) -> bool:
    """Whether a larger value fools fewer images, with fewer elements where both ends fool."""
    ends = _ends(points)
    if ends is None:
        return False
    (_, first), (_, last) = ends
    before, after = (one.elements.sum() for one in fooled_by_both(first, last))
    return _rate(last) < _rate(first) and bool(after < before)


def _ends(points: Sequence[Point]) -> tuple[Point, Point] | None:
    """The smallest and the largest value that fool enough images."""
    fooling = [point for point in points if point[1].fooled.sum() >= FEWEST]
    return (fooling[0], fooling[-1]) if fooling else None


def _rate(sample: Sample) -> float:
    return float(sample.fooled.mean())
