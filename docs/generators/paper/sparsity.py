"""Table 1: how few elements each attack changes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from generators.paper.printed import LITE0, RESNET18, TITLES, paper_value, published
from generators.paper.rows import ROOT, Layout, Samples
from generators.paper.text import (
    DASH,
    MISSING,
    NOT_MEASURED,
    first_of,
    fooling_rate,
    mean_with_interval,
    measured_table,
    median,
    over_seeds,
    percent,
    rate,
    short,
)
from pinprick.report.docs_measured import markdown_table

SECTIONS = {  # model and goal, and the place in the paper's lists
    "CIFAR-10, untargeted": (RESNET18, "untargeted", 0),
    "224 px, untargeted": (LITE0, "untargeted", 1),
    "CIFAR-10, least likely class": (RESNET18, "least_likely", 2),
    "224 px, least likely class": (LITE0, "least_likely", 3),
}
NETWORKS = {RESNET18: "ResNet-18", LITE0: "EfficientNet-Lite0 (the paper: VGG-16)"}
HEAD = (
    *("attack", "the paper", "ours", "fooled", "median", "share", "pixels", "share of pixels"),
    *("passes", "over seeds"),
)
CHANNELS = 3  # elements per pixel
ELEMENTS = {RESNET18: 3 * 32 * 32, LITE0: 3 * 224 * 224}  # of an image
NO_TARGET = ("sparsefool",)  # attacks without a targeted form


def table1(plan: Layout) -> str:
    """The sections with rows, then what is not measured."""
    parts = []
    for title, (model, goal, place) in SECTIONS.items():
        lines = [line for line in _lines(plan, model, goal, place) if NOT_MEASURED not in line]
        if lines:
            parts.append(f"### {title}, {NETWORKS[model]}\n\n{markdown_table(HEAD, lines)}")
    return "\n\n".join((*parts, f"### Not measured\n\n{_missing(plan)}"))


def _lines(plan: Layout, model: str, goal: str, place: int) -> Iterator[Sequence[str]]:
    for label, title in TITLES.items():
        if goal == "untargeted" or label not in NO_TARGET:
            yield [title, _printed(label, place), *_ours(plan, model, goal, label)]


def _printed(label: str, place: int) -> str:
    paper = published()["table1"]
    printed = paper_value(paper["elements"], label, place)
    if label in paper["fooling_rate"] and printed != DASH:
        printed += f" ({paper['fooling_rate'][label][place]} % fooled)"
    return printed


def _ours(plan: Layout, model: str, goal: str, label: str) -> list[str]:
    if label == "egs_tssa":
        return _generator(model, goal)
    return _needed(plan.find(model, goal, label))


def _missing(plan: Layout) -> str:
    """Per attack and section, the paper's elements where ours are not measured."""
    lines = []
    for label, title in TITLES.items():
        cells = []
        for model, goal, place in SECTIONS.values():
            if goal != "untargeted" and label in NO_TARGET:
                cells.append("no such form")
            elif NOT_MEASURED in _ours(plan, model, goal, label):
                cells.append(_printed(label, place))
            else:
                cells.append("measured")
        if set(cells) - {"measured", "no such form"}:
            lines.append([title, *cells])
    table = markdown_table(("the paper's elements", *SECTIONS), lines)
    return f"{MISSING}\n\n{table}"


def differences() -> str:
    """What explains the difference between the paper and ours, per attack."""
    lines = [[TITLES[label], reason] for label, reason in published()["why"]["table1"].items()]
    return markdown_table(("attack", "what explains the difference"), lines)


def _needed(samples: Samples) -> list[str]:
    sample = first_of(samples)
    if sample is None:
        return [NOT_MEASURED, *[DASH] * 7]
    shares = [DASH, DASH]
    if sample.fooled.any():
        elements, pixels = (
            float(needed[sample.fooled].mean()) for needed in (sample.elements, sample.pixels)
        )
        shares = _shares(elements, pixels, sample.total)
    return [
        mean_with_interval(sample.elements),
        fooling_rate(sample),
        median(sample.elements),
        shares[0],
        mean_with_interval(sample.pixels),
        shares[1],
        short(float(sample.passes.mean())),
        over_seeds(samples),
    ]


def single_pass(model: str, goal: str) -> Mapping[str, Any] | None:
    """EGS-TSSA in one pass, from the rows of its own page; the last training counts."""
    rows = []
    for path in sorted((ROOT / "results" / "egs_tssa").glob("h200*.jsonl")):
        rows += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [
        row["single_pass"]
        for row in rows
        if row["what"] == "training" and row.get("model") == model and row["target"] is None
    ]
    return found[-1] if found and goal == "untargeted" else None


def _generator(model: str, goal: str) -> list[str]:
    one = single_pass(model, goal)
    if one is None:
        return [NOT_MEASURED, *[DASH] * 7]
    fooled = rate(round(one["fooling_rate"] * one["images"]), one["images"])
    elements, pixels = one["elements"], one["pixels"]
    shares = _shares(elements, pixels, ELEMENTS[model])
    return [short(elements), fooled, DASH, shares[0], short(pixels), shares[1], "2", DASH]


def _shares(elements: float, pixels: float, total: int) -> list[str]:
    """Of all elements and of all pixels."""
    return [percent(elements / total), percent(CHANNELS * pixels / total)]


def own_settings(plan: Layout) -> str:
    """Table 1 with the paper's own settings of each attack."""
    lines = []
    paper = published()["table1"]["elements"]
    for title, (model, goal, place) in SECTIONS.items():
        for label in plan.attacks(model=model, goal=goal, own=True):
            sample = first_of(plan.find(model, goal, label, own=True))
            found = [NOT_MEASURED, DASH, DASH, DASH]
            if sample is not None:
                found = [mean_with_interval(sample.elements), fooling_rate(sample)]
                found += [mean_with_interval(sample.pixels), short(float(sample.passes.mean()))]
            lines.append([TITLES[label], title, paper_value(paper, label, place), *found])
    head = ("attack", "section", "the paper", "ours", "fooled", "pixels", "passes")
    return measured_table(head, lines)
