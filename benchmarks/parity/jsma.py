"""Does our JSMA do what torchattacks' does? Same model of ten classes, same images, side by side.

    pip install torchattacks     in an environment of its own; it is no dependency of the package
    python benchmarks/parity/jsma.py --case package.module:function [--count 16] [--steps 56]

Both differentiate the logits, raise pairs of elements and head for the class after the label, as
torchattacks does on its own. It takes one image at a time and D^2 numbers for the pairs, so images
must be small; where no pair fits it goes on with the first element, and it leaves values of 0.99
and above alone. Where ours needs more elements by over 5 %, or fools fewer, the script fails.
"""

import math
import sys
import time
from pathlib import Path

import torch
import torchattacks
from torch import Tensor, nn

from pinprick import Classifier, run_attack
from pinprick.attacks import JSMA

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case


class AsModule(nn.Module):
    """A model as torchattacks wants it, with its preprocessing inside."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model
        self.place = nn.Parameter(torch.empty(0, device=model.device))  # shows the device

    def forward(self, images: Tensor) -> Tensor:
        return self.model(images)


def main() -> int:
    options = case_parser(__doc__, count=16, steps=56).parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    targets = (labels + 1) % 10
    attack = JSMA(output="logits", steps=options.steps)
    ours = run_attack(attack, model, images, labels, targets=targets)
    with model.frozen():
        share = 2 * options.steps / images[0].numel()
        theirs = torchattacks.JSMA(AsModule(model), theta=1.0, gamma=share)
        start = time.perf_counter()
        adv = theirs(images, labels)
        seconds = time.perf_counter() - start
        with torch.no_grad():
            fooled = model(adv).argmax(dim=1) == targets
    counts = ours.needed_elements, (adv != images).flatten(1).sum(dim=1).double()

    print(f"{model.name}, {len(images)} images, {options.steps} steps")
    rows = (
        ("ours", ours.success, counts[0], ours.seconds),
        ("torchattacks", fooled, counts[1].masked_fill(~fooled, math.inf), seconds),
    )
    for name, success, count, spent in rows:
        rate, mean = success.double().mean(), count[success].mean()
        print(f"{name:12} fooled {rate:.1%}  mean {mean:.2f} elements  {spent:.2f} s")
    both = ours.success & fooled
    mine, other = (count[both].mean().item() for count in counts)
    print(f"where both fooled: {mine:.2f} and {other:.2f} elements")
    return int(mine > 1.05 * other or int(ours.success.sum()) < int(fooled.sum()))


if __name__ == "__main__":
    sys.exit(main())
