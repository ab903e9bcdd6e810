"""The pages of the paper measured again: docs/results/paper.md and those of its tables.

Numbers come from the rows in results/paper/, and from what the paper prints in ``published.toml``.
A cell without rows says so.
"""

import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from generators.paper import (
    answers,
    claims,
    figures,
    pictures,
    robust,
    sparsity,
    sweeps,
    timing,
    transfer,
)
from generators.paper.contradictions import contradictions
from generators.paper.rows import ROOT, Layout, Rows, layout
from pinprick.bench.plan import Plan
from pinprick.own_code import import_own
from pinprick.report.docs_measured import (
    Blocks,
    fill_measured,
    markdown_list,
    markdown_table,
    wrapped,
)

STORE = ROOT / "results" / "paper"
IMAGES = ROOT / "docs" / "images"
PLANS = ("table1", "table2", "table3", "table4", "ablations", "claims", "interpretation")
FIGURES = (
    *("paper_q_a.png", "paper_sparsity.png", "paper_robust.png", "paper_transfer.png"),
    *("paper_speedups.png", "paper_optima.png"),
)
ABLATIONS = "paper_ablations.png"  # drawn, and shown on a page, where there are rows
SMALL = (
    "> A small run: other networks, four images and few passes in place of what the page says.\n\n"
)
_SMALLER = str(ROOT / "plans" / "paper" / "smaller.py")

Plans = dict[str, Layout]


@cache
def _plans() -> Plans:
    rows = Rows(STORE)
    return {name: layout(name, rows) for name in PLANS}


def small_plans(store: Path) -> Plans:
    """The same plans as ``scripts/paper --small`` runs them."""
    reduce: Callable[[Plan], Plan] = import_own(_SMALLER, "a plan").reduce_plan
    rows = Rows(store)
    return {name: layout(name, rows, reduce) for name in PLANS}


def blocks(plans: Callable[[], Plans]) -> dict[str, Blocks]:
    """By page, the functions that make what stands between its marks."""

    def of(name: str, make: Callable[[Layout], str]) -> Callable[[], str]:
        return lambda: make(plans()[name])

    def lines(name: str, make: Callable[[Layout], list[str]]) -> Callable[[], str]:
        return lambda: markdown_list(make(plans()[name]))

    return {
        "docs/results/paper.md": {
            "answer": lambda: answer(plans()),
            "contradictions": contradictions,
            "measured so far": lambda: coverage(plans()),
        },
        "docs/results/paper_table1.md": {
            "answer": lines("table1", answers.sparsity),
            "table 1": of("table1", sparsity.table1),
            "differences": sparsity.differences,
            "own settings": of("table1", sparsity.own_settings),
        },
        "docs/results/paper_table2.md": {
            "answer": lines("table2", answers.robust),
            "table 2": of("table2", robust.table2),
        },
        "docs/results/paper_table3.md": {
            "answer": lines("table3", answers.transfers),
            "table 3": of("table3", transfer.table3),
            "the paper's table 3": transfer.paper_transfer,
        },
        "docs/results/paper_table4.md": {
            "answer": lines("table4", answers.times),
            "table 4": of("table4", timing.table4),
            "the paper's table 4": timing.paper_seconds,
            "the paper's speed-ups": timing.paper_speedups,
        },
        "docs/results/paper_figures.md": {
            "answer": lines("ablations", answers.figure7),
            "sweeps": of("ablations", sweeps_block),
            "direction": of("ablations", sweeps.direction),
            **{f"figure {number}": partial(pictures.block, number) for number in pictures.PICTURES},
        },
        "docs/results/paper_claims.md": {
            "answer": lambda: markdown_list(
                answers.near_optimal(plans()["table1"], plans()["table3"], plans()["claims"])
            ),
            "variants": of("claims", claims.variants_table),
            "starts": of("claims", claims.starts_table),
            "transfer": of("table3", claims.kept_transfer),
            "proved optima": claims.proved_optima,
            "near-optimal": lambda: claims.near_optimal(plans()["table1"], plans()["claims"]),
        },
    }


def answer(plans: Plans) -> str:
    """The summary: what stands first in the answers of the pages."""
    robust_lines = answers.robust(plans["table2"])
    lines = (
        answers.sparsity(plans["table1"])[0],
        answers.as_printed(plans["table1"]),
        " ".join((robust_lines[0], *robust_lines[2:3])),
        f"{answers.transfers(plans['table3'])[0]} {answers.times(plans['table4'])[0]}",
        answers.near_optimal(plans["table1"], plans["table3"], plans["claims"])[0],
    )
    return markdown_list(lines, numbered=True)


def sweeps_block(plan: Layout) -> str:
    """The figure of the ablations, where there are rows, and their table."""
    table = sweeps.sweeps_table(plan)
    if not figures.has_ablations(plan):
        return table
    return f"![Ablations of a, λ and τ](../images/{ABLATIONS})\n\n{table}"


def coverage(plans: Plans) -> str:
    """How many cells of each plan have rows, and the command for the others."""
    rows = next(iter(plans.values())).rows
    images: Counter[str] = Counter()
    for cell, _ in rows.cells():
        images[f"{cell.model}"] += len(cell)
    lines = []
    for name, plan in plans.items():
        wanted, found = _count(plan)
        lines.append(
            [f"`plans/paper/{name}.toml`", str(wanted), str(found), f"`./scripts/paper {name}`"]
        )
    about = {(origin.device, origin.torch, origin.commit[:10]) for _, origin in rows.cells()}
    devices = "; ".join(sorted({one[0] for one in about})) or "none"
    commits = ", ".join(sorted({one[2] for one in about if one[2]})) or "unknown"
    table = markdown_table(("plan", "attacks on networks", "with rows", "measures the rest"), lines)
    count = sum(images.values())
    origin = f"Rows: {count} in `results/paper`. Devices: {devices}. Commits: {commits}."
    return f"{table}\n\n{wrapped(origin)}"


def _count(plan: Layout) -> tuple[int, int]:
    """How many attacks on subsets the plan has, and how many of them have rows."""
    wanted = found = 0
    for one in plan.run.products:
        for model in one.models:
            for data in one.data:
                for attack in one.attacks:
                    for goal in one.goals:
                        wanted += len(one.seeds)
                        found += len(plan.rows.known(one, model, data, attack, goal))
    return wanted, found


def save_figures() -> None:
    """Draw the figures of the pages again."""
    _save(_plans(), IMAGES)


def write_small(store: Path, folder: Path) -> list[Path]:
    """The pages and figures of a small run, in a folder; the files that were written."""
    plans = small_plans(store)
    written = [*_save(plans, folder / "images"), *write_pages(plans, folder)]
    for name in map(pictures.image_name, pictures.PICTURES):  # as they are: no plan makes them
        written.append(shutil.copyfile(IMAGES / name, folder / "images" / name))
    return written


def write_pages(plans: Plans, folder: Path) -> list[Path]:
    """The pages of other rows than the repository's, in a folder."""
    written = []
    for page, made in blocks(lambda: plans).items():
        written.append(folder / Path(page).name)
        content = fill_measured((ROOT / page).read_text(encoding="utf-8"), made)
        written[-1].write_text(SMALL + content.replace("../images/", "images/"), encoding="utf-8")
    return written


def _save(plans: Plans, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    drawn = (
        figures.q_a(),
        figures.sparsity(plans["table1"]),
        figures.strength(plans["table2"]),
        figures.transfer(),
        figures.speedup(),
        figures.optima(),
    )
    named = dict(zip(FIGURES, drawn, strict=True))
    if figures.has_ablations(plans["ablations"]):
        named[ABLATIONS] = figures.ablations(plans["ablations"])
    for name, figure in named.items():
        figure.savefig(folder / name)
    return [folder / name for name in named]


PAGES = blocks(_plans)
