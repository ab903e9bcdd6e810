"""What an attack costs beyond its bare passes: time, and memory on a GPU.

    python benchmarks/overhead.py --model efficientnet_lite0 --data PHOTOS --batch-size 64 \
        --attack pinprick,effort=fast

Attack and bare passes take turns in one run, after a turn of each to warm up. A bare pass is one
forward and one backward of the margin's gradient, or a forward alone where the attack asked for no
gradient; the batches are those that the attack asked the model about, one by one, so that images
which leave early weigh on neither side. ``--data`` is as in ``case.py``.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import NamedTuple

import torch
from case import read_attack, read_data, right_ones
from torch import Tensor, nn
from write_rows import write_rows

from pinprick import Classifier, Goal, load_model, run_attack
from pinprick.types import Images


class Pass(NamedTuple):
    """How many images went through the network, and whether a gradient came back."""

    size: int
    backward: bool = True


class Recorder(nn.Module):
    """A network that notes its passes."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.passes: list[Pass] = []

    def forward(self, images: Tensor) -> Tensor:
        self.passes.append(Pass(len(images), images.requires_grad))
        logits: Tensor = self.net(images)
        return logits


def bare(model: Classifier, images: Images, goal: Goal, passes: list[Pass]) -> tuple[float, int]:
    """Seconds, and the most memory held, for these passes."""
    cuda = images.is_cuda
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    with model.frozen():
        for size, backward in passes:  # more images than there are, where copies are asked about
            rows = torch.arange(size, device=images.device) % len(images)
            adv = images[rows].detach().requires_grad_(backward)
            if not backward:
                with torch.no_grad():
                    model(adv)
                continue
            margin = Goal(goal.labels[rows]).margin(model(adv))
            torch.autograd.grad(margin.sum(), adv)
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    return seconds, torch.cuda.max_memory_allocated() if cuda else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--attack", default="pinprick,effort=fast")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="results/overhead/ATTACK_MODEL.json by default")
    options = parser.parse_args()

    attack, source = read_attack(options.attack), load_model(options.model)
    assert isinstance(source.net, nn.Module), "a network is needed for backward passes"
    source.net.to(options.device)
    images, labels = read_data(options.data, source)
    images, labels, _ = right_ones(source, images, labels, 0, options.batch_size)
    images, goal = images.to(options.device), Goal(labels.to(options.device))
    net = Recorder(source.net)
    model = Classifier(net, mean=source.mean, std=source.std)
    ratios, memory = [], []
    for turn in range(options.turns + 1):
        net.passes.clear()
        result = run_attack(attack, model, images, goal.labels, batch_size=len(images))
        seconds, peak = bare(source, images, goal, list(net.passes))
        if turn:
            ratios.append(result.seconds / seconds)
            memory.append((result.peak_memory or 0) / max(peak, 1))
            passes = sum(one.size for one in net.passes) / len(images)
            print(f"attack {result.seconds:.2f} s, bare {seconds:.2f} s, {passes:.0f} passes")
    print(
        f"{options.attack} on {options.model}, batch {len(images)}: "
        f"time {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}), "
        f"memory {statistics.median(memory):.3f} of bare passes",
        flush=True,
    )
    row = {
        "model": options.model,
        "attack": options.attack,
        "images": len(images),
        "passes": passes,
        "time_ratio": statistics.median(ratios),
        "time_ratios": ratios,
        "memory_ratio": statistics.median(memory) if images.is_cuda else None,
    }
    name = f"{options.attack.partition(',')[0]}_{Path(options.model).name.rpartition(':')[2]}"
    write_rows(options.out or Path(f"results/overhead/{name}.json"), [row], options.device)


if __name__ == "__main__":
    main()
