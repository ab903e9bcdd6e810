"""Does our FMN do what adv-lib's and Foolbox's do? Same model, same images, side by side.

    pip install adv-lib foolbox     in an environment of its own; no dependencies of the package
    python benchmarks/parity/fmn.py --case package.module:function [--count 64] [--norm l0]
        [--steps 100] [--device cuda]

They differ in rounding, in how many elements a projection keeps (Foolbox's one more than its
radius), and until an image fools, so single images may end elsewhere. The means must agree: where
ours is above another's by more than 5 % and by more than 3 standard errors of the paired
difference, or fools fewer images, the script fails. Foolbox is run with l0 alone: its l2 does not
project.
"""

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from adv_lib.attacks import fmn
from foolbox import PyTorchModel
from foolbox.attacks import L0FMNAttack
from foolbox.criteria import Misclassification
from torch import Tensor, nn

from pinprick import Classifier, run_attack
from pinprick.attacks import FMN

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case

ORDERS = {"l0": 0, "l1": 1, "l2": 2, "linf": math.inf}


class Net(nn.Module):
    """A classifier as Foolbox takes it."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images)


def by_foolbox(model: Classifier, images: Tensor, labels: Tensor, steps: int) -> Tensor:
    asked = PyTorchModel(Net(model).eval(), bounds=(0, 1), device=images.device)
    adv: Tensor = L0FMNAttack(steps=steps).run(asked, images, Misclassification(labels))
    return adv


def main() -> int:
    parser = case_parser(__doc__, count=64, steps=100)
    parser.add_argument("--norm", choices=ORDERS, default="l0")
    options = parser.parse_args()
    order, steps = ORDERS[options.norm], options.steps

    model, images, labels = read_case(options.case, options.device, options.count)
    run_attack(FMN(norm=options.norm, steps=2), model, images, labels)  # warm up
    ours = run_attack(FMN(norm=options.norm, steps=steps), model, images, labels)
    size = (ours.adversarial - images).flatten(1).norm(p=order, dim=1)
    print(f"{model.name}, {options.norm}, {len(images)} images, {steps} steps")
    show("ours", ours.success, size, ours.seconds)

    others: dict[str, Callable[[], Tensor]] = {
        "adv-lib": lambda: fmn(model, images, labels, norm=order, steps=steps)
    }
    if options.norm == "l0":
        others["Foolbox"] = lambda: by_foolbox(model, images, labels, steps)
    return max(
        [
            compare(name, other, model, images, labels, ours.success, size, order)
            for name, other in others.items()
        ]
    )


def compare(
    name: str,
    other: Callable[[], Tensor],
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    success: Tensor,
    size: Tensor,
    order: float,
) -> int:
    """Run another's attack and say how ours differs; 1 where ours is worse."""
    with model.frozen():
        start = time.perf_counter()
        adv = other()
        with torch.no_grad():
            fooled = model(adv).argmax(dim=1) != labels
        seconds = time.perf_counter() - start
    theirs = (adv - images).flatten(1).norm(p=order, dim=1)
    show(name, fooled, theirs, seconds)
    both = success & fooled
    difference = (size - theirs)[both].double()
    error = (difference.std() / math.sqrt(len(difference))).item()
    mean = difference.mean().item()
    same = (difference == 0).double().mean()
    print(f"{'':8} difference {mean:+.4f} with standard error {error:.4f}; same on {same:.0%}")
    worse = mean > 0.05 * theirs[both].mean() and mean > 3 * error
    return int(worse or int(success.sum()) < int(fooled.sum()))


def show(name: str, success: Tensor, size: Tensor, seconds: float) -> None:
    rate, mean, median = success.double().mean(), size[success].mean(), size[success].median()
    print(f"{name:8} fooled {rate:.1%}  mean {mean:.4f}  median {median:.4f}  {seconds:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
