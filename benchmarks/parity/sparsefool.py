"""Does our SparseFool do what its authors describe? One image at a time here, side by side.

    python benchmarks/parity/sparsefool.py --case package.module:function [--count 32] [--steps 20]

Beside ours stands the method as published, written down plainly: DeepFool from ``x_i`` without a
box, ten classes, at most 50 steps; the plane through ``x_i + lambda * r``; a solver that moves one
element after another; until the overshot image has another label. It works on plain pixel values,
as ours does, where the authors work on normalised ones. Where DeepFool finds no other class, or the
plane lies behind the image, the published method stops making sense, and the image counts as
failed. Where ours needs more elements by over 5 %, or fools fewer, the script fails.
"""

import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import SparseFool

sys.path.insert(0, str(Path(__file__).parent.parent))
from case import case_parser, read_case

CLASSES, DEEPFOOL_STEPS, OVERSHOOT = 10, 50, 0.02


def published(model: Classifier, image: Tensor, label: int, lam: float, steps: int) -> Tensor:
    """The adversarial image, or the clean one where the method fails."""
    x = image
    for _ in range(steps):
        way, reached = deepfool(model, x, label)
        if reached == label:
            return image
        normal = slope(model, x + way, reached, label)
        size = normal.norm()
        if size == 0:
            return image
        moved = solve(x, normal / size, x + lam * way)
        if moved is None:
            return image
        x = moved
        candidate = (image + (1 + OVERSHOOT) * (x - image)).clamp(0, 1)
        if guess(model, candidate) != label:
            return candidate
    return image


def deepfool(model: Classifier, start: Tensor, label: int) -> tuple[Tensor, int]:
    """The way to the boundary, and the class behind it; the label itself if none was reached."""
    way = torch.zeros_like(start)
    with torch.no_grad():
        ranked = model(start[None])[0].argsort(descending=True)[:CLASSES].tolist()
    for _ in range(DEEPFOOL_STEPS):
        x = (start + way).requires_grad_()
        logits = model(x[None])[0]
        best, step = torch.inf, way
        for rival in (one for one in ranked if one != label):
            lead = logits[rival] - logits[label]
            (grad,) = torch.autograd.grad(lead, x, retain_graph=True)
            length = float(lead.detach().abs() / grad.norm().clamp_min(1e-12))
            if length < best:
                best, step = length, max(length, 1e-4) * grad / grad.norm().clamp_min(1e-12)
        way = way + step
        reached = guess(model, start + (1 + OVERSHOOT) * way)
        if reached != label:
            return way, reached
    return way, label


def solve(x: Tensor, normal: Tensor, on_plane: Tensor) -> Tensor | None:
    """To the plane by one element after another; None where it lies behind."""
    flat, weight = x.flatten().clone(), normal.flatten()
    gap = float(weight @ (flat - on_plane.flatten()))
    if gap >= 0:
        return None
    for place in weight.abs().argsort(descending=True).tolist():
        length = max(abs(gap - 0.001) / float(weight[place].abs().clamp_min(1e-12)), 1e-4)
        flat[place] = (flat[place] + length * weight[place].sign()).clamp(0, 1)
        gap = float(weight @ (flat - on_plane.flatten()))
        if gap >= 0:
            break
    return flat.view_as(x)


def slope(model: Classifier, x: Tensor, reached: int, label: int) -> Tensor:
    x = x.detach().requires_grad_()
    logits = model(x[None])[0]
    return torch.autograd.grad(logits[reached] - logits[label], x)[0]


def guess(model: Classifier, x: Tensor) -> int:
    with torch.no_grad():
        return int(model(x[None]).argmax())


def main() -> int:
    options = case_parser(__doc__, count=32, steps=20).parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    print(f"{model.name}, {len(images)} images, at most {options.steps} rounds")
    fine = True
    for lam in (1.0, 3.0):
        ours = run_attack(SparseFool(lam=lam, steps=options.steps), model, images, labels)
        start = time.perf_counter()
        with model.frozen():
            pairs = zip(images, labels.tolist(), strict=True)
            adv = torch.stack([published(model, *pair, lam, options.steps) for pair in pairs])
        seconds = time.perf_counter() - start
        changed = (adv != images).flatten(1).sum(dim=1).double()
        both = ours.success & (changed > 0)
        mine, theirs = ours.l0_elements[both].double().mean(), changed[both].mean()
        print(
            f"lambda {lam:g}: fooled {ours.fooling_rate:.1%} ours, "
            f"{(changed > 0).double().mean():.1%} as published; mean elements where both do "
            f"{mine:.2f} and {theirs:.2f}; {ours.seconds:.2f} s and {seconds:.2f} s",
            flush=True,
        )
        fine &= bool(mine <= 1.05 * theirs) and ours.success.sum() >= (changed > 0).sum()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
