"""The tables of docs/results/interpretation.md."""

from collections.abc import Iterator, Sequence

import numpy as np

from generators.interpretation.rows import (
    GOALS,
    NETWORKS,
    Case,
    Row,
    all_rows,
    by_case,
    case_of,
    connected,
    is_dense,
    name_of,
    null_share,
    on_one_map,
    pairs_of,
    pooled_flip,
    same_sampling,
    title_of,
)
from generators.interpretation.text import DASH, NOT_MEASURED, percent, rate
from pinprick.attacks import ATTACKS
from pinprick.explain.noise.labels import LABELS
from pinprick.report.docs_measured import markdown_table

FAMILIES = {
    "obscuring alone leaves": ("obscuring alone", "leaves"),
    "leading alone reaches": ("leading alone", "reaches"),
    "both reach": ("obscuring and leading", "reaches"),
    "without obscuring reaches": ("without obscuring", "reaches"),
    "without leading reaches": ("without leading", "reaches"),
}
SHORT = ("obscuring", "leading", "mixed", "inert", "counter", "undecided")  # LABELS, in a table
Lines = Iterator[Sequence[str]]


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
    for case, rows in by_case(connected()).items():
        said, against = on_one_map(rows)
        null = null_share(rows)
        v = [row["totals"]["table"]["cramers_v"] for row in rows]
        known = [one for one in v if one is not None]
        yield [
            *(", ".join(case), str(said), str(against), rate(said, said + against)),
            NOT_MEASURED if null is None else f"{100 * null:.0f} %",
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
    for case, rows in by_case(connected()).items():
        yield [", ".join(case), *(rate(*pooled_flip(rows, *what)) for what in FAMILIES.values())]


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
        key = ", ".join(case_of(row)), *about, run["device"], commit
        seen.setdefault(key, set()).add(row["attack"])
    for (case, images, method, device, commit), attacks in seen.items():
        yield [case, images, method, str(len(attacks)), device, commit]


def attacks() -> Lines:
    yield ["attack", "as given to `--attack`", "revision", "networks and goals"]
    seen: dict[tuple[str, str, str], set[Case]] = {}
    for row in all_rows():
        key = ATTACKS[name_of(row)].card.title, row["attack"], str(row.get("revision") or "unknown")
        seen.setdefault(key, set()).add(case_of(row))
    for (title, given, revision), where in sorted(seen.items()):
        yield [title, f"`{given}`", revision, str(len(where))]


def coverage() -> Lines:
    yield ["network, goal", "kinds and places", "chance of places", "decided labels", "I-FGSM"]
    explained, sampled = by_case(connected()), by_case(same_sampling())
    for network in NETWORKS:
        for goal in GOALS:
            groups, pixels = (found.get((network, goal), []) for found in (explained, sampled))
            dense = sum(map(is_dense, pixels))
            counts = (len(groups), len(pixels) - dense)
            yes = (null_share(groups) is not None, dense > 0)
            kinds, labels = (str(count) if count else DASH for count in counts)
            chance, of_dense = ("yes" if one else DASH for one in yes)
            yield [f"{network}, {goal}", kinds, chance, labels, of_dense]


def names(row: Row) -> list[str]:
    return [", ".join(case_of(row)), title_of(row)]


def table(lines: Lines) -> str:
    head, *rows = lines
    return markdown_table(head, rows)
