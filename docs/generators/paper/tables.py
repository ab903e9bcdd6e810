"""Tables 1 to 4: the paper's figure, ours, and what explains the difference."""

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from generators.paper.rows import ROOT, Layout, Sample, Samples
from generators.paper.text import (
    DASH,
    NOT_MEASURED,
    first_of,
    fooling_rate,
    mean_with_interval,
    median,
    over_seeds,
    percent,
    rate,
    rate_alone,
    short,
)
from pinprick.bench.plan import Product
from pinprick.metrics.speedups import mean_of_ratios, ratio_of_sums
from pinprick.report.docs_measured import markdown_table

RESNET18, LITE0 = "file:models/cifar10_resnet18", "efficientnet_lite0"
NETWORKS_FILE = "plans/paper/networks.py:"
TITLES = {
    "cw_l0": "C&W l0",
    "onepixel, k 1": "OnePixel, 1 pixel",
    "onepixel, k 3": "OnePixel, 3 pixels",
    "sparsefool": "SparseFool",
    "greedyfool": "GreedyFool",
    "fmn": "FMN",
    "homotopy": "Homotopy",
    "sparse_rs": "Sparse-RS",
    "sa_moo": "SA-MOO",
    "egs_tssa": "EGS-TSSA",
    "brusle": "BruSLeAttack",
    "wifgsm_printed": "the paper's, as printed",
    "wifgsm": "the paper's, our form",
    "sigma_zero": "σ-zero",
    "pinprick": "Pinprick",
    "ifgsm": "I-FGSM (dense)",
}
SECTIONS = {  # of table 1: model and goal, and the place in the paper's lists
    "CIFAR-10, ResNet-18, untargeted": (RESNET18, "untargeted", 0),
    "224 px, EfficientNet-Lite0 (the paper: VGG-16), untargeted": (LITE0, "untargeted", 1),
    "CIFAR-10, ResNet-18, least likely class": (RESNET18, "least_likely", 2),
    "224 px, EfficientNet-Lite0 (the paper: VGG-16), least likely class": (
        LITE0,
        "least_likely",
        3,
    ),
}
ROBUST = {  # of table 2
    "MNIST, PGD-AT": ("pinprick:mnist_cnn_pgd_at", 0),
    "CIFAR-10, ResNet-18, PGD-AT": ("file:models/cifar10_resnet18_pgd_at", 1),
    "MNIST, Fast-AT": ("pinprick:mnist_cnn_fast_at", 2),
    "CIFAR-10, ResNet-18, Fast-AT": ("file:models/cifar10_resnet18_fast_at", 3),
}
NOT_TO_BE_HAD = {"ImageNet, Fast-AT": ("file:models/imagenet_fast_at_2px", 4)}  # of table 2
BUDGETS = (10, 24, 50, 100)
SOURCES = {  # of table 3
    "photographs, 224 px": {
        LITE0: "EfficientNet-Lite0",
        f"{NETWORKS_FILE}efficientnet_lite1": "EfficientNet-Lite1",
        f"{NETWORKS_FILE}efficientnet_lite2": "EfficientNet-Lite2",
        f"{NETWORKS_FILE}imagenet_resnet50": "ResNet-50",
    },
    "CIFAR-10": {
        "file:models/cifar10_vgg16": "VGG-16",
        "file:models/cifar10_vgg19": "VGG-19",
        RESNET18: "ResNet-18",
        "file:models/cifar10_resnet50": "ResNet-50",
    },
}
TIMED = {  # of table 4
    LITE0: "EfficientNet-Lite0, 224 px",
    f"{NETWORKS_FILE}imagenet_resnet50": "ResNet-50, 224 px",
    RESNET18: "ResNet-18, 32 px",
}
NO_TARGET = {"sparsefool": f"{DASH}: it has no targeted form"}


@cache
def published() -> Mapping[str, Any]:
    """What the paper prints."""
    return tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))


def why(table: str, label: str) -> str:
    reasons = published()["why"][table]
    return str(reasons.get(label, reasons.get(label.partition(",")[0], reasons["all"])))


def paper_value(values: Mapping[str, Sequence[Any]], label: str, place: int) -> str:
    """The paper's figure; its own attack stands beside both forms of ours."""
    name = "wifgsm" if label == "wifgsm_printed" else label
    return str(values[name][place]) if name in values else DASH


def table1(plan: Layout) -> str:
    """All four sections of table 1."""
    parts = []
    for title, (model, goal, place) in SECTIONS.items():
        lines = list(_sparsity(plan, model, goal, place))
        parts.append(f"### {title}\n\n{markdown_table(*_head_and(lines))}")
    return "\n\n".join(parts)


_SPARSITY = (
    *("attack", "the paper: elements", "ours: mean elements of fooled images", "fooled"),
    *("median of all", "share of all elements", "pixels", "passes", "over seeds"),
    "what explains the difference",
)


def _sparsity(plan: Layout, model: str, goal: str, place: int) -> Iterator[Sequence[str]]:
    yield _SPARSITY
    paper = published()["table1"]
    for label, title in TITLES.items():
        printed = paper_value(paper["elements"], label, place)
        if label in paper["fooling_rate"] and printed != DASH:
            printed += f" ({paper['fooling_rate'][label][place]} % fooled)"
        about = why("table1", label)
        if goal != "untargeted" and label in NO_TARGET:
            yield [title, printed, NO_TARGET[label], *[DASH] * 6, about]
        elif label == "egs_tssa":
            yield [title, printed, *_generator(model, goal), about]
        else:
            yield [title, printed, *_needed(plan.find(model, goal, label)), about]


def _needed(samples: Samples) -> list[str]:
    sample = first_of(samples)
    if sample is None:
        return [NOT_MEASURED, *[DASH] * 6]
    share = DASH
    if sample.fooled.any():
        share = percent(float(sample.elements[sample.fooled].mean()) / sample.total)
    return [
        mean_with_interval(sample.elements),
        fooling_rate(sample),
        median(sample.elements),
        share,
        mean_with_interval(sample.pixels),
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
        return [NOT_MEASURED, *[DASH] * 6]
    fooled = rate(round(one["fooling_rate"] * one["images"]), one["images"])
    return [short(one["elements"]), fooled, DASH, DASH, short(one["pixels"]), "2", DASH]


def own_settings(plan: Layout) -> str:
    """Table 1 with the paper's own settings of each attack."""
    lines: list[Sequence[str]] = [
        (
            "attack",
            "network",
            "goal",
            "the paper",
            "ours: mean elements",
            "fooled",
            "pixels",
            "passes",
        )
    ]
    paper = published()["table1"]["elements"]
    for title, (model, goal, place) in SECTIONS.items():
        for label in plan.attacks(model=model, goal=goal, own=True):
            sample = first_of(plan.find(model, goal, label, own=True))
            network, words = title.partition(",")[0], goal.replace("_", " ")
            found = [NOT_MEASURED, DASH, DASH, DASH]
            if sample is not None:
                found = [mean_with_interval(sample.elements), fooling_rate(sample)]
                found += [mean_with_interval(sample.pixels), short(float(sample.passes.mean()))]
            lines.append([TITLES[label], network, words, paper_value(paper, label, place), *found])
    return markdown_table(*_head_and(lines))


def table2(plan: Layout) -> str:
    """One table per robust network: fooling rates at stated budgets."""
    parts = []
    for title, (model, place) in (ROBUST | NOT_TO_BE_HAD).items():
        lines = list(_strength(plan, model, place))
        parts.append(f"### {title}\n\n{markdown_table(*_head_and(lines))}")
    return "\n\n".join(parts)


def _strength(plan: Layout, model: str, place: int) -> Iterator[Sequence[str]]:
    units = [f"{budget} {unit}" for unit in ("elements", "pixels") for budget in BUDGETS]
    head = ["attack", "the paper: no budget stated", *units, "any number", "median elements"]
    yield [*head, "passes", "mean elements over seeds", "n"]
    for label, title in TITLES.items():
        printed = paper_value(published()["table2"]["fooling_rate"], label, place)
        printed = f"{printed} %" if printed != DASH else printed
        for radius, where in _starts(label):
            samples = plan.find(model, "untargeted", label, where=where)
            yield [title + radius, printed, *_at_budgets(samples)]


def _starts(label: str) -> list[tuple[str, Callable[[Product], bool]]]:
    """WI-FGSM starts from 4/255 as in other tables, and from the radius of the training."""
    if label not in ("wifgsm", "wifgsm_printed"):
        return [("", lambda one: True)]
    return [
        (", start 4/255", lambda one: not _other_radius(one)),
        (", start at the training's ε", _other_radius),
    ]


def _other_radius(one: Product) -> bool:
    """Whether the attacks of a product start from the radius of the training."""
    return any(attack.card.name == "sparsefool" for attack in one.attacks)


def _at_budgets(samples: Samples) -> list[str]:
    sample = first_of(samples)
    if sample is None:
        return [NOT_MEASURED, *[DASH] * (2 * len(BUDGETS) + 4)]
    shares = [
        rate_alone(int((needed <= budget).sum()), sample.n)
        for needed in (sample.elements, sample.pixels)
        for budget in BUDGETS
    ]
    whole = rate_alone(int(sample.fooled.sum()), sample.n)
    passes = short(float(sample.passes.mean()))
    return [*shares, whole, median(sample.elements), passes, over_seeds(samples), str(sample.n)]


def table3(plan: Layout) -> str:
    """One table per set of networks, and one block per source."""
    parts = []
    for title, nets in SOURCES.items():
        sources = {**nets, **_ensemble(plan, nets)}
        for source, name in sources.items():
            lines = list(_transfer(plan, source, nets))
            parts.append(f"### {title}: from {name}\n\n{markdown_table(*_head_and(lines))}")
    return "\n\n".join(parts)


def _ensemble(plan: Layout, nets: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for one in plan.plan.products:
        for model in one.models:
            members = model.removeprefix("ensemble:").split("+")
            if model.startswith("ensemble:") and set(members) <= set(nets):
                found[model] = f"the ensemble of {' and '.join(nets[name] for name in members)}"
    return found


def _transfer(plan: Layout, source: str, nets: Mapping[str, str]) -> Iterator[Sequence[str]]:
    members = source.removeprefix("ensemble:").split("+")
    columns = [f"{name} (white-box)" if net in members else name for net, name in nets.items()]
    yield ["attack", "elements", *columns, "of the same wrong class as I-FGSM"]
    start = first_of(plan.find(source, "untargeted", "ifgsm"))
    for label, title in TITLES.items():
        sample = first_of(plan.find(source, "untargeted", label))
        if sample is None:
            if label in (*plan.attacks(model=source), "egs_tssa"):
                yield [title, NOT_MEASURED, *[DASH] * (len(nets) + 1)]
            continue
        rates = [_judged(plan, sample, source, net) for net in nets]
        yield [title, mean_with_interval(sample.elements), *rates, same_class(sample, start)]


def _judged(plan: Layout, sample: Sample, source: str, net: str) -> str:
    """Fooling rate of a victim over images that both get right; rounded to 8 bits in brackets."""
    if net == source:
        plain, rounded = int(sample.fooled.sum()), int(sample.survives.sum())
        return f"{percent(plain / sample.n)} [{percent(rounded / sample.n)}], n {sample.n}"
    one = next(one for one in plan.plan.products if source in one.models and one.victims)
    order = [victim for victim in one.victims if victim != source]
    given = len(sample.rows["victims"][0]) if sample.n else 0
    if given != len(order):
        return DASH  # a small run has other victims
    texts = []
    for victim in (net, f"rounded:{net}"):
        fooled, both = victim_rate(sample, order.index(victim))
        texts.append(percent(fooled / both) if both else DASH)
    return f"{texts[0]} [{texts[1]}], n {both}"


def victim_rate(sample: Sample, place: int) -> tuple[int, int]:
    """How many images fool a victim, of those that source and victim get right."""
    labels = np.array(sample.rows["label"])
    clean = np.array([one[place] for one in sample.rows["victims_clean"]])
    after = np.array([one[place] for one in sample.rows["victims"]])
    both = clean == labels
    return int((both & (after != labels)).sum()), int(both.sum())


def same_class(sample: Sample, start: Sample | None) -> str:
    """Of images that both attacks fool, how many go to the same wrong class."""
    if start is None or start is sample:
        return DASH
    other = dict(zip(start.image.tolist(), start.rows["adversarial_class"], strict=True))
    fooled = dict(zip(start.image.tolist(), start.fooled.tolist(), strict=True))
    pairs = [
        (mine, other[image])
        for image, mine, found in zip(
            sample.image.tolist(), sample.rows["adversarial_class"], sample.fooled, strict=True
        )
        if found and fooled.get(image)
    ]
    return rate(sum(mine == theirs for mine, theirs in pairs), len(pairs))


def paper_transfer() -> str:
    """Table 3 as printed, with the I-FGSM rows that stand in comments of its source."""
    victims = ("VGG-16", "VGG-19", "ResNet-101", "ResNet-152")
    lines = []
    for source, white in (("vgg19", 1), ("resnet101", 2)):
        name = "VGG-19" if source == "vgg19" else "ResNet-101"
        for label, rates in published()["table3"][source].items():
            cells = [f"{one}*" if place == white else str(one) for place, one in enumerate(rates)]
            black = [one for place, one in enumerate(rates) if place != white]
            title = "its own" if label == "wifgsm" else TITLES[label]
            lines.append([name, title, *cells, f"{np.mean(black):.1f}"])
    return markdown_table(("source", "attack", *victims, "mean, black-box"), lines)


def table4(plan: Layout) -> str:
    """One table per network: time in a batch and alone, passes, and speed-ups of both kinds."""
    parts = []
    for model, title in TIMED.items():
        lines = list(_times(plan, model))
        parts.append(f"### {title}\n\n{markdown_table(*_head_and(lines))}")
    return "\n\n".join(parts)


def _times(plan: Layout, model: str) -> Iterator[Sequence[str]]:
    yield (
        *("attack", "the paper, VGG-16 to ResNet-152", "seconds per image, batch of 64"),
        *("seconds per batch", "seconds per image, alone", "passes", "fooled"),
        *("slower than wifgsm: mean of ratios", "ratio of sums"),
    )
    batch, alone = (lambda one: one.batch_size != 1), (lambda one: one.batch_size == 1)
    ours = first_of(plan.find(model, "untargeted", "wifgsm", where=batch))
    seconds = published()["table4"]["seconds"]
    for label, title in TITLES.items():
        if label not in plan.attacks(model=model) and label != "egs_tssa":
            continue
        printed = ", ".join(map(str, seconds[label])) if label in seconds else DASH
        many = first_of(plan.find(model, "untargeted", label, where=batch))
        one = first_of(plan.find(model, "untargeted", label, where=alone))
        if many is None:
            yield [title, printed, NOT_MEASURED, DASH, DASH, DASH, DASH, DASH, DASH]
            continue
        each = float(many.seconds.mean())
        yield [
            title,
            printed,
            f"{each:.3g}",
            f"{each * len(many.rows['index']):.3g}",
            DASH if one is None else f"{one.seconds.mean():.3g}",
            short(float(many.passes.mean())),
            fooling_rate(many),
            *_speedups(many, ours),
        ]


def _speedups(theirs: Sample, ours: Sample | None) -> list[str]:
    if ours is None or theirs is ours:
        return [DASH, DASH]
    both = np.intersect1d(theirs.image, ours.image)
    base, cost = theirs.on(both.tolist()).passes, ours.on(both.tolist()).passes
    seconds = float(theirs.seconds.mean() / ours.seconds.mean())
    return [
        f"{mean_of_ratios(base, cost):.3g} in passes",
        f"{ratio_of_sums(base, cost):.3g} in passes, {seconds:.3g} in time",
    ]


def paper_speedups() -> str:
    """The printed speed-ups beside both ways to compute them from the paper's own table."""
    seconds, printed = published()["table4"]["seconds"], published()["table4"]["speedups"]
    ours = np.array(seconds["wifgsm"])
    lines = []
    for label, number in printed.items():
        theirs = np.array(seconds[label])
        ways = {
            "mean of ratios": mean_of_ratios(theirs, ours),
            "ratio of sums": ratio_of_sums(theirs, ours),
        }
        texts = {name: f"{value:.1f}" for name, value in ways.items()}
        fits = [name for name, value in texts.items() if value == f"{number:.1f}"]
        lines.append([TITLES[label], f"{number:.1f}", *texts.values(), *(fits or ["neither"])])
    head = ("attack", "printed", "mean of ratios", "ratio of sums", "the printed one is")
    return markdown_table(head, lines)


def _head_and(lines: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    return lines[0], lines[1:]
