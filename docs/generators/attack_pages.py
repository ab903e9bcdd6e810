"""The block "Measured" on the pages of l0 attacks, and the models and data on their index.

Both come from the store results/leaderboard. Without it they say "Not measured."
"""

from functools import cache, partial
from pathlib import Path
from typing import get_args

from pinprick.attacks import ATTACKS
from pinprick.attacks.card import norm_and_units
from pinprick.bench.store import Store
from pinprick.metrics.unit import Unit
from pinprick.report.docs_attack_numbers import (
    NOT_MEASURED,
    AttackNumbers,
    attack_block,
    attack_numbers,
    task_table,
)

FOLDER = "results/leaderboard"
STORE = Path(__file__).parents[2] / FOLDER
COMMAND = f"pinprick bench show {FOLDER} --details --unit {{}}"
LEGEND = "[What the columns mean](README.md#measured)."


@cache
def numbers() -> list[AttackNumbers]:
    return attack_numbers(*Store(STORE).rows_and_cells()) if STORE.is_dir() else []


def origin() -> str:
    """Devices and commits of the rows."""
    origins = [origin for _, origin in Store(STORE).cells().values()]
    devices = sorted({one.device for one in origins})
    commits = sorted({one.commit[:7] for one in origins if one.commit})
    return f"Device: {', '.join(devices)}. Commits: {', '.join(commits)}."


def page_block(name: str) -> str:
    block = attack_block(numbers(), name)
    if block == NOT_MEASURED:
        return block
    unit, *others = [unit for unit in get_args(Unit) if f"{unit.capitalize()}, " in block]
    rows = " or ".join([f"`{COMMAND.format(unit)}`", *(f"`--unit {other}`" for other in others)])
    return f"{block}\n\nAll rows: {rows}.\n{LEGEND}"


def tasks() -> str:
    """The models and data of the rows."""
    return f"{task_table(numbers())}\n\n{origin()}" if numbers() else NOT_MEASURED


PAGES = {
    f"docs/methods/{name}.md": {"leaderboard": partial(page_block, name)}
    for name, attack in ATTACKS.items()
    if norm_and_units(attack).startswith("l0")
} | {"docs/methods/README.md": {"tasks": tasks}}
