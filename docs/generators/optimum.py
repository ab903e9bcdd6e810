"""Proofs of docs/results/optimum.md: answer, tables and figure, from results/optimum/."""

import json
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

from matplotlib.figure import Figure

from generators.certified import decided
from generators.dot_plot import draw_dots
from generators.floors import Curves, curves
from pinprick.bounds.known_optima import known_names, known_optima
from pinprick.report.docs_measured import markdown_list, markdown_table

ROOT = Path(__file__).parents[2]
ROWS, FIGURE = ROOT / "results" / "optimum", ROOT / "docs" / "images" / "optimum.png"
FASHION = "pinprick:fashion_cnn"
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
    """The short answer, in five lines."""
    lines = [
        f"**{title}**: {len(proved(name))} of {len(rows_of(name))} images are proved within "
        f"{rows_of(name)[0]['time_limit']:.0f} s per image. "
        f"Pinprick is optimal on {_equal(name, 'pinprick')} of them."
        for name, title in NETWORKS.items()
    ]
    better = sum(
        row["status"] == "better attack found" for name in NETWORKS for row in rows_of(name)
    )
    total = sum(len(rows_of(name)) for name in NETWORKS)
    lines.append(
        f"**The solver** found an image with fewer changes than Pinprick on {better} of {total}."
    )
    right, certified, fooled = decided(FASHION, 2)
    lines.append(
        f"**Two pixels** cannot fool {certified} of {right} images of `{FASHION}`, by a "
        f"certificate. They fool {fooled}."
    )
    voting, plain = (curves(f"MNIST, {name}") for name in ("ablation", "standard"))
    lines.append(
        f"**Five pixels**: a network that votes stays correct on {_span(voting)} of the MNIST "
        f"images, a standard one on {_span(plain)}."
    )
    return markdown_list(lines, numbered=True)


def _span(found: Curves) -> str:
    return f"{100 * found.floor[5]:.0f} to {100 * found.ceiling[5]:.0f} %"


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
    more = ("seconds: median", "mean", "mean gap", "largest slack")
    return markdown_table((*columns, *more), rows)


def attacks() -> str:
    """How near each attack comes to the proved optima."""
    rows = []
    for spec in _specs():
        cells = [cell for name in NETWORKS for cell in (_equal(name, spec), _ratio(name, spec))]
        passes = mean(row["passes"][spec] for row in rows_of("mnist_32"))
        rows.append((_title(spec), *cells, f"{passes:.0f}"))
    titles = [
        f"{title}: {what}" for title in NETWORKS.values() for what in ("optimal on", "mean ratio")
    ]
    return markdown_table(("attack", *titles, "passes, mean"), rows)


def _specs() -> list[str]:
    """The attacks, from the nearest to the optimum."""
    return sorted(rows_of("mnist_32")[0]["needed"], key=lambda spec: _mean("mnist_32", spec))


def save_figure() -> None:
    """Draw docs/images/optimum.png again."""
    specs = _specs()
    names = [spec.replace(",", " ") for spec in specs]
    figure = Figure(figsize=(8.4, 3.4), dpi=130, layout="constrained")
    shares, ratios = figure.subplots(1, 2, sharey=True)
    draw_dots(
        shares,
        names,
        {title: [100 * _share(name, spec) for spec in specs] for name, title in NETWORKS.items()},
    )
    draw_dots(
        ratios,
        names,
        {title: [_mean(name, spec) for spec in specs] for name, title in NETWORKS.items()},
    )
    shares.set_xlabel("images where the attack is optimal, %")
    ratios.set_xlabel("elements over the optimum, mean")
    handles = shares.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(FIGURE)


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
    return f"{100 * _share(name, spec):.0f} %"


def _share(name: str, spec: str) -> float:
    """Share of the proved images on which the attack is optimal."""
    return float(mean(row["needed"][spec] == row["lower"] for row in proved(name)))


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
