"""Does our C&W L2 do what adv-lib's does? Same model, same images, same settings, side by side.

    pip install adv-lib     in an environment of its own; it is no dependency of the package
    python benchmarks/parity/cw_l2.py --case package.module:function [--count 32] [--steps 200]
        [--searches 5] [--lr 0.05] [--weight 0.1] [--device cuda]

adv-lib leaves a search when the loss of the whole batch stands still, ours image by image, so both
are run to the end. The script fails where ours fools fewer images, or where the mean distance over
the images that both fooled is more than 5 % above adv-lib's.
"""

import sys
from pathlib import Path

from adv_lib.attacks import carlini_wagner_l2

from pinprick import run_attack
from pinprick.attacks import CWL2

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case


def main() -> int:
    parser = case_parser(__doc__, count=32, steps=200)
    parser.add_argument("--searches", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--weight", type=float, default=0.1)
    options = parser.parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    attack = CWL2(
        steps=options.steps,
        searches=options.searches,
        lr=options.lr,
        weight=options.weight,
        stop_early=False,
    )
    ours = run_attack(attack, model, images, labels)
    with model.frozen():
        adv = carlini_wagner_l2(
            model,
            images,
            labels,
            learning_rate=options.lr,
            initial_const=options.weight,
            binary_search_steps=options.searches,
            max_iterations=options.steps,
            abort_early=False,
        )
        fooled = model(adv).argmax(dim=1) != labels
    lengths = (adv - images).flatten(1).norm(dim=1)
    both = ours.success & fooled
    print(f"{model.name}, {len(images)} images, {options.searches} x {options.steps} steps")
    for name, success, length in (("ours", ours.success, ours.l2), ("adv-lib", fooled, lengths)):
        print(f"{name:8} fooled {success.double().mean():.1%}  mean l2 {length[both].mean():.4f}")
    worse = ours.l2[both].mean() > 1.05 * lengths[both].mean()
    return int(bool(worse) or int(ours.success.sum()) < int(fooled.sum()))


if __name__ == "__main__":
    sys.exit(main())
