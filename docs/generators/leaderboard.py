"""The measured blocks of docs/results/leaderboard.md, from two stores under results/."""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path

from generators import model_cards
from pinprick.attacks import ATTACKS
from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack
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
    dataset_name,
    leaderboard_figure,
    model_table,
)
from pinprick.report.docs_leaderboard_answer import answer
from pinprick.report.docs_measured import markdown_list, wrapped
from pinprick.zoo import shipped

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
    """The cells of the plans that have no rows: by unit, attack and model."""
    found = Counter(
        (canonical(cell.attack), (cell.model, cell.data))
        for cell, _ in Store(LEADERBOARD).cells().values()
    )
    cells: dict[tuple[str, str], int] = {}  # of one attack on a model, where it is complete
    for (_, task), count in found.items():
        cells[task] = max(count, cells.get(task, 0))
    sentences = []
    for unit, path in PLANS.items():
        products = read_plan(path).products
        lacking: dict[str, list[str]] = {}
        missing = every = 0
        for one in products:
            tasks = [task for task in product(one.models, one.data) if task in cells]
            for attack, task in product(one.attacks, tasks):
                count = cells[task] - found[canonical(describe(attack)), task]
                missing, every = missing + count, every + cells[task]
                if count:
                    lacking.setdefault(_name(attack), []).append(f"`{task[0]}`")
        if lacking:
            where = "; ".join(f"`{name}` on {', '.join(on)}" for name, on in lacking.items())
            sentences.append(f"**In {unit}**, {missing} of {every} cells have no rows: {where}.")
    return markdown_list((sentences or ["All attacks are complete."]) + earlier_revisions())


def earlier_revisions(store: Path = LEADERBOARD) -> list[str]:
    """A sentence per attack whose rows are of an earlier revision, if there are any."""
    found: dict[str, dict[tuple[str, int], set[str]]] = {}
    for cell, _ in Store(store).cells().values():
        name, unit = cell.attack["name"], cell.attack.get("unit", "")
        if name in ATTACKS and cell.revision != ATTACKS[name].card.revision:
            groups = found.setdefault(name, {})
            groups.setdefault((unit, cell.revision), set()).add(dataset_name(cell.data))
    said = []
    for name, groups in sorted(found.items()):
        now, of = ATTACKS[name].card.revision, []
        for (unit, revision), data in sorted(groups.items()):
            of.append(f"{revision}{unit and f' in {unit}'} on {' and '.join(sorted(data))}")
        said.append(f"Measured of `{name}` is revision {', '.join(of)}; now it is {now}.")
    return [f"**Earlier revisions.** {' '.join(said)}"] if said else []


def _name(attack: Attack) -> str:
    """The name of an attack on the boards."""
    effort = getattr(attack, "effort", "") if attack.card.name == "pinprick" else ""
    return " ".join(filter(None, (attack.card.name, effort and f"effort={effort}")))


def here_not_measured() -> str:
    """Models without rows whose weights are in the package or in the repository."""
    return wrapped(", ".join(f"`{name}`" for name in _without_rows()) or "None") + "."


def not_measured() -> str:
    """The published models without rows and weights, with the command that trains each."""
    models = {cell.model for cell, _ in Store(LEADERBOARD).cells().values()}
    missing = [
        f"# {model_cards.title(card.facts)}\n{model_cards.command_of(card.facts)}"
        for name, card in model_cards.published().items()
        if f"file:models/{name}" not in {*models, *_without_rows()}
    ]
    if not missing:
        return "All published models are measured."
    return "\n".join(("```", *missing, "```"))


def _without_rows() -> list[str]:
    """Models that have weights here, and no rows."""
    shipped_here = [f"pinprick:{name}" for name in shipped.names()]
    published = [name for name in model_cards.published() if (ROOT / "models" / name).is_dir()]
    models = {cell.model for cell, _ in Store(LEADERBOARD).cells().values()}
    every = [*shipped_here, *(f"file:models/{name}" for name in published)]
    return [name for name in every if name not in models]


def attackbench() -> str:
    rows, cells = Store(ATTACKBENCH).rows_and_cells()
    table = attackbench_table(boards(rows, cells, "elements"))
    return "\n\n".join((table, *map(wrapped, earlier_revisions(ATTACKBENCH)), origin(ATTACKBENCH)))


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
    "here, not measured": here_not_measured,
    "not measured": not_measured,
    "not run": not_run,
}
PAGES = {
    "docs/results/leaderboard.md": {
        **{name: partial(_if_there, LEADERBOARD, block) for name, block in _BLOCKS.items()},
        "attackbench": partial(_if_there, ATTACKBENCH, attackbench),
    }
}
