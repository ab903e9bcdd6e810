"""The tables and values of docs/results/speed.md, from the rows in results/speed/."""

import json
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "speed"
NETWORKS = {
    "file:models/cifar10_resnet18": "ResNet-18, 32 px",
    "pinprick:mnist_cnn": "CNN, MNIST",
    "efficientnet_lite0": "EfficientNet-Lite0, 224 px",
}
RESNET = ("file:models/cifar10_resnet18", 256)
SPEEDS = ("exact", "graphs", "fast")
BALANCED, SIGMA_ZERO = "pinprick,effort=balanced", "advlib_sigma_zero,steps=1000"
BLACK_BOX = "sparse_rs,k=2,queries=500"
SHORT = "sigma_zero,steps=250"
_TURNS = 3  # runs per process in first_call.py
FMN, SPARSE_PGD = "fmn,steps=300", "sparse_pgd,k=5,steps=300"
PEERS = {  # ours against theirs
    "advlib_sigma_zero": ("sigma_zero", "σ-zero of adv-lib"),
    "advlib_fmn": ("fmn", "FMN of adv-lib"),
    "authors_sparse_pgd": ("sparse_pgd", "sparse-PGD of its authors"),
}

Row = dict[str, Any]


@cache
def all_rows() -> list[Row]:
    files = sorted(ROWS.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def rows_of(kind: str, device: str = "H200") -> list[Row]:
    return [row for row in all_rows() if row["kind"] == kind and device in row["device"]]


def named(text: str) -> str:
    """The text of an attack as code, its settings apart."""
    return " ".join(f"`{part}`" for part in text.split(","))


def place(row: Row) -> str:
    return f"{NETWORKS[row['model']]}, n = {row['images']}"


Run = tuple[str, str, int]  # one process, model and number of images: what can be compared


@cache
def runs() -> dict[Run, dict[str, dict[str, Row]]]:
    """By run and attack, its rows by speed."""
    found: dict[Run, dict[str, dict[str, Row]]] = {}
    for row in rows_of("attack"):
        run = row["process"], row["model"], row["images"]
        found.setdefault(run, {}).setdefault(row["attack"], {})[row["speed"]] = row
    return found


def of_run(*names: str) -> dict[str, dict[str, Row]]:
    """The attacks of the latest run on ResNet-18 that has all of these."""
    found = [
        run
        for (_, model, images), run in runs().items()
        if (model, images) == RESNET and all(name in run for name in names)
    ]
    return found[-1]


def over(one: Row, other: Row) -> float:
    """The time of one run over that of another."""
    return float(one["wall"] / other["wall"])


def answer() -> str:
    """The short answer, in a list."""
    run = of_run(BALANCED, SIGMA_ZERO)
    ours, theirs, black_box = run[BALANCED], run[SIGMA_ZERO][""], of_run(BLACK_BOX)[BLACK_BOX]
    small = {one["exact"]["model"]: one for one in _with_all_speeds() if _is_pinprick(one)}
    shares = {name: over(one["graphs"], one["exact"]) for name, one in small.items()}
    lines = (
        f"**Pinprick** on ResNet-18 with {ours['exact']['images']} images: `graphs` takes "
        f"{over(ours['graphs'], ours['exact']):.2f} of the time of `exact`, `fast` "
        f"{over(ours['fast'], ours['exact']):.2f}. `fast` finds "
        f"{ours['fast']['elements'] / ours['exact']['elements']:.2f} times the elements.",
        f"**Against σ-zero** of adv-lib with 1000 steps, in time: `exact` "
        f"{over(ours['exact'], theirs):.2f}, `graphs` {over(ours['graphs'], theirs):.2f}, `fast` "
        f"{over(ours['fast'], theirs):.2f}. Pinprick finds "
        f"{ours['exact']['elements'] / theirs['elements']:.2f} times the elements.",
        f"**Black-box attacks** gain less: Sparse-RS makes "
        f"{_queries(black_box['fast']) / _queries(black_box['exact']):.2f} times the queries per "
        f"second with `fast`, {_queries(black_box['graphs']) / _queries(black_box['exact']):.2f} "
        "with `graphs`.",
        f"**Small and depthwise networks** gain little: with `graphs` Pinprick takes "
        f"{shares['pinprick:mnist_cnn']:.2f} of the time of `exact` on the CNN for MNIST, "
        f"{shares['efficientnet_lite0']:.2f} on EfficientNet-Lite0.",
        f"**The first run** of a fresh process takes {_first_over_later('exact'):.1f} times as "
        "long as later ones.",
    )
    return "\n".join(f"- {line}" for line in lines)


def _with_all_speeds() -> list[dict[str, Row]]:
    """The latest rows of each attack on each network, by speed."""
    latest = {
        (model, images, attack): by_speed
        for (_, model, images), run in runs().items()
        for attack, by_speed in run.items()
        if set(by_speed) == set(SPEEDS)
    }
    return list(latest.values())


def _is_pinprick(by_speed: dict[str, Row]) -> bool:
    return bool(by_speed["exact"]["attack"].startswith("pinprick"))


def _queries(row: Row) -> float:
    """Queries per second."""
    return float(row["forwards"] * row["images"] / row["seconds"])


def aims() -> str:
    """What was aimed at, and by how much it is missed."""
    run = of_run(BALANCED, SIGMA_ZERO)
    ours, theirs, black_box = run[BALANCED], run[SIGMA_ZERO][""], of_run(BLACK_BOX)[BLACK_BOX]
    peer_run = of_run(FMN, f"advlib_{FMN}")
    bare = {row["model"]: row["seconds"] / row["bare_seconds"] for row in rows_of("overhead")}
    worst = max(
        one["fast"]["elements"] / one["exact"]["elements"]
        for one in _with_all_speeds()
        if all(row["fooled"] == row["images"] for row in one.values())
    )
    queries = _queries(black_box["fast"]) / _queries(black_box["exact"])
    lines = [
        ("Pinprick over σ-zero 1000 of adv-lib, `exact`", 0.50, over(ours["exact"], theirs)),
        ("the same, `fast`", 0.20, over(ours["fast"], theirs)),
        ("Pinprick over its passes alone, ResNet-18", 1.10, bare[RESNET[0]]),
        ("the same, 224 px", 1.10, bare["efficientnet_lite0"]),
        ("elements of `fast` over `exact`, largest of all runs", 1.03, worst),
        ("time per query of Sparse-RS, `fast` over `exact`", 0.40, 1 / queries),
        ("FMN over adv-lib's, `exact`", 1.0, over(peer_run[FMN]["exact"], _peer(peer_run, FMN))),
        ("sparse-PGD over its authors', `exact`", 1.0, _sparse_pgd_over_authors(peer_run)),
        ("first run of a process over later ones, `exact`", 1.5, _first_over_later("exact")),
        ("CPU: Pinprick over σ-zero 1000, EfficientNet-Lite0", 0.55, cpu_ratio()),
    ]
    table = [
        (what, f"{aim:.2f}", f"{found:.2f}", _missed(aim, found)) for what, aim, found in lines
    ]
    return markdown_table(("ratio", "at most", "measured", "missed by"), table)


def _missed(aim: float, found: float) -> str:
    return f"{100 * (found / aim - 1):.0f} %" if found > aim else "met"


def _peer(run: dict[str, dict[str, Row]], text: str) -> Row:
    return run[f"advlib_{text}"][""]


def _sparse_pgd_over_authors(run: dict[str, dict[str, Row]]) -> float:
    return over(run[SPARSE_PGD]["exact"], run[f"authors_{SPARSE_PGD}"][""])


def attacks() -> str:
    """Every attack at the three speeds."""
    table = []
    for by_speed in _with_all_speeds():
        exact, fast = by_speed["exact"], by_speed["fast"]
        table.append(
            (
                place(exact),
                named(exact["attack"]),
                *(f"{by_speed[speed]['wall']:.2f}" for speed in SPEEDS),
                f"{exact['wall'] / fast['wall']:.2f}",
                " / ".join(_found(by_speed[speed]) for speed in SPEEDS),
                " / ".join(f"{by_speed[speed]['peak_memory'] / 2**30:.1f}" for speed in SPEEDS),
            )
        )
    columns = ("network", "attack", *(f"{speed}, s" for speed in SPEEDS), "exact / fast")
    return markdown_table((*columns, "elements, or images fooled", "peak memory, GiB"), table)


def _found(row: Row) -> str:
    """Mean elements where all images are fooled, else the number of those that are."""
    return f"{row['elements']:.2f}" if row["fooled"] == row["images"] else f"{row['fooled']} fooled"


def peers() -> str:
    """Other people's code beside ours with the same settings."""
    table = []
    for run, text in ((one, text) for one in runs().values() for text in one):
        name, _, options = text.partition(",")
        if name not in PEERS:
            continue
        own, title = PEERS[name]
        ours, theirs = run.get(f"{own},{options}"), run[text][""]
        if ours is None:
            continue
        table.append(
            (
                place(theirs),
                f"{title}, {named(options)}",
                f"{theirs['wall']:.2f}",
                *(f"{ours[speed]['wall'] / theirs['wall']:.2f}" for speed in SPEEDS),
                f"{_found(theirs)} / {_found(ours['exact'])}",
            )
        )
    columns = ("network", "theirs", "theirs, s", *(f"ours, {speed}" for speed in SPEEDS))
    return markdown_table((*columns, "found: theirs / ours, exact"), table)


def passes() -> str:
    """One pass at each speed."""
    found: dict[tuple[str, int], dict[str, Row]] = {}
    for row in rows_of("pass"):
        found.setdefault((row["model"], row["images"]), {})[row["speed"]] = row
    table = [
        (
            NETWORKS[model],
            str(size),
            *(_both(by_speed.get(speed)) for speed in (*SPEEDS, "bfloat16")),
        )
        for (model, size), by_speed in found.items()
    ]
    return markdown_table(("network", "batch", *SPEEDS, "bfloat16, not confirmed"), table)


def _both(row: Row | None) -> str:
    return "" if row is None else f"{row['both_ms']:.2f} ({row['forward_ms']:.2f})"


def overhead() -> str:
    """The time of Pinprick over its passes alone."""
    table = [
        (
            place(row),
            named(row["attack"]),
            str(row["calls"]),
            f"{row['mean_batch']:.0f}",
            f"{row['seconds']:.2f}",
            f"{row['bare_seconds']:.2f}",
            f"{row['seconds'] / row['bare_seconds']:.2f}",
        )
        for row in rows_of("overhead")
    ]
    columns = ("network", "attack", "calls", "mean batch", "attack, s", "its passes alone, s")
    return markdown_table((*columns, "ratio"), table)


def _first_runs(speed: str) -> tuple[Row, list[Row]]:
    """The first run of the latest fresh process at a speed, and its later ones."""
    found = [row for row in rows_of("first call") if row["speed"] == speed]
    first = [row["turn"] for row in found].index(0, len(found) - _TURNS) if found else 0
    return (found[first], found[first + 1 :]) if found else ({}, [])


def _first_over_later(speed: str) -> float:
    first, later = _first_runs(speed)
    return float(first["wall"] / mean(row["wall"] for row in later))


def first_call() -> str:
    """The first run of a fresh process against the later ones."""
    table = []
    for speed in SPEEDS:
        first, later = _first_runs(speed)
        if first:
            table.append(
                (
                    speed,
                    named(first["attack"]),
                    f"{first['wall']:.2f}",
                    f"{mean(row['wall'] for row in later):.2f}",
                    f"{_first_over_later(speed):.2f}",
                    str(first["sizes"]),
                )
            )
    columns = ("speed", "attack", "first run, s", "later runs, s", "ratio")
    return markdown_table((*columns, "batch sizes that Python started"), table)


def recording() -> str:
    """Seconds of recording in the first run and in later ones."""
    first, later = _first_runs("graphs")
    after = mean(row["recording_seconds"] for row in later)
    return f"{first['recording_seconds']:.1f} s, in later ones {after:.1f} s"


def _on_cpu() -> tuple[dict[int, Row], dict[int, Row]]:
    """Rows of Pinprick and of σ-zero on a CPU, by the photograph."""
    found = [row for row in all_rows() if row["kind"] == "attack" and row["peak_memory"] is None]
    ours = {row["skip"]: row for row in found if row["attack"] == BALANCED}
    return ours, {row["skip"]: row for row in found if row["attack"] == SHORT}


def _cpu_seconds(rows: dict[int, Row], times: int = 1) -> float:
    return times * float(sum(row["cpu_seconds"] for row in rows.values()))


def cpu_ratio() -> float:
    """The time of Pinprick over that of 1000 steps of σ-zero, which is four times that of 250."""
    ours, theirs = _on_cpu()
    return _cpu_seconds(ours) / _cpu_seconds(theirs, 4)


def cpu() -> str:
    """Pinprick against σ-zero on a CPU, one photograph at a time."""
    ours, theirs = _on_cpu()
    table = [
        (
            str(number + 1),
            f"{_cpu_seconds({skip: ours[skip]}):.0f}",
            f"{_cpu_seconds({skip: theirs[skip]}, 4):.0f}",
            f"{ours[skip]['forwards']:.0f} + {ours[skip]['backwards']:.0f}",
            f"{ours[skip]['elements']:.0f}",
        )
        for number, skip in enumerate(sorted(ours))
    ]
    sums = f"{_cpu_seconds(ours):.0f}", f"{_cpu_seconds(theirs, 4):.0f}"
    table.append(("all", *sums, f"ratio {cpu_ratio():.2f}", ""))
    columns = ("photograph", "Pinprick, s", "σ-zero, s", "passes of Pinprick, forward + backward")
    return markdown_table((*columns, "elements"), table)


PAGES = {
    "docs/results/speed.md": {
        "answer": answer,
        "attacks": attacks,
        "peers": peers,
        "passes": passes,
        "overhead": overhead,
        "first call": first_call,
        "recording": recording,
        "cpu": cpu,
    },
    "results/speed/aims.md": {"aims": aims},
}
