"""Table 4: time and passes, and the speed-ups that the paper prints."""

from collections.abc import Iterator, Sequence

import numpy as np

from generators.paper.printed import LITE0, NETWORKS_FILE, RESNET18, TITLES, published
from generators.paper.rows import Layout, Sample, on_both
from generators.paper.text import DASH, NOT_MEASURED, first_of, fooling_rate, short
from pinprick.bench.plan import Product
from pinprick.metrics.speedups import mean_of_ratios, ratio_of_sums
from pinprick.report.docs_measured import markdown_table

TIMED = {  # of table 4
    LITE0: "EfficientNet-Lite0, 224 px",
    f"{NETWORKS_FILE}imagenet_resnet50": "ResNet-50, 224 px",
    RESNET18: "ResNet-18, 32 px",
}


HEAD = (
    *("attack", "s per image", "s per batch", "s alone", "passes", "fooled"),
    *("mean of ratios", "ratio of sums", "ratio in time"),
)


def table4(plan: Layout) -> str:
    """One table per network with rows, then how many attacks each network has."""
    parts, lines = [], []
    for model, title in TIMED.items():
        known = list(_times(plan, model))
        wanted = len({*plan.attacks(model=model), "egs_tssa"})
        lines.append([title, f"{len(known)} of {wanted}"])
        if known:
            parts.append(f"### {title}{_where(plan, model)}\n\n{markdown_table(HEAD, known)}")
    coverage = markdown_table(("network", "attacks measured"), lines)
    return "\n\n".join((*parts, f"### What is measured\n\n{coverage}"))


def _where(plan: Layout, model: str) -> str:
    """On what the network was timed, and in what batch."""
    every = [first_of(plan.find(model, "untargeted", label, where=_batch)) for label in TITLES]
    known = [sample for sample in every if sample is not None]
    devices = {name for sample in known for name in sample.rows["device"]}
    names = " and ".join("a GPU" if name == "cuda" else "a CPU" for name in sorted(devices))
    images = max(len(sample.rows["index"]) for sample in known)
    return f", on {names}, {images} images"


def _batch(one: Product) -> bool:
    return one.batch_size != 1


def _alone(one: Product) -> bool:
    return one.batch_size == 1


def _times(plan: Layout, model: str) -> Iterator[Sequence[str]]:
    ours = first_of(plan.find(model, "untargeted", "wifgsm", where=_batch))
    for label, title in TITLES.items():
        many = first_of(plan.find(model, "untargeted", label, where=_batch))
        one = first_of(plan.find(model, "untargeted", label, where=_alone))
        if many is None:
            continue
        each = float(many.seconds.mean())
        yield [
            title,
            f"{each:.3g}",
            f"{each * len(many.rows['index']):.3g}",
            DASH if one is None else f"{one.seconds.mean():.3g}",
            short(float(many.passes.mean())),
            fooling_rate(many),
            *_speedups(many, ours),
        ]


def _speedups(theirs: Sample, ours: Sample | None) -> list[str]:
    """Passes over those of wifgsm, averaged both ways, and the ratio in time."""
    if ours is None or theirs is ours:
        return [DASH, DASH, DASH]
    their, mine = on_both(theirs, ours)
    return [
        f"{mean_of_ratios(their.passes, mine.passes):.3g}",
        f"{ratio_of_sums(their.passes, mine.passes):.3g}",
        f"{_in_time(theirs, ours):.3g}",
    ]


def _in_time(theirs: Sample, ours: Sample) -> float:
    """Seconds over those of our form, on the images that both have."""
    their, mine = on_both(theirs, ours)
    return float(their.seconds.mean() / mine.seconds.mean())


def in_short(plan: Layout) -> str:
    """Time of the attacks that the paper compares with over that of our form, where measured."""
    found = {}
    for model, title in TIMED.items():
        ours = first_of(plan.find(model, "untargeted", "wifgsm", where=_batch))
        others = [
            first_of(plan.find(model, "untargeted", label, where=_batch))
            for label in published()["table4"]["seconds"]
            if label not in ("wifgsm", "ifgsm")
        ]
        known = [one for one in others if one is not None]
        if ours is not None and known:
            found[title + _where(plan, model)] = [_in_time(one, ours) for one in known]
    if not found:
        return f"**Time** is {NOT_MEASURED} here."
    lines = [
        f"{len(ratios)} attacks take {min(ratios):.3g} to {max(ratios):.3g} times as long as our "
        f"form ({title})."
        for title, ratios in found.items()
    ]
    return f"**Time.** {' '.join(lines)}"


def paper_seconds() -> str:
    """Table 4 as printed, with the I-FGSM row that stands in a comment of its source."""
    lines = [
        ["its own" if label == "wifgsm" else TITLES[label], *map(str, seconds)]
        for label, seconds in published()["table4"]["seconds"].items()
    ]
    return markdown_table(("attack", "VGG-16", "VGG-19", "ResNet-101", "ResNet-152"), lines)


def speedups() -> dict[str, tuple[float, float, float]]:
    """Per attack, the printed speed-up, the mean of ratios, and the ratio of sums."""
    seconds, printed = published()["table4"]["seconds"], published()["table4"]["speedups"]
    ours = np.array(seconds["wifgsm"])
    return {
        label: (
            number,
            mean_of_ratios(np.array(seconds[label]), ours),
            ratio_of_sums(np.array(seconds[label]), ours),
        )
        for label, number in printed.items()
    }


def kind_of_speedup(printed: float, mean: float, ratio: float) -> str:
    """Which of the two ways gives the printed number, to one decimal."""
    ways = {"mean of ratios": mean, "ratio of sums": ratio}
    return next((way for way, one in ways.items() if f"{one:.1f}" == f"{printed:.1f}"), "neither")


def paper_speedups() -> str:
    """The printed speed-ups beside both ways to compute them from the paper's own table."""
    lines = [
        [TITLES[label], *(f"{one:.1f}" for one in numbers), kind_of_speedup(*numbers)]
        for label, numbers in speedups().items()
    ]
    head = ("attack", "printed", "mean of ratios", "ratio of sums", "the printed one is")
    return markdown_table(head, lines)
