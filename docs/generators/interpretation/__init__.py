"""The answer and the tables of docs/results/interpretation.md, from results/interpretation/."""

from collections.abc import Iterator, Sequence

import numpy as np

from generators.interpretation.rows import (
    DENSE,
    Row,
    all_rows,
    cases,
    connected,
    flip,
    kind,
    name_of,
    null_share,
    on_one_map,
    pairs_of,
    same_sampling,
    title_of,
)
from pinprick.attacks import ATTACKS
from pinprick.explain.noise.labels import LABELS
from pinprick.metrics.wilson import wilson_interval
from pinprick.report.docs_measured import markdown_list, markdown_table

DASH = "\N{EN DASH}"
FAMILIES = {
    "obscuring alone leaves": ("obscuring alone", "leaves"),
    "leading alone reaches": ("leading alone", "reaches"),
    "both reach": ("obscuring and leading", "reaches"),
    "without obscuring reaches": ("without obscuring", "reaches"),
    "without leading reaches": ("without leading", "reaches"),
}
SHORT = ("obscuring", "leading", "mixed", "inert", "counter", "undecided")  # LABELS, in a table
Lines = Iterator[Sequence[str]]


def answer() -> str:
    """The answer in five points."""
    points = (_kinds(), _alone(), _object(), _place(), _decided())
    return markdown_list(points, numbered=True)


def _kinds() -> str:
    shares = {name: [kind(row, name) for row in connected()] for name in ("obscuring", "leading")}
    return (
        f"**Both kinds exist.** Per run, {_range(shares['obscuring'])} of the groups are obscuring "
        f"and {_range(shares['leading'])} are leading. The network and the goal decide which "
        "prevails."
    )


def _alone() -> str:
    pooled = {title: _pooled(connected(), *what) for title, what in FAMILIES.items()}
    return (
        "**One kind alone is rarely enough.** Obscuring groups alone leave the true class in "
        f"{pooled['obscuring alone leaves']}. Leading groups alone reach the other class in "
        f"{pooled['leading alone reaches']}. Without leading groups, the rest reaches it in "
        f"{pooled['without leading reaches']}."
    )


def _object() -> str:
    share = [row["totals"]["inside"]["value"] for row in connected()]
    chance = [row["totals"]["inside_chance"]["value"] for row in connected()]
    tested = [row["totals"]["inside_significant"] for row in connected()]
    above = sum(
        row["totals"]["inside_excess"]["low"] > 0
        for row in connected()
        if row["totals"]["inside_excess"]["low"] is not None
    )
    single = sum(one["value"] * one["images"] for one in tested) / sum(
        one["images"] for one in tested
    )
    return (
        f"**Changed pixels lie on the object more often than by chance in {above} of "
        f"{len(share)} runs.** In the mean over images {_range(share)} of them do, by chance "
        f"{_range(chance)}. Of single images {100 * single:.0f} % are significant, since few "
        "pixels change."
    )


def _place() -> str:
    rows = connected()
    said, against = on_one_map(rows)
    each = {(net, goal): on_one_map(mine) for net, goal, mine in cases(rows)}
    shares = {case: one[0] / sum(one) for case, one in each.items() if sum(one) >= 50}
    low, high = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    pure = sum(sum(map(sum, row["totals"]["table"]["counts"][:2])) for row in rows)
    null = null_share(rows)
    measured = ", ".join(
        dict.fromkeys(net for net, _, mine in cases(rows) if null_share(mine) is not None)
    )
    by_chance = (
        "" if null is None else f" By chance it is {100 * null:.0f} %, measured for {measured}."
    )
    return (
        f"**Of groups on exactly one map, {_rate(said, said + against)} lie as the paper says.** "
        f"These are obscuring and leading groups.{by_chance} "
        f"Lowest: {', '.join(low)}, {100 * shares[low]:.0f} %. Highest: {', '.join(high)}, "
        f"{100 * shares[high]:.0f} %. Only {100 * (said + against) / pure:.0f} % of all obscuring "
        "and leading groups lie on exactly one map."
    )


def _decided() -> str:
    rows = same_sampling()
    sparse, dense = (
        _range(
            [row["totals"]["decided"]["value"] for row in rows if (name_of(row) == DENSE) == dense]
        )
        for dense in (False, True)
    )
    return (
        "**Dense changes are not harder to label.** With equal sampling, "
        f"{sparse} of the labels of sparse attacks are decided, and {dense} of those of I-FGSM."
    )


def _pooled(rows: Sequence[Row], family: str, what: str) -> str:
    """A flip rate over all runs; an image counts once per attack."""
    found = [one for row in rows if (one := flip(row, family, what)) is not None]
    images = sum(one["images"] for one in found)
    return _rate(round(sum(one["value"] * one["images"] for one in found)), images)


def kinds() -> Lines:
    yield ["network, goal", "attack", "fooled", "pixels", "groups", *SHORT, "strict"]
    for row in connected():
        totals = row["totals"]
        shares = {one["name"]: one["share"] for one in totals["kinds"]}
        few = [percent(shares[name], interval=name in LABELS[:2]) for name in LABELS]
        strict = [one["share"]["value"] for one in totals["strict"]]
        known = [100 * one for one in strict if one is not None]
        fooled, pixels = f"{100 * row['fooled']:.0f} %", f"{row['mean_pixels']:.1f}"
        groups = f"{totals['groups']['value']:.1f}"
        yield [*names(row), fooled, pixels, groups, *few, f"{sum(known):.0f} %"]


def place() -> Lines:
    yield ["network, goal", "as the paper says", "against", "share", "by chance", "V, range"]
    for network, goal, rows in cases(connected()):
        said, against = on_one_map(rows)
        null = null_share(rows)
        v = [row["totals"]["table"]["cramers_v"] for row in rows]
        known = [one for one in v if one is not None]
        yield [
            *(f"{network}, {goal}", str(said), str(against), _rate(said, said + against)),
            "not measured" if null is None else f"{100 * null:.0f} %",
            f"{min(known):.2f} to {max(known):.2f}" if known else DASH,
        ]


def contingency() -> Lines:
    table = connected()[0]["totals"]["table"]
    yield ["kind by effect", *(f"on {name}" for name in table["columns"])]
    total = sum(np.array(row["totals"]["table"]["counts"]) for row in connected())
    for name, counts in zip(table["rows"], np.asarray(total).tolist(), strict=True):
        yield [name, *map(str, counts)]


def on_the_object() -> Lines:
    yield ["network, goal", "attack", "on the object", "its chance", "significant images", "n"]
    for row in connected():
        totals = row["totals"]
        shown = (percent(totals["inside"]), percent(totals["inside_chance"], interval=False))
        tested = totals["inside_significant"]
        yield [*names(row), *shown, percent(tested), str(tested["images"])]


def flips() -> Lines:
    yield ["network, goal", *FAMILIES]
    for network, goal, rows in cases(connected()):
        yield [f"{network}, {goal}", *(_pooled(rows, *what) for what in FAMILIES.values())]


def decided() -> Lines:
    yield ["network, goal", "attack", "pixels", "groups", "pairs", "images", "decided"]
    for row in same_sampling():
        totals = row["totals"]
        pixels, groups = f"{row['mean_pixels']:.1f}", f"{totals['groups']['value']:.1f}"
        counts = (pixels, groups, str(pairs_of(row)), str(totals["explained"]))
        yield [*names(row), *counts, percent(totals["decided"])]


def runs() -> Lines:
    yield ["network, goal", "images", "map", "attacks", "device", "commit"]
    seen: dict[tuple[str, ...], set[str]] = {}
    for row in all_rows():
        run = row["run"]
        about = str(run["images"]), row.get("map") or "gradcam"
        commit = str(run.get("commit") or "unknown")[:10]
        key = f"{row['network']}, {row['goal']}", *about, run["device"], commit
        seen.setdefault(key, set()).add(row["attack"])
    for (case, images, method, device, commit), attacks in seen.items():
        yield [case, images, method, str(len(attacks)), device, commit]


def attacks() -> Lines:
    yield ["attack", "as given to `--attack`", "revision", "networks and goals"]
    seen: dict[tuple[str, str, str], set[tuple[str, str]]] = {}
    for row in all_rows():
        key = ATTACKS[name_of(row)].card.title, row["attack"], str(row.get("revision") or "unknown")
        seen.setdefault(key, set()).add((row["network"], row["goal"]))
    for (title, given, revision), where in sorted(seen.items()):
        yield [title, f"`{given}`", revision, str(len(where))]


def names(row: Row) -> list[str]:
    return [f"{row['network']}, {row['goal']}", title_of(row)]


def percent(estimate: Row, *, interval: bool = True) -> str:
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if value is None:
        return DASH
    around = f" ({100 * low:.0f}{DASH}{100 * high:.0f})" if interval and low is not None else ""
    return f"{100 * value:.0f} %{around}"


def _range(shares: Sequence[float | None]) -> str:
    known = [100 * one for one in shares if one is not None]
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"{low} %" if low == high else f"{low} to {high} %"


def _rate(count: int, n: int) -> str:
    low, high = wilson_interval(count, n)
    return f"{100 * count / n:.0f} % ({100 * low:.0f}{DASH}{100 * high:.0f}, n {n})" if n else DASH


def _table(lines: Lines) -> str:
    head, *rows = lines
    return markdown_table(head, rows)


PAGES = {
    "docs/results/interpretation.md": {
        "answer": answer,
        "kinds": lambda: _table(kinds()),
        "place": lambda: _table(place()),
        "contingency": lambda: _table(contingency()),
        "object": lambda: _table(on_the_object()),
        "flips": lambda: _table(flips()),
        "decided": lambda: _table(decided()),
        "runs": lambda: _table(runs()),
        "attacks": lambda: _table(attacks()),
    }
}
