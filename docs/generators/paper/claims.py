"""The claims: one part of the attack replaced at a time, transfer, and near-optimality."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from generators.paper.printed import LITE0, RESNET18
from generators.paper.rows import ROOT, Layout, Sample, fooled_by_both, on_both
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
from generators.paper.transfer import (
    SOURCES,
    WHITE_BOX,
    black_box_means,
    same_class,
    victim_rate,
    with_victims,
)
from pinprick.attacks.card import Attack
from pinprick.metrics.paired_tests import holm, mcnemar
from pinprick.report.docs_measured import markdown_table

LEVEL = 0.05  # of significance
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
        found = _variants(plan, model)
        for name, sample in found.items():
            shared = _beside(found["as printed"], sample)
            lines.append([network, name, VARIANTS[name][0], *_figures(sample), *shared])
    head = ("network", "variant", "what is replaced", "fooled", "mean elements", "first success")
    return measured_table((*head, "beside as printed", "n"), lines)


def _beside(printed: Sample | None, variant: Sample | None) -> list[str]:
    """Mean elements as printed and of a variant, on the images that both fool."""
    if printed is None or variant is None or printed is variant:
        return [DASH, DASH]
    both = fooled_by_both(printed, variant)
    first, second = map(mean_of_fooled, both)
    return [f"{first} and {second}", str(both[0].n)]


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
    printed = whole["as printed"]
    others = {name: one for name, one in whole.items() if name.startswith("start")}
    starts = [float(one.fooled.mean()) for one in others.values()]

    def fooled(name: str) -> str:
        return percent(float(whole[name].fooled.mean()))

    def elements(name: str) -> str:
        mine, theirs = map(mean_of_fooled, fooled_by_both(printed, whole[name]))
        return f"{theirs} elements, and the attack as printed {mine}"

    return [
        f"**The start** ({network}, n {printed.n}): as printed, with the sparsest image kept, the "
        f"attack fools {fooled('as printed')}. Other starts fool {percent(min(starts))} to "
        f"{percent(max(starts))}. {_different(printed, others)}",
        f"**The box rule**: clipping fools {fooled('clipping')}. On images that both fool, it "
        f"needs {elements('clipping')}.",
        f"**The tailored ReLU**: a plain one fools {fooled('plain ReLU')}. On images that both "
        f"fool, it needs {elements('plain ReLU')}.",
        f"**q_a**: a straight-through gradient fools {fooled('straight-through')}. On images that "
        f"both fool, it needs {elements('straight-through')}.",
    ]


def _different(printed: Sample, others: Mapping[str, Sample]) -> str:
    """How many starts fool significantly more or fewer images than I-FGSM."""
    pairs = [on_both(printed, one) for one in others.values()]
    corrected = holm([mcnemar(mine.fooled, theirs.fooled) for mine, theirs in pairs])
    count = sum(p < LEVEL for p in corrected)
    return f"{count} of {len(corrected)} differ significantly (McNemar's test, Holm's correction)."


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
    ours, theirs = fooled_by_both(mine, best)
    if not ours.n:
        return [DASH, DASH, "0"]
    return [
        f"{ours.elements.sum() / theirs.elements.sum():.2f}",
        percent(float((ours.elements <= theirs.elements).mean())),
        str(ours.n),
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
                cells = [NOT_MEASURED, DASH, DASH, DASH]
                if mine is not None and len(known) == 2:
                    ratio = f"{known[0] / known[1]:.2f}" if known[1] else DASH
                    cells = [percent(known[0]), percent(known[1]), ratio, same_class(mine, start)]
                lines.append([title, name, form, *cells])
    for source, (name, _) in WHITE_BOX.items():
        means = black_box_means(source)
        texts = [percent(one / 100) for one in means]
        lines.append(["the paper", name, "its own", *texts, f"{means[0] / means[1]:.2f}", DASH])
    head = ("images", "source", "form", "fooling rate of other networks", "that of I-FGSM", "ratio")
    return measured_table((*head, "same wrong class"), lines)


def transfer_in_short(plan: Layout) -> str:
    """Whether our form transfers as well as its own start."""
    mine, other = (black_box_rate(plan, LITE0, label) for label in ("wifgsm", "ifgsm"))
    sample, start = (first_of(plan.find(LITE0, "untargeted", one)) for one in ("wifgsm", "ifgsm"))
    if mine is None or not other or sample is None:
        return f"**Transferability** is {NOT_MEASURED}."
    return (
        f"**Transferability is lost.** From EfficientNet-Lite0, our form fools other networks on "
        f"{percent(mine)} of the images, its start I-FGSM on {percent(other)}. Both reach the same "
        f"wrong class on {same_class(sample, start)}."
        if mine < other
        else f"**Transferability** is kept: {percent(mine)} and {percent(other)}."
    )


def black_box_rate(plan: Layout, source: str, label: str) -> float | None:
    """The mean fooling rate of an attack over the networks that it was not made for."""
    nets = next(nets for nets in SOURCES.values() if source in nets)
    return _black_box(plan, source, nets, first_of(plan.find(source, "untargeted", label)))


def _black_box(
    plan: Layout, source: str, nets: dict[str, str], sample: Sample | None
) -> float | None:
    """The mean fooling rate over the other networks."""
    if sample is None or not (sample := with_victims(sample)).n:
        return None
    one = next(one for one in plan.plan.products if source in one.models and one.victims)
    order = [victim for victim in one.victims if victim != source]
    if len(sample.rows["victims"][0]) != len(order):
        return None
    pairs = [victim_rate(sample, order.index(net)) for net in nets if net != source]
    return float(np.mean([fooled / both for fooled, both in pairs if both]))
