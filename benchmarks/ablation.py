"""What each part of Pinprick brings: the attack with one part left out at a time.

    python benchmarks/ablation.py --model efficientnet_lite0 --data PHOTOS

The parts are taken out of the list of stages from outside, since the attack itself has no
settings for what is only ever worse. At 224 px the balanced effort ends before any annealing, aim
or draw: take ``--effort thorough`` there. ``--data`` is as in ``sparsity.py``.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from sparsity import read_data, right_ones

from pinprick import load_model, run_attack
from pinprick.attacks.pinprick import attack as pinprick
from pinprick.attacks.pinprick.plan import Stage, stages

Plan = Callable[..., Iterator[Stage]]


def without_trims(units: int, *, targeted: bool) -> Iterator[Stage]:
    return (replace(stage, trim=0) for stage in stages(units, targeted=targeted))


def without_annealing(units: int, *, targeted: bool) -> Iterator[Stage]:
    return (stage for stage in stages(units, targeted=targeted) if stage.kind != "anneal")


def without_aims(units: int, *, targeted: bool) -> Iterator[Stage]:
    plan = stages(units, targeted=targeted)
    return (replace(stage, aim=None) for stage in plan if stage.kind != "rank")


def without_draws(units: int, *, targeted: bool) -> Iterator[Stage]:
    return (replace(stage, temperature=0.0) for stage in stages(units, targeted=targeted))


def annealing_alone(units: int, *, targeted: bool) -> Iterator[Stage]:
    return (stage for stage in stages(units, targeted=targeted) if stage.kind == "anneal")


PARTS: dict[str, Plan] = {
    "whole": stages,
    "without trims": without_trims,
    "without annealing": without_annealing,
    "without aims": without_aims,
    "without draws": without_draws,
    "annealing and trims alone": annealing_alone,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--effort", default="balanced", choices=list(pinprick.EFFORTS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    model = load_model(options.model)
    assert isinstance(model.net, torch.nn.Module)
    model.net.to(options.device)
    images, labels = read_data(options.data, model)
    images, labels, _ = right_ones(model, images, labels, options.skip, options.images)
    for name, plan in PARTS.items():
        with patch.object(pinprick, "stages", plan):
            result = run_attack(pinprick.Pinprick(effort=options.effort), model, images, labels)
        print(
            f"{options.model} {name:26} fooled {result.fooling_rate:.1%}, "
            f"mean {result.needed_elements.mean().item():.2f} elements",
            flush=True,
        )


if __name__ == "__main__":
    main()
