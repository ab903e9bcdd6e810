"""WI-FGSM's step scale: one rule for every image size and radius, against constants.

    python benchmarks/wifgsm_scale.py --case package.module:function [--count 32]
        [--device cuda] [--preset cifar10] [--targeted] [--sweep eps scale lam tau] [--sigma 1000]

Sweeps one setting at a time, the others at the preset's values, and prints one line for each: share
of images fooled, mean and median elements needed by those, passes and seconds. ``scale`` puts the
constants beside the rule; ``lam`` is run at tau = 0.30, both as the text has it (a weight on the
count) and as the authors' code does (a weight on the loss: its inverse). With ``--sigma`` the last
line is σ-zero of so many steps.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import torch
from case import read_case
from torch import Tensor

from pinprick import Attack, Classifier, least_likely, run_attack
from pinprick.attacks import IFGSM, WIFGSM, SigmaZero

RADII = {"4/255": 4 / 255, "6/255": 6 / 255, "8/255": 8 / 255, "0.3": 0.3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", help="package.module:function giving model, images, labels")
    parser.add_argument("--count", type=int, default=32, help="images")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--preset", choices=("mnist", "cifar10", "imagenet"), default="cifar10")
    parser.add_argument("--targeted", action="store_true", help="head for the least likely class")
    parser.add_argument("--sweep", nargs="*", choices=tuple(SWEEPS), default=list(SWEEPS))
    parser.add_argument("--sigma", type=int, help="steps of σ-zero, to compare with")
    options = parser.parse_args()

    model, images, labels = read_case(options.case, options.device, options.count)
    targets = None
    if options.targeted:
        with torch.no_grad(), model.frozen():
            targets = least_likely(model(images), labels)
    base: WIFGSM = getattr(WIFGSM, options.preset)()
    goal = "least likely target" if options.targeted else "untargeted"
    print(f"{model.name}, {len(images)} images of {images.shape[2]} px, {goal}, {options.preset}")
    measure("default", base, model, images, labels, targets)
    for name in options.sweep:
        for title, attack in SWEEPS[name](base):
            measure(title, attack, model, images, labels, targets)
    if options.sigma:
        attack = SigmaZero(steps=options.sigma)
        measure(f"σ-zero {options.sigma}", attack, model, images, labels, targets)


def radii(base: WIFGSM) -> Iterator[tuple[str, WIFGSM]]:
    for name, eps in RADII.items():
        for title, scale in (("rule", None), ("1e5", 1e5)):
            start = IFGSM(eps=eps, step_size=eps / 4)
            yield f"eps {name}, {title}", replace(base, start=start, loss_scale=scale)


def scales(base: WIFGSM) -> Iterator[tuple[str, WIFGSM]]:
    for scale in (1.0, 1e3, 1e4, 1e5, 1e6):
        yield f"scale {scale:g}", replace(base, loss_scale=scale)
    for scale in (1e4, 1e5, 1e6):
        yield (
            f"printed, scale {scale:g}",
            WIFGSM.printed(steps=base.steps, lam=base.lam, loss_scale=scale),
        )
    yield "rule, symmetric box", replace(base, box="symmetric")
    yield "rule, gates unbounded", replace(base, bounded=False)


def weights(base: WIFGSM) -> Iterator[tuple[str, WIFGSM]]:
    for lam in (0.0, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1):
        inverse = f"{1 / lam:g}" if lam else "inf"
        yield f"lam {lam:g}, on CE {inverse}", replace(base, lam=lam, tau=0.30)


def shrinkings(base: WIFGSM) -> Iterator[tuple[str, WIFGSM]]:
    for tau in (0.1, 0.2, 0.3, 0.4, 0.5):
        yield f"tau {tau:g}", replace(base, tau=tau)


SWEEPS = {"eps": radii, "scale": scales, "lam": weights, "tau": shrinkings}


def measure(
    title: str,
    attack: Attack,
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    targets: Tensor | None,
) -> None:
    result = run_attack(attack, model, images, labels, targets=targets)
    needed = result.needed_elements[result.success]
    mean = needed.mean().item() if len(needed) else float("nan")
    median = needed.median().item() if len(needed) else float("nan")
    print(
        f"{title:28} fooled {result.success.double().mean():6.1%}  mean {mean:8.1f}  "
        f"median {median:6.0f}  passes {result.forwards.double().mean():5.0f} "
        f"{result.backwards.double().mean():5.0f}  {result.seconds:7.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
