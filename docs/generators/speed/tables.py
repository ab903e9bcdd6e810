"""The answer and the tables of docs/results/speed.md."""

from statistics import mean

from generators.speed.rows import (
    BALANCED,
    BLACK_BOX,
    NETWORKS,
    SIGMA_ZERO,
    SPEEDS,
    BySpeed,
    Row,
    at_several_speeds,
    cpu_ratio,
    cpu_seconds,
    first_over_later,
    first_runs,
    of_run,
    on_cpu,
    over,
    overheads,
    queries_per_second,
    rows_of,
    runs,
)
from pinprick.report.docs_measured import markdown_list, markdown_table

PEERS = {  # ours against theirs
    "advlib_sigma_zero": ("sigma_zero", "σ-zero of adv-lib"),
    "advlib_fmn": ("fmn", "FMN of adv-lib"),
    "authors_sparse_pgd": ("sparse_pgd", "sparse-PGD of its authors"),
}


def named(text: str) -> str:
    """The text of an attack as code, its settings apart."""
    return " ".join(f"`{part}`" for part in text.split(","))


def place(row: Row) -> str:
    return f"{NETWORKS[row['model']]}, n = {row['images']}"


def answer() -> str:
    """The short answer, in a list."""
    run = of_run(BALANCED, SIGMA_ZERO)
    ours, theirs, black_box = run[BALANCED], run[SIGMA_ZERO][""], of_run(BLACK_BOX)[BLACK_BOX]
    rates = {speed: queries_per_second(row) for speed, row in black_box.items()}
    small = {one["exact"]["model"]: one for one in at_several_speeds() if _is_pinprick(one)}
    deep = small["efficientnet_lite0"]
    shares = {name: over(one["graphs"], one["exact"]) for name, one in small.items()}
    lines = (
        f"**Pinprick** on ResNet-18, {ours['exact']['images']} images: `graphs` takes "
        f"{over(ours['graphs'], ours['exact']):.2f} of the time of `exact`, `fast` "
        f"{over(ours['fast'], ours['exact']):.2f} and `compiled` "
        f"{over(ours['compiled'], ours['exact']):.2f}. `fast` finds "
        f"{ours['fast']['elements'] / ours['exact']['elements']:.2f} times the elements, and "
        f"`compiled` {ours['compiled']['elements'] / ours['exact']['elements']:.2f} times.",
        f"**Beside σ-zero** of adv-lib with 1000 steps, Pinprick takes "
        f"{over(ours['exact'], theirs):.2f} of the time at `exact`, "
        f"{over(ours['graphs'], theirs):.2f} at `graphs`, "
        f"{over(ours['fast'], theirs):.2f} at `fast` and "
        f"{over(ours['compiled'], theirs):.2f} at `compiled`. At `exact` it finds "
        f"{ours['exact']['elements'] / theirs['elements']:.2f} times the elements.",
        f"**Black-box attacks** gain less. Sparse-RS makes "
        f"{rates['compiled'] / rates['exact']:.2f} times the queries per second with `compiled`, "
        f"{rates['fast'] / rates['exact']:.2f} times with `fast`, "
        f"and {rates['graphs'] / rates['exact']:.2f} times with `graphs`.",
        f"**Small networks** gain little. `graphs` takes "
        f"{shares['pinprick:mnist_cnn']:.2f} of the time of `exact` on the CNN for MNIST.",
        f"**Depthwise networks** gain by `compiled` alone. On EfficientNet-Lite0 it takes "
        f"{over(deep['compiled'], deep['exact']):.2f} of the time of `exact` and finds "
        f"{deep['compiled']['elements'] / deep['exact']['elements']:.2f} times the elements.",
        f"**The first run** of a fresh process takes {first_over_later('exact'):.1f} times as "
        "long as later ones.",
    )
    return markdown_list(lines)


def _is_pinprick(by_speed: BySpeed) -> bool:
    return bool(by_speed["exact"]["attack"].startswith("pinprick"))


def attacks() -> str:
    """Every attack at all speeds."""
    table = []
    for by_speed in at_several_speeds():
        exact = by_speed["exact"]
        known = [by_speed[speed] for speed in SPEEDS if speed in by_speed]
        table.append(
            (
                place(exact),
                named(exact["attack"]),
                *(_seconds(by_speed.get(speed)) for speed in SPEEDS),
                f"{exact['wall'] / min(row['wall'] for row in known):.2f}",
                _found(*known),
                " / ".join(f"{row['peak_memory'] / 2**30:.1f}" for row in known),
            )
        )
    columns = ("network", "attack", *(f"{speed}, s" for speed in SPEEDS), "exact / fastest")
    return markdown_table((*columns, "found", "peak memory, GiB"), table)


def _over(row: Row | None, theirs: Row) -> str:
    return "-" if row is None else f"{over(row, theirs):.2f}"


def _seconds(row: Row | None) -> str:
    return "-" if row is None else f"{row['wall']:.2f}"


def _found(*rows: Row) -> str:
    """Mean elements where all images are fooled, else the numbers of those that are."""
    if all(row["fooled"] == row["images"] for row in rows):
        return " / ".join(f"{row['elements']:.2f}" for row in rows)
    return f"{' / '.join(str(row['fooled']) for row in rows)} fooled"


def peers() -> str:
    """Public code beside ours with the same settings."""
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
                *(_over(ours.get(speed), theirs) for speed in SPEEDS),
                _found(theirs, ours["exact"]),
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
            *(_both(by_speed.get(speed)) for speed in (*SPEEDS, "bfloat16", "compiled alone")),
        )
        for (model, size), by_speed in found.items()
    ]
    return markdown_table(("network", "batch", *SPEEDS, "bfloat16 alone", "compiled alone"), table)


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
        for row in overheads()
    ]
    columns = ("network", "attack", "calls", "mean batch", "attack, s", "its passes alone, s")
    return markdown_table((*columns, "ratio"), table)


def first_call() -> str:
    """The first run of a fresh process against the later ones."""
    table = []
    for speed in SPEEDS:
        first, later = first_runs(speed)
        if first:
            table.append(
                (
                    speed,
                    named(first["attack"]),
                    f"{first['wall']:.2f}",
                    f"{mean(row['wall'] for row in later):.2f}",
                    f"{first_over_later(speed):.2f}",
                    str(first["sizes"]),
                )
            )
    columns = ("speed", "attack", "first run, s", "later runs, s", "ratio")
    return markdown_table((*columns, "batch sizes"), table)


def recording() -> str:
    """Seconds of recording in the first run of a process and in later ones."""
    first, later = first_runs("graphs")
    after = mean(row["recording_seconds"] for row in later)
    return f"{first['recording_seconds']:.1f} s in the first run, and {after:.1f} s in later runs"


def compiling() -> str:
    """Seconds of compiling, with a gradient and where rows need it without one."""
    latest = {(row["model"], row["images"]): row for row in rows_of("compiling")}
    table = [(place(row), f"{row['seconds']:.1f}") for row in latest.values()]
    return markdown_table(("network", "compiling, s"), table)


def cpu() -> str:
    """Pinprick against σ-zero on a CPU, one photograph at a time."""
    ours, theirs = on_cpu()
    table = [
        (
            str(number + 1),
            f"{cpu_seconds({skip: ours[skip]}):.0f}",
            f"{cpu_seconds({skip: theirs[skip]}, 4):.0f}",
            f"{ours[skip]['forwards']:.0f} + {ours[skip]['backwards']:.0f}",
            f"{ours[skip]['elements']:.0f}",
        )
        for number, skip in enumerate(sorted(ours))
    ]
    sums = f"{cpu_seconds(ours):.0f}", f"{cpu_seconds(theirs, 4):.0f}"
    table.append(("all", *sums, f"ratio {cpu_ratio():.2f}", ""))
    columns = ("photograph", "Pinprick, s", "σ-zero, s", "passes of Pinprick")
    return markdown_table((*columns, "elements"), table)
