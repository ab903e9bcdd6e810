"""The tables of docs/results/interpretation.md, from the rows in results/interpretation/.

    python benchmarks/interpretation_page.py
    python benchmarks/interpretation_page.py --network ResNet-20 --add OUT/interpretation.json

``--add`` takes up what ``interpretation.py`` wrote, without what it has of single images, into the
file of that network and goal; a row of the same attack, grouping and sampling is replaced. Every
table stands between two comments in the page, which also name it; the words around them are written
by hand.
"""

import argparse
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pinprick.explain.noise.labels import LABELS

ROOT = Path(__file__).parent.parent
ROWS, PAGE = ROOT / "results/interpretation", ROOT / "docs/results/interpretation.md"
NETWORKS = (
    "ResNet-18",
    "ResNet-18, PGD-AT",
    "ResNet-18, 8-bit",
    "ResNet-18, PGD-AT, 8-bit",
    "ResNet-20",
    "ResNet-20, PGD-AT",
    "VGG-16",
    "EfficientNet-Lite0",
    "ResNet-50, ImageNet",
    "Fashion-MNIST CNN",
)
GOALS = ("untargeted", "least likely")
TITLES = {"pinprick": "Pinprick", "sigma_zero": "σ-zero", "wifgsm": "WI-FGSM", "ifgsm": "I-FGSM"}
KEPT = (
    *("attack", "fooled", "attack_pixels", "mean_pixels", "median_pixels", "mean_elements"),
    *("describe", "settings", "map", "layer", "seconds", "explain_seconds"),
)
DASH = "\N{EN DASH}"

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--add", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--network", choices=NETWORKS, help="whose rows --add takes up")
    options = parser.parse_args()
    for path in options.add:
        add(json.loads(path.read_text()), options.network)
    PAGE.write_text(filled(PAGE.read_text(), rows_of(ROWS)))


def add(document: dict[str, Any], network: str) -> None:
    """Put the rows of one run into the file of its network and goal."""
    goal = document["goal"].replace("-", " ")
    path = ROWS / f"{re.sub('[^a-z0-9]+', '_', network.lower())}_{goal.replace(' ', '_')}.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    about = {key: document[key] for key in ("images", "skip", "device", "torch", "pinprick")}
    new = [shortened(row) | {"run": about} for row in document["rows"]]
    rows = {(row["attack"], row["settings"]["grouping"], pairs_of(row)): row for row in known + new}
    lines = ",\n".join(json.dumps(rounded(row), ensure_ascii=False) for row in rows.values())
    head = json.dumps({"network": network, "goal": goal}, ensure_ascii=False)[:-1]
    path.write_text(f'{head}, "rows": [\n{lines}\n]}}\n')


def shortened(row: Row) -> Row:
    errors = [one["error"] for one in row["images"] if one["error"] is not None]
    return {key: row[key] for key in KEPT if key in row} | {
        "largest_error": max(errors, default=None),
        "totals": row["totals"],
    }


def rounded(value: Any) -> Any:
    """Four digits are enough; what is no number is none."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def rows_of(folder: Path) -> list[Row]:
    """All rows, network by network, with the names of network and goal."""
    found = []
    for path in folder.glob("*.json"):
        document = json.loads(path.read_text())
        names = {"network": document["network"], "goal": document["goal"]}
        found += [row | names for row in document["rows"]]
    attacks = list(TITLES)

    def order(row: Row) -> tuple[int, int, int]:
        goal, attack = GOALS.index(row["goal"]), attacks.index(name_of(row))
        return NETWORKS.index(row["network"]), goal, attack

    return sorted(found, key=order)


def filled(page: str, rows: list[Row]) -> str:
    """The page with every table anew."""
    tables = {
        "kinds": kinds,
        "object": on_the_object,
        "decided": decided,
        "alone": alone,
        "runs": runs,
    }
    for name, table in tables.items():
        lines = "\n".join(f"| {' | '.join(cells)} |" for cells in table(rows))
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        assert begin in page, f"the page has no place for the table {name}"
        page = f"{page.split(begin)[0]}{begin}\n{lines}\n{end}{page.split(end)[1]}"
    return page


def kinds(rows: list[Row]) -> Iterator[list[str]]:
    yield from head("network", "goal", "attack", "fooled", "pixels", "groups", *LABELS)
    for row in sparse(rows):
        totals = row["totals"]
        shares = {one["name"]: one["share"] for one in totals["kinds"]}
        few = [percent(shares[name], interval=name in LABELS[:3]) for name in LABELS]
        fooled = f"{100 * row['fooled']:.0f} %"
        yield [*names(row), fooled, pixels(row), f"{totals['groups']['value']:.1f}", *few]


def on_the_object(rows: list[Row]) -> Iterator[list[str]]:
    yield from head("network", "goal", *TITLES.values(), "chance")
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
    yield from head("network", "goal", "attack", "pixels", "groups", "pairs", "images", "decided")
    for row in grouped(rows, "pixels"):
        totals, pairs = row["totals"], pairs_of(row)
        if pairs:
            groups = f"{totals['groups']['value']:.1f}"
            explained = str(totals["explained"])
            counts = [pixels(row), groups, str(pairs), explained]
            yield [*names(row), *counts, percent(totals["decided"])]


def alone(rows: list[Row]) -> Iterator[list[str]]:
    yield from head(
        *("network", "goal", "attack", "obscuring share", "V (p)"),
        *("obscuring alone leaves", "leading alone reaches", "both reach"),
    )
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
    yield from head("network", "goal", "images", "attacks, as given to `--attack`", "device")
    seen: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        key = row["network"], row["goal"], str(row["run"]["images"]), row["run"]["device"]
        attacks = seen.setdefault(key, [])
        if f"`{row['attack']}`" not in attacks:
            attacks.append(f"`{row['attack']}`")
    for (network, goal, images, device), attacks in seen.items():
        yield [network, goal, images, ", ".join(attacks), device]


def head(*columns: str) -> Iterator[list[str]]:
    yield list(columns)
    yield ["---"] * len(columns)


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


if __name__ == "__main__":
    main()
