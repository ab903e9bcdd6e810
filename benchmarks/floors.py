"""How good each sparse attack is at least on CIFAR-10, at a fixed seed; fails where one is worse.

    python benchmarks/floors.py --data IMAGES [--attack fmn --attack cw_l0] [--device cuda]

``--data`` is a ``.safetensors`` file with 8-bit ``images`` of CIFAR-10's test set, in their order,
and ``labels``; attacked are the first 32 that the network gets right. Elements are counted for all,
also for attacks that choose pixels. A floor is what was measured on a CPU with 10 % of room for
another machine's rounding, and two images fewer to fool; where k is given, it is k. It moves only
together with a line in the changelog. ``tests/attacks/test_floors.py`` is the same in small.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sparsity import read_data, right_ones
from torch import nn

from pinprick import build, load_model, run_attack

MODEL, COUNT = "pinprick:cifar10_resnet20", 32


class Floor(NamedTuple):
    """What is asked of an attack.

    Attributes:
        spec: The attack and its settings.
        fooled: How many of the images it fools, at least.
        elements: Mean of the elements changed in those, at most.
    """

    spec: dict[str, Any]
    fooled: int
    elements: float


FLOORS = {
    "greedy": Floor({"name": "greedy"}, 30, 73.1),
    "sparsefool": Floor({"name": "sparsefool"}, 29, 23.6),
    "sparsefool, lambda 1": Floor({"name": "sparsefool", "lam": 1.0}, 27, 17.3),
    "greedyfool": Floor({"name": "greedyfool"}, 30, 22.1),
    "homotopy": Floor({"name": "homotopy"}, 30, 11.9),
    "sigma_zero": Floor({"name": "sigma_zero", "steps": 200}, 30, 10.7),
    "fmn": Floor({"name": "fmn", "steps": 200}, 30, 8.4),
    "cw_l0": Floor({"name": "cw_l0", "preset": "quick", "unit": "elements"}, 30, 7.2),
    "strattack": Floor({"name": "strattack", "preset": "quick"}, 30, 11.4),
    "sapf": Floor({"name": "sapf", "preset": "quick", "k": 30}, 30, 30),
    "wifgsm": Floor({"name": "wifgsm"}, 30, 10.4),
    "pinprick": Floor({"name": "pinprick", "effort": "fast"}, 30, 7.4),
    "pgd0": Floor({"name": "pgd0", "k": "smallest", "steps": 20, "restarts": 1}, 30, 28.7),
    "sparse_pgd": Floor({"name": "sparse_pgd", "k": "smallest", "steps": 30}, 30, 12.9),
    "corner_search": Floor({"name": "corner_search", "preset": "quick"}, 30, 16.6),
    "jsma": Floor({"name": "jsma", "preset": "quick"}, 30, 24.6),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--attack", action="append", choices=FLOORS, help="all unless named")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    model = load_model(MODEL)
    assert isinstance(model.net, nn.Module), "a network is needed for gradients"
    model.net.to(options.device)
    images, labels = read_data(options.data, model)
    images, labels, _ = right_ones(model, images, labels, 0, COUNT)
    broken = []
    for name in options.attack or FLOORS:
        floor = FLOORS[name]
        result = run_attack(build(floor.spec), model, images, labels, batch_size=COUNT)
        fooled, elements = int(result.success.sum()), result.needed_elements[result.success].mean()
        holds = fooled >= floor.fooled and elements.item() <= floor.elements
        print(
            f"{name:22} fooled {fooled} (at least {floor.fooled})  {elements:6.2f} elements "
            f"(at most {floor.elements:g})  {result.seconds:6.1f} s{'' if holds else '  BROKEN'}",
            flush=True,
        )
        if not holds:
            broken.append(name)
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
