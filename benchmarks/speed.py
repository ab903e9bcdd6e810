"""The three speeds of a run against each other: seconds, elements, fooled images and memory.

    python benchmarks/speed.py --model file:models/cifar10_resnet18 --data cifar10/test[0:256] \
        --attack sigma_zero,steps=1000 --attack pinprick --attack sparse_rs,k=10,queries=500 \
        --out results/speed

Each attack runs at every speed in one process, after a short run at each to load kernels. Seconds
include the recordings that a speed makes; they are also given alone. ``--reference FILE`` names a
Python file with a function ``attack(net, images, labels)``, such as somebody else's, which is timed
as well. ``--data`` is as in ``case.py``.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from case import open_run, read_attack, run_parser
from torch import Tensor
from write_rows import write_rows

from pinprick import Classifier, run_attack
from pinprick.speed_names import SPEEDS


def measure(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    targets: Tensor | None,
    attacks: list[str],
    *,
    batch_size: int | None = None,
) -> Iterator[dict[str, Any]]:
    """One row per attack and speed."""
    for text in attacks:
        attack = read_attack(text)
        exact = 0.0
        for speed in SPEEDS:
            run_attack(
                attack,
                model,
                images,
                labels,
                targets=targets,
                batch_size=batch_size,
                max_passes=8,
                speed=speed,
            )
            result = run_attack(
                attack,
                model,
                images,
                labels,
                targets=targets,
                batch_size=batch_size,
                speed=speed,
            )
            exact = exact or result.seconds
            found = result.needed_elements[result.success]
            row = {
                "attack": text,
                "speed": speed,
                "images": len(result),
                "fooled": int(result.success.sum()),
                "elements": found.double().mean().item(),
                "median_elements": found.double().median().item(),
                "forwards": result.forwards.double().mean().item(),
                "backwards": result.backwards.double().mean().item(),
                "seconds": result.seconds,
                "of_exact": result.seconds / exact,
                "peak_memory": result.peak_memory,
                **{f"speed_{name}": value for name, value in (result.speed or {}).items()},
            }
            print(
                f"{text:40} {speed:7} {row['fooled']:4} of {len(result)} fooled, "
                f"{row['elements']:8.2f} elements, {result.seconds:7.2f} s "
                f"({row['of_exact']:.2f} of exact), {(result.peak_memory or 0) / 2**20:6.0f} MiB "
                f"{result.speed or ''}",
                flush=True,
            )
            yield row


def time_reference(
    attack: Callable[..., Tensor], model: Classifier, images: Tensor, labels: Tensor
) -> dict[str, Any]:
    """A row for somebody else's attack, on the whole batch."""
    device = model.device or images.device
    images, labels = images.to(device), labels.to(device)
    with model.frozen():
        attack(model, images[:2], labels[:2])
        if images.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        adv = attack(model, images, labels)
        if images.is_cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        with torch.no_grad():
            fooled = model(adv).argmax(dim=1) != labels
    counts = (adv != images).flatten(1).sum(dim=1)[fooled]
    row = {
        "attack": "reference",
        "speed": "",
        "images": len(images),
        "fooled": int(fooled.sum()),
        "elements": counts.double().mean().item(),
        "seconds": seconds,
    }
    print(row, flush=True)
    return row


def read_reference(path: Path) -> Callable[..., Tensor]:
    """The function ``attack`` of a Python file."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None, f"{path} is no Python file"
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Tensor] = module.attack
    return function


def parser() -> argparse.ArgumentParser:
    made = run_parser(__doc__)
    made.add_argument("--reference", type=Path, help="a Python file with an attack to time, too")
    return made


def main(arguments: list[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    model, images, labels, targets, about = open_run(options)
    rows = []
    if options.reference is not None:
        rows.append(time_reference(read_reference(options.reference), model, images, labels))
    rows += measure(model, images, labels, targets, options.attack, batch_size=options.batch_size)
    name = Path(options.model).name.rpartition(":")[2]
    goal = "_least_likely" if options.least_likely else ""
    rows = [
        {"model": options.model, "data": about["data"], "goal": about["goal"]} | one for one in rows
    ]
    write_rows(options.out / f"{name}{goal}.json", rows, options.device)


if __name__ == "__main__":
    main()
