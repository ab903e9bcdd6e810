"""The tables and values of docs/results/interpretation.md, from results/interpretation/."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from pinprick.explain.noise.labels import LABELS
from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "interpretation"
SMOOTHED = ("ResNet-18", "VGG-16")
STORED = "ResNet-18, 8-bit"
ROBUST = ("ResNet-18, PGD-AT", "ResNet-20, PGD-AT")
PHOTOGRAPHS = ("EfficientNet-Lite0", "ResNet-50, ImageNet")
NETWORKS = (
    "ResNet-18",
    "ResNet-18, PGD-AT",
    STORED,
    "ResNet-18, PGD-AT, 8-bit",
    "ResNet-20",
    "ResNet-20, PGD-AT",
    "VGG-16",
    *PHOTOGRAPHS,
    "Fashion-MNIST CNN",
)
GROUPS = {
    "adversarially trained": ROBUST,
    "standard ResNet-20": ("ResNet-20",),
    "standard ResNet-18 and VGG-16, smoothed labels": SMOOTHED,
    "photographs": PHOTOGRAPHS,
}
GOALS = ("untargeted", "least likely")
TITLES = {"pinprick": "Pinprick", "sigma_zero": "σ-zero", "wifgsm": "WI-FGSM", "ifgsm": "I-FGSM"}
DASH = "\N{EN DASH}"

Row = dict[str, Any]


@cache
def all_rows() -> list[Row]:
    """All rows, network by network, with the names of network and goal."""
    found = []
    for path in ROWS.glob("*.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        names = {"network": document["network"], "goal": document["goal"]}
        found += [row | names for row in document["rows"]]
    attacks = list(TITLES)

    def order(row: Row) -> tuple[int, int, int]:
        goal, attack = GOALS.index(row["goal"]), attacks.index(name_of(row))
        return NETWORKS.index(row["network"]), goal, attack

    return sorted(found, key=order)


def table(lines: Callable[[list[Row]], Iterator[list[str]]]) -> str:
    head, *rows = lines(all_rows())
    return markdown_table(head, rows)


def groups(rows: list[Row]) -> Iterator[list[str]]:
    """The range of each share over the networks of a group and the sparse attacks."""
    yield ["networks", "goal", "obscuring", "leading", "changed pixels on the object", "chance"]
    for title, networks in GROUPS.items():
        for goal in GOALS:
            totals = [
                row["totals"]
                for row in sparse(rows)
                if row["network"] in networks and row["goal"] == goal
            ]
            shares = [[kind(one, name) for one in totals] for name in ("obscuring", "leading")]
            places = [[one[key]["value"] for one in totals] for key in ("inside", "inside_chance")]
            yield [title, goal, *map(percent_range, (*shares, *places))]


def stored_kinds(name: str, goal: str) -> str:
    """The range of one kind of single pixels of the stored ResNet-18."""
    mine = [row["totals"] for row in stored(all_rows()) if row["goal"] == goal]
    return percent_range([kind(totals, name) for totals in mine])


def stored_inside(goal: str) -> str:
    mine = [row["totals"] for row in stored(all_rows()) if row["goal"] == goal]
    return percent_range([totals["inside"]["value"] for totals in mine])


def stored(rows: list[Row]) -> Iterator[Row]:
    return (
        row
        for row in grouped(rows, "pixels")
        if row["network"] == STORED and name_of(row) != "ifgsm"
    )


def flipped(name: str, what: str) -> str:
    """The range over networks, goals and sparse attacks of images that some groups flip."""
    found = []
    for row in sparse(all_rows()):
        flips = {one["name"]: one for one in row["totals"]["flips"]}
        found.append(flips[name][what]["value"])
    return percent_range([value for value in found if value is not None])


def association() -> str:
    found = [row["totals"]["table"]["cramers_v"] for row in sparse(all_rows())]
    return f"{min(found):.2f} to {max(found):.2f}"


def decided_range(goal: str, networks: Sequence[str], *, dense: bool) -> str:
    found = [
        row["totals"]["decided"]["value"]
        for row in grouped(all_rows(), "pixels")
        if pairs_of(row)
        and row["goal"] == goal
        and row["network"] in networks
        and (name_of(row) == "ifgsm") == dense
    ]
    return percent_range(found)


def largest_error() -> str:
    return f"{100 * max(row['largest_error'] for row in all_rows()):.1f} %"


def fooled_by_ifgsm(goal: str) -> str:
    found = [
        row["fooled"]
        for row in all_rows()
        if row["network"] in ROBUST
        and row["goal"] == goal
        and name_of(row) == "ifgsm"
        and row["settings"]["grouping"] == "connected"
    ]
    return percent_range(found)


def kind(totals: Row, name: str) -> float:
    return {one["name"]: float(one["share"]["value"]) for one in totals["kinds"]}[name]


def percent_range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * value:.0f}" for value in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def kinds(rows: list[Row]) -> Iterator[list[str]]:
    yield ["network", "goal", "attack", "fooled", "pixels", "groups", *LABELS]
    for row in sparse(rows):
        totals = row["totals"]
        shares = {one["name"]: one["share"] for one in totals["kinds"]}
        few = [percent(shares[name], interval=name in LABELS[:3]) for name in LABELS]
        fooled = f"{100 * row['fooled']:.0f} %"
        yield [*names(row), fooled, pixels(row), f"{totals['groups']['value']:.1f}", *few]


def on_the_object(rows: list[Row]) -> Iterator[list[str]]:
    yield ["network", "goal", *TITLES.values(), "chance"]
    for network in NETWORKS:
        for goal in GOALS:
            mine = {
                name_of(row): row["totals"]
                for row in grouped(rows, "connected")
                if (row["network"], row["goal"]) == (network, goal)
            }
            if mine:
                shares = [percent(mine[one]["inside"]) if one in mine else DASH for one in TITLES]
                chance = next(iter(mine.values()))["inside_chance"]
                yield [network, goal, *shares, percent(chance, interval=False)]


def decided(rows: list[Row]) -> Iterator[list[str]]:
    """Rows of the same sampling alone: exact effects would be decided whatever they are."""
    yield ["network", "goal", "attack", "pixels", "groups", "pairs", "images", "decided"]
    for row in grouped(rows, "pixels"):
        totals, pairs = row["totals"], pairs_of(row)
        if pairs:
            groups = f"{totals['groups']['value']:.1f}"
            explained = str(totals["explained"])
            counts = [pixels(row), groups, str(pairs), explained]
            yield [*names(row), *counts, percent(totals["decided"])]


def alone(rows: list[Row]) -> Iterator[list[str]]:
    yield [
        *("network", "goal", "attack", "obscuring share", "V (p)"),
        *("obscuring alone leaves", "leading alone reaches", "both reach"),
    ]
    for row in sparse(rows):
        totals = row["totals"]
        flips = {one["name"]: one for one in totals["flips"]}
        yield [
            *names(row),
            percent(totals["obscuring_share"]),
            f"{totals['table']['cramers_v']:.2f} ({totals['table']['p']:.2g})",
            percent(flips["obscuring alone"]["leaves"], interval=False),
            percent(flips["leading alone"]["reaches"], interval=False),
            percent(flips["obscuring and leading"]["reaches"], interval=False),
        ]


def runs(rows: list[Row]) -> Iterator[list[str]]:
    yield ["network", "goal", "images", "attacks, as given to `--attack`", "device"]
    seen: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        key = row["network"], row["goal"], str(row["run"]["images"]), row["run"]["device"]
        attacks = seen.setdefault(key, [])
        if f"`{row['attack']}`" not in attacks:
            attacks.append(f"`{row['attack']}`")
    for (network, goal, images, device), attacks in seen.items():
        yield [network, goal, images, ", ".join(attacks), device]


def grouped(rows: list[Row], grouping: str) -> Iterator[Row]:
    """The rows where groups are made so, and any image was fooled."""
    for row in rows:
        if row["settings"]["grouping"] == grouping and row["mean_pixels"] is not None:
            yield row


def sparse(rows: list[Row]) -> Iterator[Row]:
    return (row for row in grouped(rows, "connected") if name_of(row) != "ifgsm")


def pairs_of(row: Row) -> int:
    """The pairs of orders that every effect of a row comes from; 0 where that depends on groups."""
    settings = row["settings"]
    same = settings["exact"] == 0 and settings["least_pairs"] == settings["max_pairs"]
    return int(settings["max_pairs"]) if same else 0


def name_of(row: Row) -> str:
    return str(row["attack"]).split(",")[0]


def names(row: Row) -> list[str]:
    fast = ", fast" if "effort=fast" in row["attack"] else ""
    return [row["network"], row["goal"], TITLES[name_of(row)] + fast]


def pixels(row: Row) -> str:
    return f"{row['mean_pixels']:.{1 if row['mean_pixels'] < 1000 else 0}f}"


def percent(estimate: dict[str, float], *, interval: bool = True) -> str:
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if value is None:
        return DASH
    around = f" ({100 * low:.0f}{DASH}{100 * high:.0f})" if interval else ""
    return f"{100 * value:.0f} %{around}"


CIFAR10 = ("ResNet-18, 8-bit", "ResNet-18, PGD-AT, 8-bit", "ResNet-20", "ResNet-20, PGD-AT")
STANDARD = ("ResNet-18, 8-bit", "ResNet-20")
_TABLES = {
    "groups": groups,
    "kinds": kinds,
    "object": on_the_object,
    "decided": decided,
    "alone": alone,
    "runs": runs,
}
_DECIDED = {
    "CIFAR-10, untargeted": ("untargeted", CIFAR10),
    "standard, least likely": ("least likely", STANDARD),
    "photographs": ("untargeted", PHOTOGRAPHS),
}
PAGES = {
    "docs/results/interpretation.md": {
        **{name: partial(table, lines) for name, lines in _TABLES.items()},
        **{
            f"stored ResNet-18, {name}": partial(stored_kinds, name, "untargeted")
            for name in ("obscuring", "leading")
        },
        **{f"stored ResNet-18, inside, {goal}": partial(stored_inside, goal) for goal in GOALS},
        "obscuring alone leaves": partial(flipped, "obscuring alone", "leaves"),
        "leading alone reaches": partial(flipped, "leading alone", "reaches"),
        "without obscuring reaches": partial(flipped, "without obscuring", "reaches"),
        "without leading reaches": partial(flipped, "without leading", "reaches"),
        "association": association,
        **{
            f"decided, {attacks}, {title}": partial(
                decided_range, *about, dense=attacks == "I-FGSM"
            )
            for title, about in _DECIDED.items()
            for attacks in ("sparse", "I-FGSM")
        },
        "largest error": largest_error,
        "fooled by I-FGSM": partial(fooled_by_ifgsm, "untargeted"),
    }
}
