"""SparseFool for a whole batch, beside torchattacks' one image at a time: seconds and elements.

    pip install torchattacks     in an environment of its own; it is no dependency of the package
    python benchmarks/sparsefool_speed.py --case package.module:function [--count 64]
        [--steps 10] [--theirs 64] [--device cuda]

Both have the same lambda, overshoot and number of rounds. torchattacks starts every round from the
clean image, takes the normal at the extrapolated point, looks at all classes, and its solver takes
a step in Python for each element. Ours is also run with lambda = 1. ``--theirs`` is how many of the
images torchattacks is given, the first ones, all by default; its time is then told for all, at as
much an image.
"""

import time

import torch
import torchattacks
from case import case_parser, read_case
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import SparseFool


def main() -> None:
    parser = case_parser(__doc__, count=64, steps=10)
    parser.add_argument("--theirs", type=int, help="images for torchattacks, all unless given")
    options = parser.parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    print(f"{model.name}, {len(images)} images, at most {options.steps} rounds")
    run_attack(SparseFool(steps=1), model, images[:2], labels[:2])  # to warm up
    seconds = {}
    for lam in (3.0, 1.0):
        result = run_attack(SparseFool(lam=lam, steps=options.steps), model, images, labels)
        seconds[lam] = result.seconds
        say(f"ours, lambda {lam:g}", result.seconds, result.success, result.adversarial, images)
    few, wanted = images[: options.theirs], labels[: options.theirs]
    took, adv = run_theirs(model, few, wanted, options.steps)
    with torch.no_grad(), model.frozen():
        fooled = torch.cat([model(part).argmax(dim=1) for part in adv.split(64)]) != wanted
    say(f"torchattacks, lambda 3, {len(few)}", took, fooled, adv, few)
    took *= len(images) / len(few)
    print(f"{took / seconds[3.0]:.0f} times as fast at the same lambda")


def run_theirs(
    model: Classifier, images: Tensor, labels: Tensor, steps: int
) -> tuple[float, Tensor]:
    """Seconds and adversarial images of torchattacks, the network frozen as for ours."""
    with model.frozen():
        attack = torchattacks.SparseFool(_AsModule(model), steps=steps, lam=3, overshoot=0.02)
        start = time.perf_counter()
        adv = attack(images, labels)
        if images.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start, adv


class _AsModule(torch.nn.Module):
    """A classifier in the form that torchattacks asks for."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model, self.net = model, model.net  # it looks for the device among the parameters

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images)


def say(name: str, seconds: float, fooled: Tensor, adv: Tensor, images: Tensor) -> None:
    changed = (adv != images)[fooled]
    elements = changed.flatten(1).sum(dim=1).double()
    pixels = changed.any(dim=1).flatten(1).sum(dim=1).double()
    print(
        f"{name:24} {seconds:8.2f} s  fooled {fooled.double().mean():.1%}  "
        f"mean {elements.mean():.1f} elements, {pixels.mean():.1f} pixels"
    )


if __name__ == "__main__":
    main()
