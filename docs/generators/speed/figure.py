"""The figure of docs/results/speed.md: seconds at all speeds beside public code."""

import math
from pathlib import Path

from matplotlib.figure import Figure

from generators.dot_plot import draw_dots
from generators.speed.rows import NETWORKS, SPEEDS, Row, at_several_speeds, runs
from generators.speed.tables import PEERS

FIGURE = Path(__file__).parents[2] / "images" / "speed.png"
TITLES = {
    "pinprick": "Pinprick",
    "sparse_rs": "Sparse-RS",
    "fmn": "FMN",
    "sparse_pgd": "sparse-PGD",
    "sigma_zero": "σ-zero",
}


def save_figure() -> None:
    """Draw docs/images/speed.png again."""
    speed_figure().savefig(FIGURE)


def speed_figure() -> Figure:
    """One row per network and attack; Pinprick stands beside σ-zero of the same process."""
    found = at_several_speeds()
    peers = [_peer(by_speed["exact"]) for by_speed in found]
    names = [_title(by_speed["exact"], peer) for by_speed, peer in zip(found, peers, strict=True)]
    series = {speed: [_seconds(by_speed.get(speed)) for by_speed in found] for speed in SPEEDS}
    series["public code"] = [math.nan if peer is None else peer["wall"] for peer in peers]
    figure = Figure(figsize=(8.6, 4.6), dpi=130, layout="constrained")
    axes = figure.subplots()
    draw_dots(axes, names, series)
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds per batch, NVIDIA H200")
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def _seconds(row: Row | None) -> float:
    return math.nan if row is None else float(row["wall"])


def _peer(row: Row) -> Row | None:
    """Public code for the same attack in the same process.

    For Pinprick it is σ-zero of adv-lib, where Pinprick finds no more elements.
    """
    name, _, options = row["attack"].partition(",")
    run = runs()[row["process"], row["model"], row["images"]]
    for text, by_speed in run.items():
        peer, _, settings = text.partition(",")
        own = PEERS.get(peer, ("", ""))[0]
        same = own == name and settings == options
        beside = own == "sigma_zero" and name == "pinprick"
        if same or (beside and row["elements"] <= by_speed[""]["elements"]):
            return by_speed[""]
    return None


def _title(row: Row, peer: Row | None) -> str:
    name, *options = row["attack"].split(",")
    settings = ", ".join(option.replace("effort=", "") for option in options)
    title = f"{NETWORKS[row['model']]}: {TITLES[name]}, {settings}"
    if name == "pinprick" and peer is not None:
        return f"{title}\nbeside σ-zero of adv-lib, {peer['attack'].partition(',')[2]}"
    return title
