"""What was aimed at, and by how much it is missed: the tables of results/pinprick/aims.md."""

from collections.abc import Callable

from generators.pinprick import GOALS, attack_of, in_order, means_of, over, short, speed_of
from generators.speed.aims import missed
from pinprick.bench.cell import Cell
from pinprick.report.docs_measured import markdown_table

ROBUST, LARGE = ("_pgd_at", "_fast_at"), "efficientnet_lite0"
Most = Callable[[str, bool], float | None]  # of a model, with a target or not; None for no aim


def balanced() -> str:
    """The 500 passes of balanced, over 1000 steps of σ-zero."""

    def most(model: str, targeted: bool) -> float:
        if model == LARGE:
            return 0.90 if targeted else 0.65
        if model.endswith(ROBUST):
            return 0.95 if targeted else 0.90
        return 0.85 if targeted else 0.80

    return _aims("balanced", "sigma_zero", most)


def fast() -> str:
    """The 100 passes of fast, over 1000 steps of σ-zero."""
    return _aims("fast", "sigma_zero", lambda model, targeted: 1.30 if targeted else 1.10)


def thorough() -> str:
    """The 1000 passes of thorough, over 1000 steps of σ-zero, without a target."""

    def most(model: str, targeted: bool) -> float | None:
        if model == LARGE or targeted:
            return None
        return 0.85 if model.endswith(ROBUST) else 0.75

    return _aims("thorough", "sigma_zero", most)


def at_fast() -> str:
    """Balanced at the speed "fast", over that at "exact"."""
    return _aims("fast", "exact", lambda model, targeted: 1.03, speed_of)


def at_compiled() -> str:
    """Balanced at the speed "compiled", over that at "exact"."""
    return _aims("compiled", "exact", lambda model, targeted: 1.03, speed_of)


def _aims(
    what: str, other: str, most: Most, label: Callable[[Cell], str | None] = attack_of
) -> str:
    """How many aims are met, and one line per network and goal."""
    means, images, revision = means_of("pinprick", label)
    table: list[tuple[str, ...]] = []
    for task in in_order(images):
        model, goal = short(task[0]), task[1]
        aim = most(model, goal != "untargeted")
        found = over(means.get((*task, what)), means.get((*task, other)))
        if aim is not None and found is not None:
            numbers = f"{aim:.2f}", f"{found:.2f}", missed(aim, found)
            table.append((model, GOALS[goal], str(images[task]), *numbers))
    met = sum(row[-1] == "met" for row in table)
    columns = ("model", "target", "images", "at most", "measured", "missed by")
    return f"Met in {met} of {len(table)}. {revision}\n\n{markdown_table(columns, table)}"


PAGES = {
    "results/pinprick/aims.md": {
        "balanced": balanced,
        "fast": fast,
        "thorough": thorough,
        "speed": at_fast,
        "compiled": at_compiled,
    }
}
