"""The ablations of figure 7: one hyperparameter changed at a time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from generators.paper.printed import LITE0, RESNET18
from generators.paper.rows import Layout, Sample
from generators.paper.text import DASH, NOT_MEASURED, measured_table, percent, short

NETWORKS = {LITE0: "EfficientNet-Lite0, 224 px", RESNET18: "ResNet-18, CIFAR-10"}
RADII = {"6/255": 6 / 255, "4/255": 4 / 255}
_TAU, _A, _SCALE, _PRODUCT = 0.30, 0.1, 1e5, 100.0  # the printed values; CE: lam * loss_scale
_LAM = {LITE0: 1e-3, RESNET18: 1e-2}
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


def all_sweeps(plan: Layout) -> list[list[Point]]:
    """Every sweep on every network."""
    return [
        sweep(plan, model, radius, name)
        for model in NETWORKS
        for radius in RADII.values()
        for name in SWEEPS
    ]


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
    shown = points if len(points) <= 10 else points[::4]
    values, samples = zip(*shown, strict=True)
    return [
        ", ".join(f"{value:g}" for value in values),
        ", ".join(f"{100 * one.fooled.mean():.3g}" for one in samples),
        ", ".join(_mean(one) for one in samples),
        str(samples[0].n),
    ]


def _mean(sample: Sample) -> str:
    return short(float(sample.elements[sample.fooled].mean())) if sample.fooled.any() else DASH


def direction(plan: Layout) -> str:
    """Which convention of lambda has the direction that the paper states."""
    lines = []
    for model, network in NETWORKS.items():
        for eps, radius in RADII.items():
            for name in ("lam", "ce"):
                points = [point for point in sweep(plan, model, radius, name) if point[0] >= 1]
                lines.append([network, eps, SWEEPS[name], *_trend(points)])
    head = ("network", "ε", "λ is the", "fooled, λ 1e1 to 1e5", "elements", "as stated")
    return measured_table(head, lines)


def _trend(points: Sequence[Point]) -> list[str]:
    if len(points) < 2:
        return [NOT_MEASURED, DASH, DASH]
    first, last = points[0][1], points[-1][1]
    rates = [float(one.fooled.mean()) for one in (first, last)]
    fewer = rates[1] < rates[0]
    sparser = bool(
        first.fooled.any()
        and last.fooled.any()
        and last.elements[last.fooled].mean() < first.elements[first.fooled].mean()
    )
    if rates[0] == rates[1] == 0:
        verdict = "nothing is fooled"
    else:
        verdict = "yes" if fewer and (sparser or not last.fooled.any()) else "no"
    ends = (f"{percent(rates[0])} to {percent(rates[1])}", f"{_mean(first)} to {_mean(last)}")
    return [*ends, verdict]
