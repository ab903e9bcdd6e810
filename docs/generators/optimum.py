"""The tables and values of docs/results/optimum.md, from results/optimum/ and the known optima."""

import json
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

from pinprick.bounds.known_optima import known_names, known_optima
from pinprick.report.docs_measured import markdown_table

ROWS = Path(__file__).parents[2] / "results" / "optimum"
NETWORKS = {"mnist_32": "784-32-10", "mnist_64": "784-64-10"}
KNOWN = {
    "digits": "scikit-learn's digits, 64-16-16-10",
    "tinted_digits": "the same digits in colour, 192-16-10",
    "fashion": "Fashion-MNIST, 784-24-10",
}

Row = dict[str, Any]


@cache
def rows_of(name: str) -> list[Row]:
    return [json.loads(line) for line in (ROWS / f"{name}.jsonl").read_text().splitlines()]


def proved(name: str) -> list[Row]:
    return [row for row in rows_of(name) if row["lower"] == row["upper"]]


def answer() -> str:
    """The short answer, in a list."""
    lines = [
        f"- **{title}**: {len(proved(name))} of {len(rows_of(name))} images proved within "
        f"{rows_of(name)[0]['time_limit']:.0f} s per image. "
        f"Pinprick is optimal on {_equal(name, 'pinprick')} of the proved ones; "
        f"it needs {_ratio(name, 'pinprick')} times the optimum in the mean."
        for name, title in NETWORKS.items()
    ]
    better = sum(
        row["status"] == "better attack found" for name in NETWORKS for row in rows_of(name)
    )
    total = sum(len(rows_of(name)) for name in NETWORKS)
    lines.append(
        f"- The programs found a better image than Pinprick for {better} of {total} images."
    )
    return "\n".join(lines)


def networks() -> str:
    """What was proved per network, and how long it took."""
    rows = []
    for name, title in NETWORKS.items():
        found, known = rows_of(name), proved(name)
        optima = [row["lower"] for row in known]
        seconds = [row["seconds"] for row in found]
        gaps = [row["upper"] - row["lower"] for row in found if row["lower"] < row["upper"]]
        rows.append(
            (
                title,
                f"{100 * found[0]['accuracy']:.1f} %",
                str(len(found)),
                f"{len(known)} ({100 * len(known) / len(found):.0f} %)",
                f"{median(optima):.0f} ({min(optima):.0f} to {max(optima):.0f})",
                f"{median(seconds):.2f}",
                f"{mean(seconds):.1f}",
                f"{mean(gaps):.1f}" if gaps else "none",
                f"{max(row['slack'] for row in found):.4f}",
            )
        )
    columns = ("network", "accuracy", "images", "proved", "optimum: median (range)")
    more = (
        "seconds, median",
        "seconds, mean",
        "mean gap where not proved",
        "largest slack, logits",
    )
    return markdown_table((*columns, *more), rows)


def attacks() -> str:
    """How near each attack comes to the proved optima."""
    specs = sorted(rows_of("mnist_32")[0]["needed"], key=lambda spec: _mean("mnist_32", spec))
    rows = []
    for spec in specs:
        cells = [cell for name in NETWORKS for cell in (_equal(name, spec), _ratio(name, spec))]
        passes = mean(row["passes"][spec] for row in rows_of("mnist_32"))
        rows.append((_title(spec), *cells, f"{passes:.0f}"))
    titles = [
        f"{title}: {what}" for title in NETWORKS.values() for what in ("optimal on", "mean ratio")
    ]
    return markdown_table(("attack", *titles, "passes, mean"), rows)


def known() -> str:
    """The networks that come with the package, by case."""
    rows = []
    for name in known_names():
        network, goal, unit = name.split("/")
        fewest = known_optima(name).fewest
        span = f"{fewest.min():.0f} to {fewest.max():.0f}"
        rows.append((KNOWN[network], goal, unit, str(len(fewest)), f"{fewest.mean():.1f} ({span})"))
    return markdown_table(("network", "goal", "unit", "images", "optimum: mean (range)"), rows)


def source() -> str:
    """Where the rows are from."""
    first = rows_of("mnist_32")[0]
    commits = {row["commit"][:7] for name in NETWORKS for row in rows_of(name)}
    return (
        f"Rows: `results/optimum` ({first['device']}, {first['threads']} thread, commit "
        f"{' and '.join(sorted(commits))})."
    )


def _ratio(name: str, spec: str) -> str:
    return f"{_mean(name, spec):.3f}"


def _mean(name: str, spec: str) -> float:
    return float(mean(row["needed"][spec] / row["lower"] for row in proved(name)))


def _equal(name: str, spec: str) -> str:
    share = mean(row["needed"][spec] == row["lower"] for row in proved(name))
    return f"{100 * share:.0f} %"


def _title(spec: str) -> str:
    name, *options = spec.split(",")
    return " ".join([f"`{name}`", *(f"`{option}`" for option in options)])


PAGES = {
    "docs/results/optimum.md": {
        "answer": answer,
        "networks": networks,
        "attacks": attacks,
        "known": known,
        "source": source,
    }
}
