"""Small trained ReLU networks with images whose fewest units are proved, as part of the package.

An oracle that is not linear. Each network is one file in ``optima/`` with its weights, images,
labels, targets, and per case the fewest units with an image that needs no more. Loading judges
every such image by the network again, so a wrong upper bound is not loaded. That no image with
fewer units fools was proved by ``pinprick.bounds.exact`` when benchmarks/known_optima.py made the
files.

The digits are from the Optical Recognition of Handwritten Digits set of UCI (Alpaydin, Kaynak,
CC BY 4.0), as scikit-learn has it. Images of Fashion-MNIST are those of ``fashion_sample``.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from pinprick.bounds.proof import Judge, Proof
from pinprick.errors import BadInput, UnknownName
from pinprick.files import atomic_write
from pinprick.goal import Goal
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier
from pinprick.parts.units import Units
from pinprick.types import Images, PerImage

FOLDER = Path(__file__).parent / "optima"


@dataclass(frozen=True, eq=False)
class KnownOptima:
    """A network, images, a goal, and the fewest units that meet it.

    Attributes:
        name: Network, goal and unit, as in "digits/untargeted/elements".
        model: The network.
        images: The clean images, all classified correctly.
        goal: The goal.
        unit: What is counted.
        fewest: The proved optimum of each image.
        adversarial: An image that needs no more, per image.
    """

    name: str
    model: Classifier
    images: Images
    goal: Goal
    unit: Unit
    fewest: PerImage
    adversarial: Images

    def first(self, count: int) -> "KnownOptima":
        """The same for the first images."""
        return replace(
            self,
            images=self.images[:count],
            goal=self.goal[slice(count)],
            fewest=self.fewest[:count],
            adversarial=self.adversarial[:count],
        )


def known_names(folder: Path = FOLDER) -> list[str]:
    """All cases, in alphabetical order."""
    return sorted(
        f"{path.stem}/{goal}/{unit}"
        for path in folder.glob("*.safetensors")
        for goal, unit in _read(path)[1]["cases"]
    )


def known_optima(name: str, folder: Path = FOLDER) -> KnownOptima:
    """The case of this name; ``BadInput`` where an image of the file does not show its optimum."""
    if name not in known_names(folder):
        raise UnknownName("case of known optima", name, known_names(folder))
    network, goal_name, unit = name.split("/")
    tensors, about = _read(folder / f"{network}.safetensors")
    images = tensors["images"].float() / 255
    goal = Goal(tensors["labels"].long())
    if goal_name == "targeted":
        goal = Goal(goal.labels, tensors["targets"].long())
    prefix = f"{goal_name}/{unit}"
    fewest = tensors[f"{prefix}/fewest"].double()
    adversarial = images.flatten(1).clone()
    adversarial[tensors[f"{prefix}/rows"].long(), tensors[f"{prefix}/places"].long()] = tensors[
        f"{prefix}/values"
    ]
    known = KnownOptima(
        name=name,
        model=Classifier(_network(about["widths"], tensors), name=f"known optima, {network}"),
        images=images,
        goal=goal,
        unit=check_unit(unit),
        fewest=fewest,
        adversarial=adversarial.view_as(images),
    )
    _check(known)
    return known


def save_known(
    path: Path,
    net: nn.Sequential,
    widths: list[int],
    proofs: dict[tuple[str, Unit], Proof],
    about: dict[str, Any],
) -> None:
    """Write a network with the proofs of its cases, which are of the same images.

    Args:
        path: The file.
        net: The network, whose weights float16 can hold.
        widths: Inputs, hidden units of each layer, classes.
        proofs: By goal and unit, a proof without gaps.
        about: How it was made.
    """
    first = next(iter(proofs.values()))
    tensors = {f"net.{key}": value.half() for key, value in net.state_dict().items()}
    tensors |= {
        "images": (first.images * 255).round().to(torch.uint8),
        "labels": first.goal.labels.to(torch.uint8),
    }
    for (goal, unit), proof in proofs.items():
        if not proof.proved.all():
            raise BadInput(f"the proof of {goal}/{unit} has gaps; leave those images out")
        if proof.goal.targets is not None:
            tensors["targets"] = proof.goal.targets.to(torch.uint8)
        changed = (proof.adversarial != proof.images).flatten(1)
        rows, places = changed.nonzero(as_tuple=True)
        prefix = f"{goal}/{unit}"
        tensors |= {
            f"{prefix}/fewest": proof.lower.to(torch.int16),
            f"{prefix}/rows": rows.to(torch.int16),
            f"{prefix}/places": places.to(torch.int16),
            f"{prefix}/values": proof.adversarial.flatten(1)[changed].float(),
        }
    header = {"widths": widths, "cases": [list(case) for case in proofs], **about}
    with atomic_write(path) as place:
        save_file(tensors, place, metadata={"known optima": json.dumps(header)})


@cache
def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return tensors, json.loads(file.metadata()["known optima"])


def _network(widths: list[int], tensors: dict[str, Tensor]) -> nn.Sequential:
    net = fully_connected(widths)
    weights = {
        key.removeprefix("net."): value.float()
        for key, value in tensors.items()
        if key.startswith("net.")
    }
    net.load_state_dict(weights)
    return net.eval()


def fully_connected(widths: list[int]) -> nn.Sequential:
    """A network with ReLUs between linear layers of these widths."""
    layers: list[nn.Module] = [nn.Flatten()]
    for inside, outside in pairwise(widths):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _check(known: KnownOptima) -> None:
    """Raise ``BadInput`` unless every stored image fools with as many units as are claimed."""
    judge = Judge(known.model)
    changed = Units(known.unit).changed(known.adversarial, known.images).sum(dim=1)
    inside = ((known.adversarial >= 0) & (known.adversarial <= 1)).flatten(1).all(dim=1)
    good = judge.fools(known.adversarial, known.goal) & inside & (changed == known.fewest)
    good &= ~judge.fools(known.images, known.goal)
    if not good.all():
        row = int((~good).nonzero()[0])
        raise BadInput(f"image {row} of {known.name} does not show the optimum that is claimed")
