"""Table 3: fooling rates of other networks, ours and those that the paper prints."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from generators.paper.printed import LITE0, NETWORKS_FILE, RESNET18, TITLES, published
from generators.paper.rows import Layout, Sample
from generators.paper.text import (
    DASH,
    first_of,
    mean_of_fooled,
    mean_with_interval,
    rate,
    rate_alone,
)
from pinprick.report.docs_measured import markdown_table

CHANGED = ("attack", "elements", "share", "pixels", "same class")
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


def table3(plan: Layout) -> str:
    """One table per source with rows, then how many attacks each source has."""
    parts, lines = [], []
    for title, nets in SOURCES.items():
        sources = {**nets, **_ensemble(plan, nets)}
        for source, name in sources.items():
            known = list(_transfer(plan, source, nets))
            wanted = len({*plan.attacks(model=source), "egs_tssa"})
            lines.append([title, name, f"{len(known)} of {wanted}"])
            if known:
                changed = markdown_table(CHANGED, [line[0] for line in known])
                rates = markdown_table(_head(source, nets), [line[1] for line in known])
                parts.append(f"### {title}: from {name}\n\n{rates}\n\n{changed}")
    coverage = markdown_table(("images", "source", "attacks measured"), lines)
    return "\n\n".join((*parts, f"### What is measured\n\n{coverage}"))


def _head(source: str, nets: Mapping[str, str]) -> list[str]:
    members = source.removeprefix("ensemble:").split("+")
    columns = [f"{name}*" if net in members else name for net, name in nets.items()]
    return ["attack", *columns]


def _ensemble(plan: Layout, nets: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for one in plan.plan.products:
        for model in one.models:
            members = model.removeprefix("ensemble:").split("+")
            if model.startswith("ensemble:") and set(members) <= set(nets):
                found[model] = f"the ensemble of {' and '.join(nets[name] for name in members)}"
    return found


def _transfer(
    plan: Layout, source: str, nets: Mapping[str, str]
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Per attack, a line of what it changed and a line of rates."""
    start = first_of(plan.find(source, "untargeted", "ifgsm"))
    for label, title in TITLES.items():
        sample = first_of(plan.find(source, "untargeted", label))
        if sample is not None:
            rates = [_judged(plan, sample, source, net) for net in nets]
            counts = mean_with_interval(sample.elements), mean_of_fooled(sample, share=True)
            pixels = mean_with_interval(sample.pixels)
            yield [title, *counts, pixels, same_class(sample, start)], [title, *rates]


def _judged(plan: Layout, sample: Sample, source: str, net: str) -> str:
    """Fooling rate of a victim over images that both get right; rounded to 8 bits in brackets."""
    if net == source:
        plain, rounded = int(sample.fooled.sum()), int(sample.survives.sum())
        return _both_rates(plain, rounded, sample.n)
    one = next(one for one in plan.plan.products if source in one.models and one.victims)
    order = [victim for victim in one.victims if victim != source]
    sample = with_victims(sample)
    given = len(sample.rows["victims"][0]) if sample.n else 0
    if given != len(order):
        return DASH  # a small run has other victims
    fooled, both = victim_rate(sample, order.index(net))
    rounded, _ = victim_rate(sample, order.index(f"rounded:{net}"))
    return _both_rates(fooled, rounded, both) if both else DASH


def _both_rates(plain: int, rounded: int, n: int) -> str:
    """A rate with its interval, and that after rounding in brackets."""
    return f"{rate_alone(plain, n)} [{100 * rounded / n:.3g}], n {n}"


def with_victims(sample: Sample) -> Sample:
    """The sample on the images that victims judged: one that fails judges none of a batch."""
    return sample.keep(np.array([one is not None for one in sample.rows["victims"]], dtype=bool))


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


WHITE_BOX = {"vgg19": ("VGG-19", 1), "resnet101": ("ResNet-101", 2)}  # of the paper's victims


def black_box_means(source: str) -> tuple[float, float]:
    """The paper's mean rates over networks that were not attacked: its own attack, and I-FGSM."""
    rates, (_, white) = published()["table3"][source], WHITE_BOX[source]
    own, start = (float(np.mean(np.delete(rates[one], white))) for one in ("wifgsm", "ifgsm"))
    return own, start


def paper_transfer() -> str:
    """Table 3 as printed, with the I-FGSM rows that stand in comments of its source."""
    victims = ("VGG-16", "VGG-19", "ResNet-101", "ResNet-152")
    lines = []
    for source, (name, white) in WHITE_BOX.items():
        for label, rates in published()["table3"][source].items():
            cells = [f"{one}*" if place == white else str(one) for place, one in enumerate(rates)]
            black = [one for place, one in enumerate(rates) if place != white]
            title = "its own" if label == "wifgsm" else TITLES[label]
            lines.append([name, title, *cells, f"{np.mean(black):.1f}"])
    return markdown_table(("source", "attack", *victims, "mean, black-box"), lines)
