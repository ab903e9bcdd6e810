"""The measured blocks of docs/results/leaderboard.md, from two stores under results/."""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path

from generators import model_cards
from pinprick.attacks.build import describe
from pinprick.bench.cell import canonical
from pinprick.bench.plan_file import read_plan
from pinprick.bench.store import Store
from pinprick.metrics.unit import Unit
from pinprick.report.board_group import Group
from pinprick.report.docs_leaderboard import (
    UNITS,
    attack_table,
    attackbench_table,
    boards,
    leaderboard_figure,
    model_table,
)
from pinprick.report.docs_leaderboard_answer import answer
from pinprick.report.docs_measured import markdown_list, wrapped

ROOT = Path(__file__).parents[2]
LEADERBOARD, ATTACKBENCH = ROOT / "results" / "leaderboard", ROOT / "results" / "attackbench"
PLANS: dict[Unit, Path] = {
    "elements": ROOT / "plans" / "leaderboard.toml",
    "pixels": ROOT / "plans" / "leaderboard_pixels.toml",
}
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
    return wrapped(
        f"Rows: `{name}`, {len(about)} cells, {rows} rows; {devices}; torch {torch}; "
        f"commits {commits}."
    )


@cache
def all_attacks() -> dict[Unit, dict[str, Group]]:
    rows, cells = Store(LEADERBOARD).rows_and_cells()
    return {unit: boards(rows, cells, unit, all_attacks=True) for unit in UNITS}


def not_run() -> str:
    """The attacks of the plans that lack models, and how many of them they have."""
    images: Counter[tuple[str, str, str]] = Counter()
    for cell, _ in Store(LEADERBOARD).cells().values():
        images[canonical(cell.attack), cell.model, cell.data] += len(cell)
    most: dict[tuple[str, str], int] = {}
    for (_, *task), count in images.items():
        most[task[0], task[1]] = max(count, most.get((task[0], task[1]), 0))
    sentences = []
    for unit, path in PLANS.items():
        products = read_plan(path).products
        lacking: dict[str, int] = {}
        for attack in products[0].attacks:
            plain = canonical(describe(attack))
            tasks = [task for one in products for task in product(one.models, one.data)]
            whole = [task for task in tasks if images[plain, *task] == most.get(task, -1)]
            if len(whole) < len(tasks):
                effort = getattr(attack, "effort", "") if attack.card.name == "pinprick" else ""
                name = " ".join(filter(None, (attack.card.name, effort)))
                lacking[name] = len(whole)
        if lacking:
            names = ", ".join(f"`{name}` {count}" for name, count in lacking.items())
            sentences.append(f"**Not complete in {unit}**, with models of {len(tasks)}: {names}.")
    return markdown_list(sentences or ["All attacks are complete."])


def not_measured() -> str:
    """The published models without rows, with the command that trains each."""
    models = {cell.model for cell, _ in Store(LEADERBOARD).cells().values()}
    missing = [
        f"# {model_cards.title(card.facts)}\n{model_cards.command_of(card.facts)}"
        for name, card in model_cards.published().items()
        if f"file:models/{name}" not in models
    ]
    if not missing:
        return "All published models are measured."
    return "\n".join(("```", *missing, "```"))


def attackbench() -> str:
    rows, cells = Store(ATTACKBENCH).rows_and_cells()
    return f"{attackbench_table(boards(rows, cells, 'elements'))}\n\n{origin(ATTACKBENCH)}"


def save_figure() -> None:
    """Draw docs/images/leaderboard.png again."""
    leaderboard_figure(by_unit()).savefig(FIGURE)


def _if_there(store: Path, block: Callable[[], str]) -> str:
    return block() if store.is_dir() else NOT_MEASURED


_BLOCKS: dict[str, Callable[[], str]] = {
    "answer": lambda: answer(by_unit(), all_attacks()["pixels"]),
    "attacks in elements": lambda: attack_table(by_unit()["elements"]),
    "attacks in pixels": lambda: attack_table(by_unit()["pixels"]),
    "models in elements": lambda: model_table(all_attacks()["elements"]),
    "models in pixels": lambda: model_table(all_attacks()["pixels"]),
    "rows": lambda: origin(LEADERBOARD),
    "not measured": not_measured,
    "not run": not_run,
}
PAGES = {
    "docs/results/leaderboard.md": {
        **{name: partial(_if_there, LEADERBOARD, block) for name, block in _BLOCKS.items()},
        "attackbench": partial(_if_there, ATTACKBENCH, attackbench),
    }
}
