"""The ablations of figure 7, and the claims: one setting or one part changed at a time."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from generators.paper.rows import ROOT, Layout, Sample
from generators.paper.tables import LITE0, RESNET18, SOURCES, published, victim_rate
from generators.paper.text import (
    DASH,
    NOT_MEASURED,
    first_of,
    fooling_rate,
    mean_with_interval,
    percent,
    rate,
    short,
)
from pinprick.attacks.card import Attack
from pinprick.report.docs_measured import markdown_table

NETWORKS = {LITE0: "EfficientNet-Lite0, 224 px", RESNET18: "ResNet-18, CIFAR-10"}
RADII = {"6/255": 6 / 255, "4/255": 4 / 255}
PRESETS = {LITE0: "imagenet", RESNET18: "cifar10"}
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


def sweeps_table(plan: Layout) -> str:
    """Every sweep as a line of fooling rates and mean elements."""
    lines = []
    for model, network in NETWORKS.items():
        for eps, radius in RADII.items():
            for name, title in SWEEPS.items():
                points = sweep(plan, model, radius, name)
                lines.append([network, eps, title, *_line(points)])
    head = ("network", "ε", "varied", "values", "fooled", "mean elements of fooled images", "n")
    return markdown_table(head, lines)


def _line(points: Sequence[Point]) -> list[str]:
    if not points:
        return [NOT_MEASURED, DASH, DASH, DASH]
    shown = points if len(points) <= 10 else points[::4]
    values, samples = zip(*shown, strict=True)
    return [
        ", ".join(f"{value:g}" for value in values),
        ", ".join(percent(float(one.fooled.mean())) for one in samples),
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
    head = (
        "network",
        "ε",
        "λ is the",
        "fooled, λ 1e1 to 1e5",
        "elements, λ 1e1 to 1e5",
        "as stated",
    )
    return markdown_table(head, lines)


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


VARIANTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "as printed": ("I-FGSM, box rule, tailored ReLU, q_a", lambda one: _changed(one) == ()),
    "start FGSM": ("other starts", lambda one: _changed(one) == ("fgsm",)),
    "start PGD": ("other starts", lambda one: _changed(one) == ("pgd",)),
    "start MI-FGSM": ("other starts", lambda one: _changed(one) == ("mifgsm",)),
    "start random signs": ("other starts", lambda one: _changed(one) == ("random_sign",)),
    "clipping": ("instead of the box rule", lambda one: _changed(one) == ("clip",)),
    "plain ReLU": ("instead of the tailored one", lambda one: _changed(one) == ("plain",)),
    "no ReLU": ("instead of the tailored one", lambda one: _changed(one) == ("none",)),
    "straight-through": ("instead of q_a", lambda one: _changed(one) == ("straight_through",)),
    "hard-concrete": ("instead of q_a", lambda one: _changed(one) == ("hard_concrete",)),
}


def _changed(one: Any) -> tuple[str, ...]:
    """The parts of a variant that are not as printed."""
    start = one.start.card.name
    parts = (start, one.rule, one.relu, one.slope)
    usual = ("ifgsm", "box", "tailored", "gaussian")
    return tuple(part for part, same in zip(parts, usual, strict=True) if part != same)


def variants_table(plan: Layout) -> str:
    """The printed attack with one part replaced at a time."""
    lines = []
    for model, network in NETWORKS.items():
        found = [(attack, sample) for attack, sample in plan.each(model) if hasattr(attack, "rule")]
        for name, (about, chosen) in VARIANTS.items():
            sample = next((sample for attack, sample in found if chosen(attack)), None)
            lines.append([network, name, about, *_figures(sample)])
    head = ("network", "variant", "what is replaced", "fooled", "mean elements of fooled images")
    return markdown_table((*head, "forward passes to the first success, median"), lines)


def starts_table(plan: Layout) -> str:
    """Our form of the attack with the sides of each start."""
    lines = []
    for model, network in NETWORKS.items():
        for attack, sample in plan.each(model):
            if attack.card.name == "wifgsm":
                start: Attack = attack.start  # type: ignore[attr-defined]
                lines.append([network, start.card.title, *_figures(sample)])
        if not any(line[0] == network for line in lines):
            lines.append([network, "all", *_figures(None)])
    head = ("network", "sides of", "fooled", "mean elements of fooled images")
    return markdown_table((*head, "forward passes to the first success, median"), lines)


def _figures(sample: Sample | None) -> list[str]:
    if sample is None:
        return [NOT_MEASURED, DASH, DASH]
    first = float(np.median(sample.first))
    steps = short(first) if np.isfinite(first) else "∞"
    return [fooling_rate(sample), mean_with_interval(sample.elements), steps]


def near_optimal(table1: Layout, claims: Layout) -> str:
    """Elements of both forms over those of ``auto`` on the same images."""
    lines = []
    for model, network in reversed(NETWORKS.items()):
        best = first_of(claims.find(model, "untargeted", "auto"))
        for label, title in (("wifgsm", "our form"), ("wifgsm_printed", "as printed")):
            mine = first_of(table1.find(model, "untargeted", label))
            lines.append([network, title, *_over(mine, best)])
    head = ("network", "attack", "elements over those of `auto`", "images as sparse as `auto`", "n")
    return markdown_table(head, lines)


def _over(mine: Sample | None, best: Sample | None) -> list[str]:
    if mine is None or best is None:
        return [NOT_MEASURED, DASH, DASH]
    shared = np.intersect1d(mine.image[mine.fooled], best.image[best.fooled]).tolist()
    if not shared:
        return [DASH, DASH, "0"]
    ours, theirs = (
        one.on(shared).elements[np.argsort(one.on(shared).image)] for one in (mine, best)
    )
    return [
        f"{ours.sum() / theirs.sum():.2f}",
        percent(float((ours <= theirs).mean())),
        str(len(shared)),
    ]


def proved_optima() -> str:
    """Elements over the proved fewest, per case and attack."""
    rows = json.loads((ROOT / "results" / "optimum" / "paper.json").read_text(encoding="utf-8"))
    lines = []
    for row in rows["rows"]:
        pairs = [
            (needed, fewest)
            for needed, fewest in zip(row["needed"], row["fewest"], strict=True)
            if needed is not None
        ]
        ratio = DASH
        if pairs:
            ratio = f"{sum(one for one, _ in pairs) / sum(fewest for _, fewest in pairs):.2f}"
        attack, case = row["attack"], row["case"].rpartition("/")[0].replace("/", ", ")
        tau = f", τ {attack['tau']:g}" if attack["name"] == "wifgsm_printed" else ""
        optimal = sum(needed == fewest for needed, fewest in pairs)
        fooled = rate(len(pairs), row["n"])
        name = f"`{attack['name']}`{tau}, revision {row['revision']}"
        lines.append([case, name, fooled, ratio, str(optimal)])
    head = ("network and goal", "attack", "fooled", "elements over the fewest", "optimal images")
    return markdown_table(head, lines)


def kept_transfer(plan: Layout) -> str:
    """Transfer of both forms over that of I-FGSM, their own start."""
    lines = []
    for title, nets in SOURCES.items():
        for source, name in nets.items():
            start = first_of(plan.find(source, "untargeted", "ifgsm"))
            for label, form in (("wifgsm", "our form"), ("wifgsm_printed", "as printed")):
                mine = first_of(plan.find(source, "untargeted", label))
                rates = [_black_box(plan, source, nets, one) for one in (mine, start)]
                known = [one for one in rates if one is not None]
                cells = [NOT_MEASURED, DASH, DASH]
                if len(known) == 2:
                    ratio = f"{known[0] / known[1]:.2f}" if known[1] else DASH
                    cells = [percent(known[0]), percent(known[1]), ratio]
                lines.append([title, name, form, *cells])
    paper = published()["table3"]
    for source, white in (("vgg19", 1), ("resnet101", 2)):
        means = [np.mean(np.delete(paper[source][one], white)) / 100 for one in ("wifgsm", "ifgsm")]
        name = "VGG-19" if source == "vgg19" else "ResNet-101"
        texts = [percent(float(one)) for one in means]
        lines.append(["the paper", name, "its own", *texts, f"{means[0] / means[1]:.2f}"])
    head = ("images", "source", "form", "fooling rate of other networks", "that of I-FGSM", "ratio")
    return markdown_table(head, lines)


def _black_box(
    plan: Layout, source: str, nets: dict[str, str], sample: Sample | None
) -> float | None:
    """The mean fooling rate over the other networks."""
    if sample is None or not sample.n:
        return None
    one = next(one for one in plan.plan.products if source in one.models and one.victims)
    order = [victim for victim in one.victims if victim != source]
    if len(sample.rows["victims"][0]) != len(order):
        return None
    pairs = [victim_rate(sample, order.index(net)) for net in nets if net != source]
    return float(np.mean([fooled / both for fooled, both in pairs if both]))


def all_points(plan: Layout) -> Iterator[Point]:
    """Every point of every sweep, to see whether there are any."""
    for model in NETWORKS:
        for radius in RADII.values():
            for name in SWEEPS:
                yield from sweep(plan, model, radius, name)
