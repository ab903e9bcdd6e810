"""Does our σ-zero do what adv-lib's does? Same model, same images, side by side.

    pip install adv-lib     in an environment of its own; it is no dependency of the package
    python benchmarks/parity/sigma_zero.py --case package.module:function [--count 64]
        [--steps 100] [--device cuda]

The two differ in rounding and in the learning rate, which in adv-lib follows the schedule one step
late, so single images may end elsewhere. What must agree is the mean: the paired difference of the
counts is printed in units of its own standard error, and above 3 the script fails.
"""

import math
import sys
from pathlib import Path

import torch
from adv_lib.attacks.sigma_zero import sigma_zero

from pinprick import run_attack
from pinprick.attacks import SigmaZero

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case


def main() -> int:
    options = case_parser(__doc__, count=64, steps=100).parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    ours = run_attack(SigmaZero(steps=options.steps), model, images, labels)
    with model.frozen():
        adv = sigma_zero(model, images, labels, num_steps=options.steps)
        with torch.no_grad():
            fooled = model(adv).argmax(dim=1) != labels
    theirs = (adv != images).flatten(1).sum(dim=1).double()

    print(f"{model.name}, {len(images)} images, {options.steps} steps")
    for name, success, count in (
        ("ours", ours.success, ours.needed_elements),
        ("adv-lib", fooled, theirs.masked_fill(~fooled, math.inf)),
    ):
        rate, mean, median = success.double().mean(), count.mean(), count.median()
        print(f"{name:8} fooled {rate:.1%}  mean {mean:.3f}  median {median:.1f} elements")
    both = ours.success & fooled
    difference = (ours.needed_elements.double() - theirs)[both]
    error = difference.std() / math.sqrt(len(difference))
    sigmas = abs(difference.mean() / error).item() if error > 0 else 0.0
    print(f"difference {difference.mean():+.3f} with standard error {error:.3f}: {sigmas:.1f}")
    return int(sigmas > 3 or not torch.equal(ours.success, fooled))


if __name__ == "__main__":
    sys.exit(main())
