"""The claims: one part of the attack replaced at a time, transfer, and near-optimality."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from generators.paper.printed import LITE0, RESNET18
from generators.paper.rows import ROOT, Layout, Sample
from generators.paper.sweeps import NETWORKS
from generators.paper.text import (
    DASH,
    NOT_MEASURED,
    first_of,
    fooling_rate,
    mean_of_fooled,
    mean_with_interval,
    measured_table,
    percent,
    rate,
    short,
)
from generators.paper.transfer import SOURCES, WHITE_BOX, black_box_means, victim_rate
from pinprick.attacks.card import Attack
from pinprick.report.docs_measured import markdown_table

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
        for name, sample in _variants(plan, model).items():
            lines.append([network, name, VARIANTS[name][0], *_figures(sample)])
    head = ("network", "variant", "what is replaced", "fooled", "mean elements", "first success")
    return measured_table(head, lines)


def _variants(plan: Layout, model: str) -> dict[str, Sample | None]:
    """What each variant did to the images of a network."""
    found = [(attack, sample) for attack, sample in plan.each(model) if hasattr(attack, "rule")]
    return {
        name: next((sample for attack, sample in found if chosen(attack)), None)
        for name, (_, chosen) in VARIANTS.items()
    }


def variants_in_short(plan: Layout) -> list[str]:
    """What the parts bring, on the network with most images."""
    each = {network: _variants(plan, model) for model, network in NETWORKS.items()}
    network = max(each, key=lambda one: min(v.n if v else 0 for v in each[one].values()))
    whole = {name: one for name, one in each[network].items() if one is not None}
    if len(whole) < len(VARIANTS):
        return [f"**Start, box rule, ReLU and q_a**: {NOT_MEASURED}."]
    starts = [one.fooled.mean() for name, one in whole.items() if name.startswith("start")]

    def figures(name: str) -> str:
        one = whole[name]
        return f"{percent(float(one.fooled.mean()))} with {mean_of_fooled(one)} elements"

    return [
        f"**Start and box rule** ({network}): as printed the attack fools "
        f"{figures('as printed')}. Other starts fool {percent(min(starts))} to "
        f"{percent(max(starts))}. Clipping in place of the box rule fools {figures('clipping')}.",
        f"**ReLU and q_a** (the same): a plain ReLU fools {figures('plain ReLU')}. "
        f"A straight-through gradient in place of q_a fools {figures('straight-through')}.",
    ]


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
    head = ("network", "sides of", "fooled", "mean elements", "first success")
    return measured_table(head, lines)


def _figures(sample: Sample | None) -> list[str]:
    if sample is None:
        return [NOT_MEASURED, DASH, DASH]
    first = float(np.median(sample.first))
    steps = short(first) if np.isfinite(first) else "∞"
    return [fooling_rate(sample), mean_with_interval(sample.elements), steps]


def near_optimal(table1: Layout, claims: Layout) -> str:
    """Elements of both forms over those of ``auto`` on the same images."""
    table1_networks = {model: NETWORKS[model] for model in (RESNET18, LITE0)}
    lines = [
        [network, title, *over_auto(table1, claims, model, label)]
        for model, network in table1_networks.items()
        for label, title in (("wifgsm", "our form"), ("wifgsm_printed", "as printed"))
    ]
    head = ("network", "attack", "elements over those of `auto`", "images as sparse as `auto`", "n")
    return measured_table(head, lines)


def over_auto(table1: Layout, claims: Layout, model: str, label: str) -> list[str]:
    """Ratio of elements, share of images that are as sparse, and their number."""
    best = first_of(claims.find(model, "untargeted", "auto"))
    mine = first_of(table1.find(model, "untargeted", label))
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


@cache
def optimum_rows() -> list[dict[str, Any]]:
    path = ROOT / "results" / "optimum" / "paper.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return rows


def case_of(row: dict[str, Any]) -> str:
    """Network and goal: "digits, targeted"."""
    return str(row["case"].rpartition("/")[0].replace("/", ", "))


def attack_of(row: dict[str, Any]) -> str:
    attack = row["attack"]
    tau = f", τ {attack['tau']:g}" if attack["name"] == "wifgsm_printed" else ""
    return f"{attack['name']}{tau}"


def fooled_pairs(row: dict[str, Any]) -> list[tuple[float, float]]:
    """Needed and fewest elements of the images that are fooled."""
    both = zip(row["needed"], row["fewest"], strict=True)
    return [(needed, fewest) for needed, fewest in both if needed is not None]


def over_fewest(row: dict[str, Any]) -> float:
    """Elements over the proved fewest, on fooled images; NaN if none is."""
    pairs = fooled_pairs(row)
    if not pairs:
        return float("nan")
    return sum(needed for needed, _ in pairs) / sum(fewest for _, fewest in pairs)


def proved_optima() -> str:
    """Elements over the proved fewest, per case and attack."""
    lines = []
    for row in optimum_rows():
        pairs, ratio = fooled_pairs(row), over_fewest(row)
        lines.append(
            [
                case_of(row),
                f"`{attack_of(row)}`, revision {row['revision']}",
                rate(len(pairs), row["n"]),
                f"{ratio:.2f}" if pairs else DASH,
                str(sum(needed == fewest for needed, fewest in pairs)),
            ]
        )
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
    for source, (name, _) in WHITE_BOX.items():
        means = black_box_means(source)
        texts = [percent(one / 100) for one in means]
        lines.append(["the paper", name, "its own", *texts, f"{means[0] / means[1]:.2f}"])
    head = ("images", "source", "form", "fooling rate of other networks", "that of I-FGSM", "ratio")
    return measured_table(head, lines)


def black_box_rate(plan: Layout, source: str, label: str) -> float | None:
    """The mean fooling rate of an attack over the networks that it was not made for."""
    nets = next(nets for nets in SOURCES.values() if source in nets)
    return _black_box(plan, source, nets, first_of(plan.find(source, "untargeted", label)))


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
