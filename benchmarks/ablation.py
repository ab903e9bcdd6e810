"""What each part of Pinprick brings: the attack with one part left out at a time.

    python benchmarks/ablation.py --model efficientnet_lite0 --data PHOTOS

The parts are taken out of the list of stages from outside, since the attack itself has no
settings for what is only ever worse. ``--data`` is as in ``sparsity.py``.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch
from sparsity import read_data, right_ones

from pinprick import load_model, run_attack
from pinprick.attacks import pinprick

Plan = Callable[[bool], Iterator[pinprick._Stage]]


def whole(aimed: bool) -> Iterator[pinprick._Stage]:
    return WHOLE(aimed=aimed)


def without_annealing(aimed: bool) -> Iterator[pinprick._Stage]:
    return (stage for stage in whole(aimed) if stage.kind != "anneal")


def without_aims(aimed: bool) -> Iterator[pinprick._Stage]:
    return whole(False)


def without_draws(aimed: bool) -> Iterator[pinprick._Stage]:
    return (replace(stage, temperature=0.0) for stage in whole(aimed))


def annealing_alone(aimed: bool) -> Iterator[pinprick._Stage]:
    return (stage for stage in whole(aimed) if stage.kind == "anneal")


WHOLE = pinprick._plan
PARTS: dict[str, tuple[Plan, int | None]] = {  # the stages, and the length of a trim if not its own
    "whole": (whole, None),
    "without trims": (whole, 0),
    "without annealing": (without_annealing, None),
    "without aims": (without_aims, None),
    "without draws": (without_draws, None),
    "annealing and trims alone": (annealing_alone, None),
}


class Untrimmed(pinprick._Search):
    """A search whose stages are not followed by a trim."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.trimming = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    model = load_model(options.model)
    assert isinstance(model.net, torch.nn.Module)
    model.net.to(options.device)
    images, labels = read_data(options.data, model)
    images, labels, _ = right_ones(model, images, labels, options.skip, options.images)
    for name, (plan, trims) in PARTS.items():
        search = pinprick._Search if trims is None else Untrimmed
        with (
            patch.object(pinprick, "_plan", lambda aimed, plan=plan: plan(aimed)),
            patch.object(pinprick, "_Search", search),
        ):
            result = run_attack(pinprick.Pinprick(), model, images, labels)
        print(
            f"{options.model} {name:26} fooled {result.fooling_rate:.1%}, "
            f"mean {result.needed_elements.mean().item():.2f} elements",
            flush=True,
        )


if __name__ == "__main__":
    main()
