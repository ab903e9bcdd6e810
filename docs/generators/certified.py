"""The section on certified images of docs/results/optimum.md, from results/certified/.

Also floor and ceiling per network, joined with the attacks of the leaderboard: how many images are
certified against k pixels, and how many no attack fools with k pixels.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from pinprick.bench.store import Store
from pinprick.report.docs_measured import markdown_table

RESULTS = Path(__file__).parents[2] / "results"
ROWS, LEADERBOARD = RESULTS / "certified", RESULTS / "leaderboard"

Row = dict[str, Any]


@dataclass(frozen=True)
class FloorAndCeiling:
    """Shares of all images by number of pixels k, from 0 on.

    Attributes:
        model: Name of the network.
        images: How many images, with those that the network gets wrong.
        floor: Share of images that are certified to stay correct when k pixels change.
        ceiling: Share of images that are correct, and that no known image fools with k pixels.
    """

    model: str
    images: int
    floor: list[float]
    ceiling: list[float]


@cache
def runs() -> dict[str, list[Row]]:
    """The rows of each network, by its name; one row per image and number of pixels decided."""
    files = [path.read_text().splitlines() for path in sorted(ROWS.glob("*.jsonl"))]
    rows = [[json.loads(line) for line in lines] for lines in files]
    return {some[0]["model"]: some for some in rows}


def most_certified(rows: list[Row]) -> dict[int, int]:
    """The largest number of pixels that each image is certified against; 0 if none."""
    found = {row["image"]: 0 for row in rows}
    for row in rows:
        if row["outcome"] == "certified":
            found[row["image"]] = max(found[row["image"]], row["t"])
    return found


def fewest_known(rows: list[Row]) -> dict[int, int]:
    """The fewest pixels that are known to fool each image, from the search and its attack."""
    found: dict[int, int] = {}
    for row in rows:
        needs = [row["attack_needs"], row["t"] if row["outcome"] == "refuted" else None]
        known = [count for count in (*needs, found.get(row["image"])) if count is not None]
        if known:
            found[row["image"]] = min(known)
    return found


@cache
def leaderboard_fewest(model: str) -> dict[int, int]:
    """The fewest pixels of any attack of the leaderboard per image, by its index in the dataset."""
    import polars as pl

    rows, cells = Store(LEADERBOARD).rows_and_cells()
    mine = cells.lazy().filter((pl.col("model") == model) & (pl.col("goal") == "untargeted"))
    fooled = rows.filter(pl.col("success") & pl.col("correct"))
    fewest = fooled.join(mine.select("cell"), on="cell").group_by("index").agg(pl.min("pixels"))
    return dict(fewest.collect().iter_rows())


def floor_and_ceiling(model: str, most: int = 20) -> FloorAndCeiling:
    """Both curves of a network with rows in results/certified, for 0 to ``most`` pixels."""
    rows = runs()[model]
    total = rows[0]["images"]
    certified, known = most_certified(rows), fewest_known(rows)
    assert len(certified) == rows[0]["correct"]
    for image, pixels in leaderboard_fewest(model).items():
        if image in certified:
            known[image] = min(pixels, known.get(image, pixels))
    for image, pixels in known.items():
        assert certified[image] < pixels, f"{model}, image {image}: fooled though certified"
    return FloorAndCeiling(
        model=model,
        images=total,
        floor=[sum(t >= k for t in certified.values()) / total for k in range(most + 1)],
        ceiling=[
            sum(known.get(image, most + 1) > k for image in certified) / total
            for k in range(most + 1)
        ],
    )


def decided(model: str, t: int) -> tuple[int, int, int]:
    """How many images are correct, certified against t pixels, and fooled with t pixels."""
    rows = runs()[model]
    proved = sum(count >= t for count in most_certified(rows).values())
    fooled = sum(count <= t for count in fewest_known(rows).values())
    return rows[0]["correct"], proved, fooled


def certified() -> str:
    """Per network and number of pixels, how many images are decided."""
    table = []
    for model, rows in runs().items():
        for t in range(1, max(row["t"] for row in rows) + 1):
            right, proved, fooled = decided(model, t)
            share = f"{(proved + fooled) / right:.0%}".replace("%", " %")
            counts = (right, proved, fooled, right - proved - fooled)
            table.append((f"`{model}`", str(t), *map(str, counts), share))
    head = ("network", "pixels", "images", "certified", "refuted", "undecided", "decided")
    return markdown_table(head, table)


def gap() -> str:
    """Per network, the images whose fewest pixels are known, and how far the others are off."""
    table = []
    for model, rows in runs().items():
        reached, known = most_certified(rows), fewest_known(rows)
        for image, pixels in leaderboard_fewest(model).items():
            if image in reached:
                known[image] = min(pixels, known.get(image, pixels))
        apart = [known[image] - reached[image] - 1 for image in reached if image in known]
        optimal = sum(each == 0 for each in apart)
        table.append(
            (
                f"`{model}`",
                str(len(reached)),
                str(optimal),
                f"{median(reached.values()):g}",
                f"{median(known.values()):g}",
            )
        )
    head = ("network", "images", "fewest proved", "certified, median", "fooled by, median")
    return markdown_table(head, table)


def cost() -> str:
    """Time limits, sub-problems, and when every image was decided, per network and pixels."""
    table, origins = [], []
    for model, rows in runs().items():
        limit = f"{rows[0]['time_limit']:.0f}"
        decided = _all_decided(rows)
        for t in sorted({row["t"] for row in rows}):
            at = f"{decided[t]:.1f}" if t in decided else "-"
            table.append((f"`{model}`", limit, str(t), _nodes(rows, t), at))
        origins += [(row["device"], row["commit"][:7]) for row in rows]
    devices, commits = (", ".join(sorted(set(one))) for one in zip(*origins, strict=True))
    head = ("network", "time limit, s", "pixels", "sub-problems, median", "all decided after, s")
    return f"{markdown_table(head, table)}\n\n{devices}, commit {commits}."


def _all_decided(rows: list[Row]) -> dict[int, float]:
    """After how many seconds every image was decided, for the numbers of pixels where it was."""
    times: dict[int, float] = {}
    refuted = 0
    for t in sorted({row["t"] for row in rows}):
        some = [row for row in rows if row["t"] == t]
        if len(some) + refuted < rows[0]["correct"]:
            break
        refuted += sum(row["outcome"] == "refuted" for row in some)
        times[t] = max(row["seconds"] for row in some)
    return times


def _nodes(rows: list[Row], t: int) -> str:
    counts = [row["nodes"] for row in rows if row["t"] == t and row["outcome"] == "certified"]
    return f"{median(counts):.0f}" if counts else "-"


PAGES = {
    "docs/results/optimum.md": {
        "certified": certified,
        "gap of certificates": gap,
        "cost of certificates": cost,
    }
}
