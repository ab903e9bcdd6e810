"""Does our HopSkipJump do what Foolbox's does? Same model, images and steps, side by side.

    pip install foolbox     in an environment of its own; it is no dependency of the package
    python benchmarks/parity/hopskipjump.py --case package.module:function [--norm linf]

Both start at the same images, which fool: what our attack finds in a few queries. Foolbox is asked
for as many steps as ours; how often it asks the model is counted. It takes one image at a time
here: in a batch it divides every gradient by the norm of all of them together, which makes its l2
steps shorter the more images there are (``--together`` shows by how much). Where ours ends more
than 5 % farther away in the mean, the script fails.
"""

import sys
import time
from pathlib import Path

import foolbox
import torch
from torch import Tensor, nn

from pinprick import Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import HopSkipJump
from pinprick.parts.starts import find_starts

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case


class AsModule(nn.Module):
    """A model as Foolbox wants it, which counts the images it is asked about."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model, self.asked = model, 0

    def forward(self, images: Tensor) -> Tensor:
        self.asked += len(images)
        return self.model(images)


def main() -> int:
    parser = case_parser(__doc__, count=16, steps=10)
    parser.add_argument("--norm", choices=("l2", "linf"), default="l2")
    parser.add_argument("--together", action="store_true", help="Foolbox with all in one batch")
    options = parser.parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    attack = HopSkipJump(norm=options.norm, steps=options.steps)
    ours = run_attack(attack, model, images, labels)
    goal, ids = Goal(labels), torch.arange(len(images), device=images.device)
    with model.frozen():
        problem = Problem(model, images, goal, Streams(0, ids))
        starts = find_starts(problem, attack._noise, tries=100, queries=100)
        counted = AsModule(model)
        victim = foolbox.PyTorchModel(counted.eval(), bounds=(0, 1), device=images.device)
        theirs = foolbox.attacks.HopSkipJumpAttack(
            steps=options.steps, constraint=options.norm, initial_gradient_eval_steps=100
        )
        start = time.perf_counter()
        parts = [slice(None)] if options.together else [slice(i, i + 1) for i in range(len(images))]
        adv = torch.cat(
            [
                theirs.run(
                    victim,
                    images[part],
                    foolbox.criteria.Misclassification(labels[part]),
                    starting_points=starts.images[part],
                )
                for part in parts
            ]
        )
        seconds = time.perf_counter() - start
        with torch.no_grad():
            fooled = goal.met(model(adv))
    change = (adv - images).flatten(1)
    far = change.norm(dim=1) if options.norm == "l2" else change.abs().amax(dim=1)
    near = ours.l2 if options.norm == "l2" else ours.linf

    print(f"{model.name}, {len(images)} images, {options.steps} steps, {options.norm}")
    rows = (
        ("ours", ours.success, near, ours.forwards.double().mean(), ours.seconds),
        ("foolbox", fooled, far, counted.asked / len(images), seconds),
    )
    for name, success, reach, asked, spent in rows:
        print(
            f"{name:8} fooled {success.double().mean():.1%}  median {reach[success].median():.4f}"
            f"  mean {reach[success].mean():.4f}  {asked:.0f} queries an image  {spent:.1f} s"
        )
    both = ours.success & fooled
    return int((near[both].mean() > 1.05 * far[both].mean()).item())


if __name__ == "__main__":
    sys.exit(main())
