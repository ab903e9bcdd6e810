"""Does our FMN do what adv-lib's does? Same model, same images, side by side, in any norm.

    pip install adv-lib     in an environment of its own; it is no dependency of the package
    python benchmarks/parity/fmn.py --case package.module:function [--count 64] [--norm l0]
        [--steps 100] [--device cuda]

The two differ in rounding, in how many elements a projection keeps among equal ones, and until an
image fools, so single images may end elsewhere. The means must agree: where ours is above adv-lib's
by more than 5 % and by more than 3 standard errors of the paired difference, or fools fewer images,
the script fails.
"""

import math
import sys
import time
from pathlib import Path

from adv_lib.attacks import fmn

from pinprick import run_attack
from pinprick.attacks import FMN

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case

ORDERS = {"l0": 0, "l1": 1, "l2": 2, "linf": math.inf}


def main() -> int:
    parser = case_parser(__doc__, count=64, steps=100)
    parser.add_argument("--norm", choices=ORDERS, default="l0")
    options = parser.parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    attack = FMN(norm=options.norm, steps=options.steps)
    run_attack(FMN(norm=options.norm, steps=2), model, images, labels)  # warm up
    ours = run_attack(attack, model, images, labels)
    with model.frozen():
        start = time.perf_counter()
        adv = fmn(model, images, labels, norm=ORDERS[options.norm], steps=options.steps)
        fooled = model(adv).argmax(dim=1).ne(labels).cpu()
        seconds = time.perf_counter() - start
    order = ORDERS[options.norm]
    sizes = [
        (a.cpu() - images.cpu()).flatten(1).norm(p=order, dim=1) for a in (ours.adversarial, adv)
    ]

    print(f"{model.name}, {options.norm}, {len(images)} images, {options.steps} steps")
    rows = (
        ("ours", ours.success.cpu(), sizes[0], ours.seconds),
        ("adv-lib", fooled, sizes[1], seconds),
    )
    for name, success, size, spent in rows:
        rate, mean, median = success.double().mean(), size[success].mean(), size[success].median()
        print(f"{name:8} fooled {rate:.1%}  mean {mean:.4f}  median {median:.4f}  {spent:.1f} s")
    both = ours.success.cpu() & fooled
    difference = (sizes[0] - sizes[1])[both].double()
    error = (difference.std() / math.sqrt(len(difference))).item()
    mean = difference.mean().item()
    print(f"difference {mean:+.4f} with standard error {error:.4f}")
    worse = mean > 0.05 * sizes[1][both].mean() and mean > 3 * error
    return int(worse or int(ours.success.sum()) < int(fooled.sum()))


if __name__ == "__main__":
    sys.exit(main())
