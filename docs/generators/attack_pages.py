"""The block "Measured" on the pages of l0 attacks and the excerpt of README.

Both come from the store results/leaderboard. Without it they say "Not measured."
"""

from functools import cache, partial
from pathlib import Path

from pinprick.attacks import ATTACKS
from pinprick.attacks.card import norm_and_units
from pinprick.bench.store import Store
from pinprick.report.docs_attack_numbers import (
    NOT_MEASURED,
    AttackNumbers,
    attack_block,
    attack_numbers,
    best_attacks,
)

FOLDER = "results/leaderboard"
STORE = Path(__file__).parents[2] / FOLDER
LEGEND = "[What the columns mean]({}README.md#measured)."


@cache
def numbers() -> list[AttackNumbers]:
    return attack_numbers(*Store(STORE).rows_and_cells()) if STORE.is_dir() else []


@cache
def origin() -> str:
    """Devices and commits of the rows."""
    origins = [origin for _, origin in Store(STORE).cells().values()]
    devices = sorted({one.device for one in origins})
    commits = sorted({one.commit[:10] for one in origins if one.commit})
    at = f", commit {' and '.join(commits)}" if commits else ""
    command = f"`pinprick bench show {FOLDER} --details`"
    return f"Rows: `{FOLDER}` ({' and '.join(devices)}{at}); {command} prints all of them."


def page_block(name: str) -> str:
    block = attack_block(numbers(), name)
    if block == NOT_MEASURED:
        return block
    return f"{block}\n\n{origin()} {LEGEND.format('')}"


def excerpt() -> str:
    """The five best attacks."""
    if not STORE.is_dir():
        return NOT_MEASURED
    table = best_attacks(*Store(STORE).rows_and_cells(), "elements")
    return f"{table}\n\n{origin()} {LEGEND.format('docs/methods/')}"


PAGES = {
    f"docs/methods/{name}.md": {"leaderboard": partial(page_block, name)}
    for name, attack in ATTACKS.items()
    if norm_and_units(attack).startswith("l0")
} | {"README.md": {"best attacks": excerpt}}
