"""The rows in results/speed/, by kind, and by the process that they can be compared in."""

import json
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

ROWS = Path(__file__).parents[3] / "results" / "speed"
NETWORKS = {
    "file:models/cifar10_resnet18": "ResNet-18, 32 px",
    "pinprick:mnist_cnn": "CNN, MNIST",
    "efficientnet_lite0": "EfficientNet-Lite0, 224 px",
}
RESNET = ("file:models/cifar10_resnet18", 256)
SPEEDS = ("exact", "graphs", "fast", "compiled")
BALANCED, SIGMA_ZERO = "pinprick,effort=balanced", "advlib_sigma_zero,steps=1000"
BLACK_BOX = "sparse_rs,k=2,queries=500"
FMN, SPARSE_PGD = "fmn,steps=300", "sparse_pgd,k=5,steps=300"
_SHORT = "sigma_zero,steps=250"
_TURNS = 3  # runs per process in first_call.py

Row = dict[str, Any]
Run = tuple[str, str, int]  # one process, model and number of images: what can be compared
BySpeed = dict[str, Row]


@cache
def all_rows() -> list[Row]:
    files = sorted(ROWS.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def rows_of(kind: str, device: str = "H200") -> list[Row]:
    return [row for row in all_rows() if row["kind"] == kind and device in row["device"]]


@cache
def runs() -> dict[Run, dict[str, BySpeed]]:
    """By run and attack, its rows by speed."""
    found: dict[Run, dict[str, BySpeed]] = {}
    for row in rows_of("attack"):
        run = row["process"], row["model"], row["images"]
        found.setdefault(run, {}).setdefault(row["attack"], {})[row["speed"]] = row
    return found


def of_run(*names: str) -> dict[str, BySpeed]:
    """The attacks of the latest run on ResNet-18 that has all of these."""
    found = [
        run
        for (_, model, images), run in runs().items()
        if (model, images) == RESNET and all(name in run for name in names)
    ]
    return found[-1]


def at_several_speeds() -> list[BySpeed]:
    """The latest rows of each attack on each network that ran exactly and replayed, by speed."""
    latest = {
        (model, images, attack): by_speed
        for (_, model, images), run in runs().items()
        for attack, by_speed in run.items()
        if {"exact", "graphs"} <= set(by_speed)
    }
    return list(latest.values())


def overheads() -> list[Row]:
    """The latest row of each attack on each network, against its passes alone."""
    found = {(row["model"], row["attack"]): row for row in rows_of("overhead")}
    return list(found.values())


def over(one: Row, other: Row) -> float:
    """The time of one run over that of another."""
    return float(one["wall"] / other["wall"])


def queries_per_second(row: Row) -> float:
    return float(row["forwards"] * row["images"] / row["seconds"])


def first_runs(speed: str) -> tuple[Row, list[Row]]:
    """The first run of the latest fresh process at a speed, and its later ones."""
    found = [row for row in rows_of("first call") if row["speed"] == speed]
    first = [row["turn"] for row in found].index(0, len(found) - _TURNS) if found else 0
    return (found[first], found[first + 1 :]) if found else ({}, [])


def first_over_later(speed: str) -> float:
    first, later = first_runs(speed)
    return float(first["wall"] / mean(row["wall"] for row in later))


def on_cpu() -> tuple[dict[int, Row], dict[int, Row]]:
    """Rows of Pinprick and of 250 steps of σ-zero on a CPU, by the photograph."""
    found = [row for row in all_rows() if row["kind"] == "attack" and row["peak_memory"] is None]
    ours = {row["skip"]: row for row in found if row["attack"] == BALANCED}
    return ours, {row["skip"]: row for row in found if row["attack"] == _SHORT}


def cpu_seconds(rows: dict[int, Row], times: int = 1) -> float:
    return times * float(sum(row["cpu_seconds"] for row in rows.values()))


def cpu_ratio() -> float:
    """The time of Pinprick over that of 1000 steps of σ-zero, which is four times that of 250."""
    ours, theirs = on_cpu()
    return cpu_seconds(ours) / cpu_seconds(theirs, 4)
