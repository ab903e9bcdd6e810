"""Measure the paper again: get what is needed, estimate the time, run the plans, make the pages.

    ./scripts/paper                     everything, on a machine with a GPU
    ./scripts/paper table1 optimum      some of the plans and last steps
    ./scripts/paper --list              what is missing, what is finished; nothing runs
    ./scripts/paper --small             the plans on a small scale, on two CPU cores, in a minute
    ./scripts/paper --images 25         the first 25 images of each subset, on a CPU; the pages show
                                        what has no rows of a GPU yet

The last steps come after the plans: figures of photographs, proved optima, explanations. A plan
brings those of its page. It can be stopped at any moment. The same command goes on: files that are
there are not made again, and neither are finished cells. Cells that another store of the repository
has are copied from it.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from known_rows import take_over, without_measured, without_victims
from last_steps import last_steps
from needs import EXPLANATIONS, LAST, PLANS, Step, prepare, steps
from smaller import reduce_plan, reduce_to_cpu

from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.engines.run_cells import Engine, run_cells
from pinprick.bench.plan import Plan
from pinprick.bench.plan_file import read_plan
from pinprick.bench.run_cell import run_cell
from pinprick.bench.store import Store
from pinprick.bench.validate import estimate
from pinprick.bench.verify import chosen_cells
from pinprick.cli.bench_where import read_where
from pinprick.cli.console import Console
from pinprick.errors import PinprickError
from pinprick.jobs.progress import time_in_words

ROOT = Path(__file__).parents[2]
ALONE = {"table4"}  # measures time, so no other cell runs beside its own
OTHERS = ("results/leaderboard", "results/wifgsm/store")  # stores whose cells are taken over
LEFT_OUT = (
    "--small, --images and --where run cells of plans and make the pages. They leave out the last "
    f"steps: {', '.join(LAST)}. --images leaves out trainings, too, and --small needs none."
)


def load_plan(name: str, cache: Cache, *, small: bool) -> Plan | None:
    """The part of a plan that can run here; what cannot is printed."""
    try:
        plan = read_plan(ROOT / "plans" / "paper" / f"{name}.toml")
    except PinprickError as error:
        print(f"left out: {error}")
        return None
    plan, missing = (reduce_plan(plan) if small else plan).without_missing(cache)
    for line in missing:
        print(f"left out: {line}")
    return plan if plan.products else None


def cells_of(
    plan: Plan | None, cache: Cache, where: Sequence[str] | None, images: int | None = None
) -> Sequence[Cell]:
    """The cells with these values of columns; with ``images``, the first ones on a CPU."""
    if plan is None:
        return ()
    if images is not None:
        cells = reduce_to_cpu(plan, images).cells(cache)
        return chosen_cells([one for one in cells if one.first < images], read_where(where))
    return chosen_cells(plan.cells(cache), read_where(where))


def words(cells: Sequence[Cell], cache: Cache, workers: int) -> str:
    """How long the passes of some cells take at most."""
    if not cells:
        return "nothing to do"
    if any(cell.device == "cuda" for cell in cells) and not torch.cuda.is_available():
        return f"{len(cells)} cells, time unknown without a GPU"
    known = [one.seconds for one in estimate(cells, cache) if one.seconds is not None]
    whole = f"{len(cells)} cells, passes take at most {time_in_words(sum(known))}"
    if workers == 1:
        return whole
    return (
        f"{whole} one after another, {time_in_words(sum(known) / workers)} with {workers} at a time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/paper", description=(__doc__ or "").split("\n")[0], epilog=LEFT_OUT
    )
    known = ", ".join((*PLANS, *LAST))
    parser.add_argument("plans", nargs="*", metavar="PLAN", help=f"some of {known}")
    parser.add_argument("--small", action="store_true", help="on a small scale, on a CPU")
    parser.add_argument(
        "--images", type=int, metavar="N", help="the first N of each subset, on a CPU"
    )
    parser.add_argument(
        "--where", action="append", metavar="COLUMN=VALUE", help="some of the cells: attack=wifgsm"
    )
    parser.add_argument("--list", action="store_true", help="say what is missing, run nothing")
    parser.add_argument("--store", type=Path, help="the folder of finished cells")
    parser.add_argument("--workers", type=int, help="cells at a time; 14 on a GPU")
    options = parser.parse_args()
    unknown = sorted({*options.plans} - {*PLANS, *LAST})
    if unknown:
        parser.error(f"there is no plan {unknown[0]}; there are {known}")
    last = sorted({*options.plans} & {*LAST})
    if last and only_cells(options):
        parser.error(f"{last[0]} is a last step, and not for --small, --images or --where")
    if options.images is not None and (options.small or options.images < 1):
        parser.error("--images takes a number from 1 on, and is not for --small")
    try:
        measure(options)
    except PinprickError as error:
        parser.exit(2, f"paper: {error}\n")


def only_cells(options: argparse.Namespace) -> bool:
    """Whether the run is of a part of the cells, and has no last steps."""
    return bool(options.small or options.images is not None or options.where)


def show_missing(missing: Sequence[Step]) -> None:
    for step in missing:
        took = f"  (about {time_in_words(step.seconds)} on an H200)" if step.seconds else ""
        print(f"missing: {step.command}{took}")


def measure(options: argparse.Namespace) -> None:
    chosen = [name for name in PLANS if name in (options.plans or PLANS)]
    last = [] if only_cells(options) else last_steps(options.plans or LAST)
    default = "pinprick-out/paper/store" if options.small else "results/paper"
    store, cache = Store(options.store or default), Cache()
    if not options.small:
        wanted = {*chosen, *(step.name for step in last)}
        needed = [step for step in steps() if set(step.plans) & wanted]
        missing = [step for step in needed if not step.done()]
        if options.images is not None:  # a training takes a GPU
            missing = [step for step in missing if not step.seconds]
        show_missing(missing)
        if not Path("nips2017/images.csv").is_file():
            print(
                "missing: nips2017/images.csv and nips2017/images, the list and photographs of the "
                "NIPS-2017 development set (docs/reference/data.md, lists); "
                "cells on photographs are left out"
            )
        if not options.list:
            prepare(missing)
    if not options.list:
        store.prepare()
    loaded = {name: load_plan(name, cache, small=options.small) for name in chosen}
    if not options.list and not options.small:
        every = [one for plan in loaded.values() for one in cells_of(plan, cache, options.where)]
        others = [ROOT / one for one in OTHERS]
        print(f"{take_over(every, store, others, cache)} cells from other stores")
        print(f"{without_victims(every, store)} cells from the same attacks with victims")
    plans = {
        name: cells_of(plan, cache, options.where, options.images) for name, plan in loaded.items()
    }
    left = {name: [one for one in cells if not store.has(one)] for name, cells in plans.items()}
    if options.images is not None:
        left = {name: without_measured(cells, store) for name, cells in left.items()}
    workers = options.workers or (14 if not options.small and options.images is None else 2)
    print("times are of passes alone; start-up, work between passes, pages and figures take more")
    for name, cells in left.items():
        time = words(cells, cache, 1 if name in ALONE else workers)
        print(f"{name}: {len(plans[name]) - len(cells)} cells finished; {time}")
    for name in dict.fromkeys(step.name for step in last):
        done = [step.done() for step in last if step.name == name]
        print(f"{name}: {sum(done)} of {len(done)} finished")
    left_last = [step for step in last if not step.done()]
    show_missing(left_last)
    if only_cells(options):
        print(f"left out: {', '.join(LAST)}")
    if options.list:
        return
    for name, cells in left.items():
        alone = name in ALONE
        engine: Engine = "here" if alone else "processes"
        work, bar = partial(run_cell, loaded=cache), Console(quiet=False)
        count = None if alone else workers
        print(run_cells(cells, store, work, engine=engine, workers=count, progress=bar))
    prepare(left_last)
    make_pages(options, store, explained=any(step.name == EXPLANATIONS for step in left_last))


def make_pages(options: argparse.Namespace, store: Store, *, explained: bool = False) -> None:
    """Pages and figures: those of the repository, or small ones beside the small store."""
    if not options.small:
        names = ["measured", "paper", *(["interpretation"] if explained else [])]
        command = [sys.executable, str(ROOT / "docs" / "make.py"), *names]
        subprocess.run(command, check=True)
        return
    sys.path.insert(0, str(ROOT / "docs"))
    from generators.paper import write_small

    for path in write_small(store.folder, store.folder.parent):
        print(path)


if __name__ == "__main__":
    main()
