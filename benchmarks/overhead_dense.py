"""What the package costs on top of the network: I-FGSM against bare passes, and the first word.

    python benchmarks/overhead_dense.py [--batch 16] [--steps 10] [--rounds 5]

Times I-FGSM on EfficientNet-Lite0 against as many bare forward and backward passes on the same
images, by turns in one run, so that a busy machine slows both. Goal: a ratio of at most 1.05.
Then the time of ``pinprick --help``, goal 0.5 s. Run it on a quiet machine.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from write_rows import write_rows

from pinprick import Classifier, load_model, run_attack
from pinprick.attacks import IFGSM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/overhead/ifgsm_dense.json"))
    options = parser.parse_args()

    model = load_model("efficientnet_lite0")
    images = torch.rand(options.batch, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), model.frozen():
        labels = model(images).argmax(dim=1)
    seconds_bare(model, images, labels, 1)  # the first pass sets the network up

    bare, attack = [], []
    for _ in range(options.rounds):
        bare.append(seconds_bare(model, images, labels, options.steps))
        attack.append(seconds_attack(model, images, labels, options.steps))
    ratios = [a / b for a, b in zip(attack, bare, strict=True)]
    print(f"batch {options.batch}, {options.steps} steps, {torch.get_num_threads()} threads")
    for name, values in (("bare passes, s", bare), ("I-FGSM, s", attack), ("ratio", ratios)):
        print(f"{name:16}{statistics.median(values):7.3f}", end="  ")
        print(f"({min(values):.3f} to {max(values):.3f})")
    print(f"{'ratio of fastest':16}{min(attack) / min(bare):7.3f}")

    help_times = [seconds for _ in range(5) if (seconds := seconds_help()) is not None]
    if help_times:
        print(f"{'--help, s':16}{statistics.median(help_times):7.3f}")
    row = {
        "model": "efficientnet_lite0",
        "attack": f"ifgsm,steps={options.steps}",
        "images": options.batch,
        "bare_seconds": bare,
        "attack_seconds": attack,
        "time_ratio": statistics.median(ratios),
        "help_seconds": help_times,
    }
    write_rows(options.out, [row], "cpu")


def seconds_bare(model: Classifier, images: Tensor, labels: Tensor, steps: int) -> float:
    """Time of ``steps`` forward and backward passes and nothing else."""
    with model.frozen():
        start = time.perf_counter()
        for _ in range(steps):
            leaf = images.detach().requires_grad_()
            torch.autograd.grad(F.cross_entropy(model(leaf), labels, reduction="sum"), leaf)
        return time.perf_counter() - start


def seconds_attack(model: Classifier, images: Tensor, labels: Tensor, steps: int) -> float:
    """Time of I-FGSM itself, the referee's own passes left out."""
    result = run_attack(IFGSM(steps=steps), model, images, labels, batch_size=len(images))
    assert (result.forwards == steps).all(), "not the same number of passes"
    return result.seconds


def seconds_help() -> float | None:
    """Time of ``pinprick --help``; None where the command is not installed."""
    command = shutil.which("pinprick", path=str(Path(sys.executable).parent))
    if command is None:
        return None
    start = time.perf_counter()
    subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
