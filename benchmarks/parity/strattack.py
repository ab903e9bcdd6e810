"""Does our StrAttack do what adv-lib's does? Same model, same images, same settings, side by side.

    pip install adv-lib     in an environment of its own; it is no dependency of the package
    python benchmarks/parity/strattack.py --case package.module:function [--count 32]
        [--steps 200] [--searches 4] [--group 2] [--plain] [--device cuda]

adv-lib draws the line below which changes are put back for the whole batch at once, ours for each
image, and the steps of its refinement shrink the change; ``--plain`` leaves the refinement out of
both, and then the two are the same but for rounding. The script fails where ours fools fewer
images, or where the mean of the elements or of the distance over the images that both fooled is
more than 5 % above adv-lib's.
"""

import sys
from pathlib import Path

import torch
from adv_lib.attacks import str_attack

from pinprick import run_attack
from pinprick.attacks import StrAttack

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case


def main() -> int:
    parser = case_parser(__doc__, count=32, steps=200)
    parser.add_argument("--searches", type=int, default=4)
    parser.add_argument("--group", type=int, default=2)
    parser.add_argument("--plain", action="store_true", help="without the refinement")
    options = parser.parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    attack = StrAttack(
        steps=options.steps,
        more_steps=0,
        searches=options.searches,
        group=options.group,
        rho=1.0,
        tau=2.0,
        gamma=1.0,
        refine_weight=1.0,
        keep="l2",
        refine_searches=0 if options.plain else 8,
        eps=1.0,
    )
    ours = run_attack(attack, model, images, labels)
    with model.frozen():
        adv = str_attack(
            model,
            images,
            labels,
            binary_search_steps=options.searches,
            max_iterations=options.steps,
            group_size=options.group,
            stride=options.group,
            retrain=not options.plain,
        )
        with torch.no_grad():
            fooled = model(adv).argmax(dim=1) != labels
    count = (adv != images).flatten(1).sum(dim=1).double()
    length = (adv - images).flatten(1).norm(dim=1)
    both = ours.success & fooled
    print(f"{model.name}, {len(images)} images, {options.searches} x {options.steps} steps")
    for name, success, elements, l2 in (
        ("ours", ours.success, ours.l0_elements.double(), ours.l2),
        ("adv-lib", fooled, count, length),
    ):
        rate, mean = success.double().mean(), elements[both].mean()
        print(f"{name:8} fooled {rate:.1%}  mean {mean:.2f} elements, l2 {l2[both].mean():.4f}")
    longer = ours.l2[both].mean() > 1.05 * length[both].mean()
    more = ours.l0_elements[both].double().mean() > 1.05 * count[both].mean()
    return int(bool(longer) or bool(more) or int(ours.success.sum()) < int(fooled.sum()))


if __name__ == "__main__":
    sys.exit(main())
