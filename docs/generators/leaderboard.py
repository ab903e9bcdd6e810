"""The measured blocks of docs/results/leaderboard.md, from two stores under results/."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from generators import model_cards
from pinprick.bench.store import Store
from pinprick.metrics.unit import Unit
from pinprick.report.docs_leaderboard import (
    UNITS,
    answer,
    attack_table,
    attackbench_table,
    boards,
    leaderboard_figure,
    model_table,
)
from pinprick.report.leaderboard import Group

ROOT = Path(__file__).parents[2]
LEADERBOARD, ATTACKBENCH = ROOT / "results" / "leaderboard", ROOT / "results" / "attackbench"
FIGURE = ROOT / "docs" / "images" / "leaderboard.png"
NOT_MEASURED = "Not measured."


@cache
def by_unit() -> dict[Unit, dict[str, Group]]:
    rows, cells = Store(LEADERBOARD).rows_and_cells()
    return {unit: boards(rows, cells, unit) for unit in UNITS}


def origin(store: Path) -> str:
    """Images, devices, versions and commits of the rows."""
    about = [origin for _, origin in Store(store).cells().values()]
    rows = sum(len(cell) for cell, _ in Store(store).cells().values())
    devices = ", ".join(sorted({one.device for one in about}))
    torch = ", ".join(sorted({one.torch for one in about}))
    commits = ", ".join(sorted({one.commit[:10] for one in about if one.commit})) or "unknown"
    name = store.relative_to(ROOT)
    return (
        f"Rows: `{name}`, {len(about)} cells, {rows} rows; {devices}; torch {torch}; "
        f"commit {commits}."
    )


def not_measured() -> str:
    """The published models without rows, with the command that trains each."""
    models = {cell.model for cell, _ in Store(LEADERBOARD).cells().values()}
    missing = [
        f"- {model_cards.title(card.facts)}: `{model_cards.command_of(card.facts)}`"
        for name, card in model_cards.published().items()
        if f"file:models/{name}" not in models
    ]
    return "\n".join(missing) or "All published models are measured."


def attackbench() -> str:
    rows, cells = Store(ATTACKBENCH).rows_and_cells()
    return f"{attackbench_table(boards(rows, cells, 'elements'))}\n\n{origin(ATTACKBENCH)}"


def save_figure() -> None:
    """Draw docs/images/leaderboard.png again."""
    leaderboard_figure(by_unit()).savefig(FIGURE)


def _if_there(store: Path, block: Callable[[], str]) -> str:
    return block() if store.is_dir() else NOT_MEASURED


_BLOCKS: dict[str, Callable[[], str]] = {
    "answer": lambda: answer(by_unit()),
    "attacks in elements": lambda: attack_table(by_unit()["elements"]),
    "attacks in pixels": lambda: attack_table(by_unit()["pixels"]),
    "models in elements": lambda: model_table(by_unit()["elements"]),
    "models in pixels": lambda: model_table(by_unit()["pixels"]),
    "rows": lambda: origin(LEADERBOARD),
    "not measured": not_measured,
}
PAGES = {
    "docs/results/leaderboard.md": {
        **{name: partial(_if_there, LEADERBOARD, block) for name, block in _BLOCKS.items()},
        "attackbench": partial(_if_there, ATTACKBENCH, attackbench),
    }
}
