"""How fast the training command trains, and how busy it keeps the GPU.

    python benchmarks/training.py --data cifar10.safetensors --net resnet18 --recipe standard

Trains with the preset, epoch for epoch, without what is measured at the end, and tells the time to
each accuracy on the test images that are watched. Then some more steps are timed, and as many
recorded by torch's profiler, which slows Python down but not the kernels: busy is the time in which
any kernel was running, over that of the steps as timed without it. Without a GPU only the latter
is told.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.profiler import ProfilerActivity, profile
from write_rows import write_rows

from pinprick.train.feed import Batch
from pinprick.train.job import train_epochs
from pinprick.train.loop import Trainer
from pinprick.train.material import read_material
from pinprick.train.plan import build_plan

MARKS = (0.90, 0.92, 0.93, 0.94, 0.945, 0.95)


def busy(trainer: Trainer, steps: int) -> tuple[float, float]:
    """Seconds a step, and the share of them in which a kernel runs, after some to warm up."""
    size, batch_size = trainer.plan.schedule.phase_at(0)
    batches = trainer.feed.batches(0, 1, batch_size, size or trainer.card.size[0])
    trainer.net.train()
    take_steps(trainer, batches, 10)
    seconds = take_steps(trainer, batches, steps)
    if trainer.device.type != "cuda":
        return seconds, float("nan")
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        take_steps(trainer, batches, steps)
    spans = sorted(
        (event.time_range.start, event.time_range.end)
        for event in seen.events() or []
        if event.device_type.name == "CUDA"
    )
    return seconds, covered(spans) / 1e6 / steps / seconds


def take_steps(trainer: Trainer, batches: Iterator[Batch], steps: int) -> float:
    """Seconds a step."""
    start = time.perf_counter()
    for _, batch in zip(range(steps), batches, strict=False):
        trainer._step(trainer.plan.recipe, batch, 1.0)
        if trainer.average is not None:
            trainer.average.update(10_000)
    if trainer.device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def covered(spans: list[tuple[float, float]]) -> float:
    """How long at least one of the spans lasts."""
    total, reached = 0.0, spans[0][0]
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", required=True)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--net", default="resnet18")
    parser.add_argument("--recipe", default="standard")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--steps", type=int, default=40, help="steps to record")
    parser.add_argument("--no-graphs", action="store_true", help="start every kernel from Python")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="results/training/NET_RECIPE.json by default")
    options = parser.parse_args()

    material = read_material(options.data, root=options.root)
    chosen = {"graphs": not options.no_graphs}
    if options.epochs is not None:
        chosen["epochs"] = options.epochs
    plan = build_plan(
        data=material.name,
        net=options.net,
        recipe=options.recipe,
        options={**chosen, "watch_images": 2000},
        seed=options.seed,
    )
    start = time.perf_counter()
    trainer = Trainer(plan, material, options.device)
    print(f"ready after {time.perf_counter() - start:.1f} s", flush=True)
    left, reached = list(MARKS), {}
    with TemporaryDirectory() as folder:
        for epoch in train_epochs(trainer, material, Path(folder)):
            while left and epoch.accuracy >= left[0]:
                reached[str(left[0])] = epoch.seconds
                print(f"{left.pop(0):.1%} after {epoch.seconds:.1f} s, epoch {epoch.number}")
        print(
            f"{options.recipe} of {options.net}: {epoch.seconds:.1f} s for {epoch.number} epochs, "
            f"accuracy {epoch.accuracy:.1%}, robust {epoch.robust_accuracy:.1%} (2000 test images)",
            flush=True,
        )
    seconds, share = busy(trainer, options.steps)
    print(f"a step takes {1000 * seconds:.1f} ms; GPU busy {share:.1%} of the time", flush=True)
    row = {
        "net": options.net,
        "recipe": options.recipe,
        "data": material.name,
        "images": 2000,
        "epochs": epoch.number,
        "seconds": epoch.seconds,
        "accuracy": epoch.accuracy,
        "robust_accuracy": epoch.robust_accuracy,
        "seconds_to_accuracy": reached,
        "step_seconds": seconds,
        "gpu_busy": share if options.device != "cpu" else None,
        "seed": options.seed,
    }
    out = options.out or Path(f"results/training/{options.net}_{options.recipe}.json")
    write_rows(out, [row], options.device)


if __name__ == "__main__":
    main()
