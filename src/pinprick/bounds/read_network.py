"""A ReLU network as affine maps in float64, read from its modules.

    h_0 = image,  h_k = max(0, W_k h_(k-1) + b_k),  logits = W_n h_(n-1) + b_n

Modules that follow each other without a ReLU in between become one map. Mean and std of the
classifier are part of the first one. A map is computed from what its modules give for zero and for
each unit vector, so every affine module goes: convolutions, average pooling, batch norm in
evaluation mode.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pinprick.errors import BadInput, one_line
from pinprick.model import Classifier, gives
from pinprick.types import Images

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]

MOST_ELEMENTS = 4096  # most elements of an image
MOST_RELUS = 1024  # most ReLUs of a network

_AFFINE = (
    nn.Linear,
    nn.Conv2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.Flatten,
    nn.Unflatten,
    nn.Identity,
    nn.Dropout,
    nn.Dropout2d,
)
_AT_ONCE = 512  # unit vectors per forward pass
_PROBES = 8  # random images on which the maps are compared with the network
_APART = 1e-9  # largest difference of their logits, as a share of the largest logit


@dataclass(frozen=True)
class AffineMap:
    """``weight @ h + bias``."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class ReluNetwork:
    """Affine maps with a ReLU after each but the last.

    Attributes:
        maps: The maps, from the image to the logits.
        name: Name of the model.
    """

    maps: tuple[AffineMap, ...]
    name: str

    @property
    def relus(self) -> int:
        """How many ReLUs there are."""
        return sum(len(each.bias) for each in self.maps[:-1])

    def logits(self, images: Floats) -> Floats:
        """The logits of flat images, one per row."""
        hidden = images
        for each in self.maps[:-1]:
            hidden = np.maximum(hidden @ each.weight.T + each.bias, 0)
        last = self.maps[-1]
        answer: Floats = hidden @ last.weight.T + last.bias
        return answer


def double_copy(model: Classifier) -> Classifier:
    """The model with a copy of its network in float64, on the CPU."""
    if not isinstance(model.net, nn.Module) or not gives(model.access, "network"):
        raise BadInput(
            f"{model.name} gives {model.access} and has no network inside; a proof needs a network "
            "of affine layers and ReLUs"
        )
    net = copy.deepcopy(model.net).cpu().double().eval()
    for weight in (*net.parameters(), *net.buffers()):
        if weight.is_floating_point() and not weight.isfinite().all():
            raise BadInput(
                f"{model.name} has weights that are not finite, so nothing can be proved"
            )
    return Classifier(net.requires_grad_(False), mean=model.mean, std=model.std, name=model.name)


def read_network(
    model: Classifier,
    images: Images,
    *,
    most_relus: int = MOST_RELUS,
    reader: str = "the integer program",
) -> ReluNetwork:
    """The network of ``model`` for images like these; ``BadInput`` where it is of another kind.

    Args:
        model: The model.
        images: Images of the shape that it takes.
        most_relus: A network with more ReLUs is refused.
        reader: What the limits are of, for messages.
    """
    elements = images.shape[1:].numel()
    if elements > MOST_ELEMENTS:
        raise BadInput(
            f"{reader} takes images of at most {MOST_ELEMENTS} elements, these have {elements}"
        )
    double = double_copy(model)
    zero = torch.zeros((1, *images.shape[1:]), dtype=torch.float64)
    maps: list[AffineMap] = []
    relus = 0
    for part in _parts(double):
        try:
            each, zero = _affine(part, zero)
        except RuntimeError as error:
            size = tuple(images.shape[1:])
            raise BadInput(
                f"{model.name} does not take images of {size}: {one_line(error)}"
            ) from None
        maps.append(each)
        relus += len(each.bias)
        if relus - len(maps[-1].bias) > most_relus:
            break
    network = ReluNetwork(tuple(maps), model.name)
    if network.relus > most_relus:
        raise BadInput(
            f"{reader} takes at most {most_relus} ReLUs, {model.name} has at least "
            f"{network.relus}; prove a smaller network"
        )
    _compare(network, double, images)
    return network


def _parts(model: Classifier) -> Iterator[nn.Sequential]:
    """The modules between ReLUs; the first part normalises the images."""
    part: list[nn.Module] = [_Normalise(model)]
    assert isinstance(model.net, nn.Module)
    for module in _flat(model.net, model.name):
        if isinstance(module, nn.ReLU):
            yield nn.Sequential(*part)
            part = []
        else:
            part.append(module)
    yield nn.Sequential(*part)


def _flat(module: nn.Module, name: str) -> Iterator[nn.Module]:
    if type(module) is nn.Sequential:
        for inner in module:
            yield from _flat(inner, name)
    elif isinstance(module, (nn.ReLU, *_AFFINE)):
        yield module
    else:
        raise BadInput(
            f"a proof needs an nn.Sequential of affine layers and ReLUs; {name} holds "
            f"{type(module).__name__}"
        )


class _Normalise(nn.Module):
    """The preprocessing of a classifier as a module."""

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.normalise = model.normalise

    def forward(self, images: Tensor) -> Tensor:
        return self.normalise(images)


def _affine(part: nn.Sequential, zero: Tensor) -> tuple[AffineMap, Tensor]:
    """The part as a map, and a zero of the shape that it gives."""
    with torch.no_grad():
        bias = part(zero)
        columns = []
        for rows in torch.arange(zero.numel()).split(_AT_ONCE):
            units = zero.new_zeros(len(rows), zero.numel())
            units[torch.arange(len(rows)), rows] = 1.0
            columns.append((part(units.view(-1, *zero.shape[1:])) - bias).flatten(1))
    weight = torch.cat(columns).T.contiguous().numpy()
    return AffineMap(weight, bias.flatten().numpy()), torch.zeros_like(bias)


def _compare(network: ReluNetwork, double: Classifier, images: Images) -> None:
    """Raise ``BadInput`` where the maps give other logits than the network itself."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand((_PROBES, *images.shape[1:]), generator=generator, dtype=torch.float64)
    probes = torch.cat((images[:_PROBES].detach().cpu().double(), noise))
    with torch.no_grad():
        said = double(probes)
    if said.ndim != 2:
        raise BadInput(
            f"{network.name} must give one row of logits per image, got {said.ndim} axes"
        )
    apart = np.abs(network.logits(probes.flatten(1).numpy()) - said.numpy()).max()
    if not apart <= _APART * max(1.0, float(said.abs().max())):
        raise BadInput(
            f"{network.name} does not compute what its modules say: logits differ by {apart:.2g}; "
            "a proof needs an nn.Sequential of affine layers and ReLUs"
        )
