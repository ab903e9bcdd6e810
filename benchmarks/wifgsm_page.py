"""The tables of docs/methods/wifgsm.md and wifgsm_printed.md, from the rows in results/wifgsm/.

``./scripts/docs measured`` puts them on the pages.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parent.parent / "results/wifgsm"
NETWORKS = {
    "ResNet-18, CIFAR-10": "resnet_18",
    "EfficientNet-Lite0, 224 px": "efficientnet_lite0",
    "MNIST CNN, Fast-AT": "mnist_cnn_fast_at",
    "MNIST CNN, PGD-AT": "mnist_cnn_pgd_at",
}
PAPER = {"untargeted": "44", "least likely": "69"}

Row = dict[str, Any]
Table = Iterator[list[str]]


@cache
def rows_of(folder: Path) -> list[Row]:
    """All rows, with the network, the goal and the number of images of their file."""
    found = []
    for title, start in NETWORKS.items() | {("ResNet-20, CIFAR-10", "resnet_20")}:
        for path in sorted(folder.glob(f"{start}_*.json")):
            document = json.loads(path.read_text())
            about = {key: document[key] for key in ("goal", "n", "device")}
            found += [row | about | {"network": title} for row in document["rows"]]
    titles = list(NETWORKS)

    def order(row: Row) -> tuple[int, bool]:
        known = row["network"] in titles
        return titles.index(row["network"]) if known else len(titles), row["goal"] != "untargeted"

    return sorted(found, key=order) + json.loads((folder / "overhead.json").read_text())


def made(table: Callable[[list[Row]], Table]) -> str:
    head, *lines = table(rows_of(ROWS))
    return markdown_table(head, lines)


def figures(rows: list[Row]) -> Table:
    yield [
        "network",
        "n",
        "goal",
        "fooled",
        "mean",
        "median",
        "σ-zero, 1000 steps",
        "ratio",
    ]
    for ours in part(rows, "figures", "ours"):
        (theirs,) = part(rows, "figures", "σ-zero, 1000 steps", like=ours)
        assert theirs["fooled"] == 1, "a ratio of means needs all images fooled"
        ratio = f"{ours['mean_of_fooled'] / theirs['mean_of_fooled']:.2f}"
        yield [*about(ours), *counts(ours), f"{theirs['mean_of_fooled']:.1f}", ratio]


def departures(rows: list[Row]) -> Table:
    cases = part(rows, "departures", "none left out")
    titles = (f"{each['network']}, {each['goal']}, {each['n']} images" for each in cases)
    yield ["left out", *titles]
    for title in dict.fromkeys(row["title"] for row in rows if row.get("part") == "departures"):
        cells = []
        for case in cases:
            (row,) = part(rows, "departures", title, like=case)
            cells.append(f"{percent(row)}, {number(row)}, {passes(row)}")
        yield [title, *cells]


def radii(rows: list[Row]) -> Table:
    cases = part(rows, "eps", "eps 4/255")
    yield ["ε of I-FGSM", *(f"{each['network']}, {each['goal']}" for each in cases)]
    titles = dict.fromkeys(row["title"] for row in rows if row.get("part") == "eps")
    for title in titles:
        cells = [number(part(rows, "eps", title, like=case)[0]) for case in cases]
        yield [title.removeprefix("eps "), *cells]
    worst = []
    for case in cases:
        means = [
            row["mean_of_fooled"]
            for row in rows
            if row.get("part") == "eps" and same(row, case) and "sides" not in row["title"]
        ]
        worst.append(f"{max(means) / min(means):.2f}")
    yield ["most over least, gates that turn", *worst]


def overhead(rows: list[Row]) -> Table:
    yield ["network", "batch", "time", "from", "to", "memory"]
    for row in rows:
        if row.get("part") == "overhead":
            ratios = [f"{row[key]:.3f}" for key in ("time", "least", "most", "memory")]
            yield [row["network"], str(row["batch"]), *ratios]


def printed(rows: list[Row]) -> Table:
    yield [
        "network",
        "n",
        "goal",
        "reading",
        "fooled",
        "mean",
        "median",
        "passes",
        "the paper",
    ]
    for row in rows:
        if row.get("part") == "printed":
            paper = PAPER[row["goal"]] if "ResNet" in row["network"] else ""
            yield [
                *about(row),
                row["title"].replace("tau", "τ").replace("lambda", "λ"),
                *counts(row),
                passes(row),
                paper,
            ]


def weights(rows: list[Row]) -> Table:
    yield ["λ", "fooled", "mean", "median"]
    for row in rows:
        if row.get("part") == "lam":
            yield [row["title"].removeprefix("lambda "), *counts(row)]


TABLES = {
    "wifgsm.md": {
        "figures": figures,
        "departures": departures,
        "radii": radii,
        "overhead": overhead,
    },
    "wifgsm_printed.md": {"readings": printed, "weights": weights},
}
PAGES = {
    f"docs/methods/{page}": {name: partial(made, table) for name, table in tables.items()}
    for page, tables in TABLES.items()
}


def part(rows: list[Row], name: str, title: str, like: Row | None = None) -> list[Row]:
    mine = [row for row in rows if (row.get("part"), row.get("title")) == (name, title)]
    return [row for row in mine if like is None or same(row, like)]


def same(row: Row, other: Row) -> bool:
    return (row["network"], row["goal"]) == (other["network"], other["goal"])


def about(row: Row) -> list[str]:
    return [row["network"], str(row["n"]), row["goal"]]


def counts(row: Row) -> list[str]:
    return [percent(row), number(row), "" if row["median"] is None else f"{row['median']:.0f}"]


def percent(row: Row) -> str:
    return f"{100 * row['fooled']:.4g} %"


def number(row: Row) -> str:
    """The mean elements of fooled images, marked where not all were."""
    if row["mean_of_fooled"] is None:
        return "none"
    mean = row["mean_of_fooled"]
    text = f"{mean:.1f}" if mean < 1000 else f"{mean:.0f}"
    return text if row["fooled"] == 1 else f"{text} of fooled"


def passes(row: Row) -> str:
    return f"{row['forwards']:.0f} + {row['backwards']:.0f}"
