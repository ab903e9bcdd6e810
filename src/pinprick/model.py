"""A network with its preprocessing: images in [0, 1] in, logits out.

Mean and std belong here, so that every attack sees the plain box [0, 1]. Resizing and cropping
belong to ``prepare``, which works on 8-bit pixels, so that a prepared photograph lies on the
8-bit grid and can be saved as a PNG without loss.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.subnormal import flushed
from pinprick.types import Images, Logits, Picture

Access = Literal["labels", "scores", "gradients", "network"]
ACCESS: tuple[Access, ...] = (
    "labels",
    "scores",
    "gradients",
    "network",
)  # each includes the ones before it

_DIGESTED = 8  # values of each weight that the digest of a network depends on


def gives(access: Access, wanted: Access) -> bool:
    """Whether ``access`` includes ``wanted``."""
    return ACCESS.index(access) >= ACCESS.index(wanted)


@runtime_checkable
class Model(Protocol):
    """Anything that maps images in [0, 1] to logits."""

    def __call__(self, images: Images, /) -> Logits: ...


class Classifier:
    """A network, or any function from images to scores, with its preprocessing and class names.

    Creating one changes nothing about the network. ``with model.frozen():`` puts it into evaluation
    mode and restores it.

    Attributes:
        net: The network; sees normalised images.
        mean, std: Subtracted and divided by, per channel, before the network is called.
        classes: Names of the classes, in the order of the logits; empty if unknown.
        size: Height and width that pictures are prepared to, or that they must have where
            ``prepare`` is not given; None for any size.
        access: What the model gives: "labels" (one-hot scores), "scores", "gradients", or
            "network" (inner features too).
        name: Name of the model in tables.
    """

    def __init__(
        self,
        net: Callable[[Tensor], Tensor],
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        classes: Sequence[str] = (),
        size: tuple[int, int] | None = None,
        prepare: Callable[[Image], Picture] | None = None,
        access: Access | None = None,
        name: str = "",
    ) -> None:
        _check_statistics(mean, std)
        self.net = net
        self.mean = None if mean is None else tuple(mean)
        self.std = None if std is None else tuple(std)
        self.classes = tuple(classes)
        self.size = size
        self.name = name or type(net).__name__
        self.access: Access = access or ("network" if isinstance(net, nn.Module) else "gradients")
        self._prepare = prepare
        self._statistics: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def __call__(self, images: Images) -> Logits:
        return self.net(self.normalise(images))

    def __repr__(self) -> str:
        return f"Classifier({self.name!r}, size={self.size}, access={self.access!r})"

    @property
    def device(self) -> torch.device | None:
        """Where the network's parameters are; None if it has none."""
        if not isinstance(self.net, nn.Module):
            return None
        return next((p.device for p in self.net.parameters()), None)

    @property
    def digest(self) -> str:
        """A short text that differs between networks with other weights; empty without a network.

        It is the SHA-256 of the shape and the first values of each weight, so wrappers around the
        network do not change it.
        """
        if not isinstance(self.net, nn.Module):
            return ""
        weights = [weight.detach().flatten() for weight in self.net.state_dict().values()]
        lengths = [len(weight) for weight in weights]
        starts = [weight[:_DIGESTED].to(torch.float64) for weight in weights]
        values = torch.cat(starts).cpu() if starts else torch.empty(0)
        return hashlib.sha256(repr(lengths).encode() + values.numpy().tobytes()).hexdigest()

    @property
    def sent(self) -> Any:
        """What was sent to a remote model so far, a ``Sent``; None for any other model."""
        return getattr(self.net, "sent", None)

    def normalise(self, images: Images) -> Images:
        """``images`` as the network gets them."""
        if self.mean is None and self.std is None:
            return images
        where = (images.device, images.dtype)
        if where not in self._statistics:  # kept, as copying them to a GPU each time makes it wait
            channels = len(self.mean or self.std or ())
            with torch.inference_mode(False):  # what is made in that mode stops later gradients
                mean, std = (
                    torch.tensor(values, device=where[0], dtype=where[1]).view(-1, 1, 1)
                    for values in (self.mean or (0.0,) * channels, self.std or (1.0,) * channels)
                )
            self._statistics[where] = mean, std
        mean, std = self._statistics[where]
        if images.shape[1] != len(mean) and len(mean) > 1:
            raise BadInput(
                f"images have {images.shape[1]} channels, but mean and std have {len(mean)} values"
            )
        return (images - mean) / std

    def prepare(self, picture: Image) -> Picture:
        """One picture prepared for this model: resized and cropped as 8-bit, then in [0, 1].

        Without ``prepare``, a picture that has the model's ``size`` is taken as it is.
        """
        if self._prepare is not None:
            return self._prepare(picture)
        if self.size is None:
            raise BadInput(
                f"{self.name} does not say how pictures are prepared; pass tensors, or give "
                "Classifier(size=...) for pictures of that size, or Classifier(prepare=...)"
            )
        height, width = self.size
        if picture.size != (width, height):
            raise BadInput(
                f"{self.name} takes pictures of {height} x {width} and does not say how others "
                f"are resized; give Classifier(prepare=cover_and_crop(({height}, {width}))) "
                "from pinprick.zoo.prepare"
            )
        if picture.mode not in ("RGB", "L"):
            raise BadInput(
                f"pictures must be RGB or L, got {picture.mode}; "
                "as_rgb of pinprick.data.pictures converts them"
            )
        return in_unit_box(picture.convert("L" if self._is_grey else "RGB"))

    @property
    def _is_grey(self) -> bool:
        """Whether mean and std are those of one channel."""
        return len(self.mean or self.std or ()) == 1

    def class_name(self, index: int) -> str:
        """The name of the class, or its number where the names are unknown."""
        return self.classes[index] if index < len(self.classes) else f"class {index}"

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Evaluation mode and no parameter gradients; both are restored at the end.

        On a CPU subnormal numbers are flushed to zero meanwhile, if the model gives gradients.
        """
        on_gpu = self.device is not None and self.device.type != "cpu"
        slow = gives(self.access, "gradients") and not on_gpu
        with flushed() if slow else nullcontext(), self._still():
            yield

    @contextmanager
    def _still(self) -> Iterator[None]:
        if not isinstance(self.net, nn.Module):
            yield
            return
        modes = [(module, module.training) for module in self.net.modules()]
        grads = [(param, param.requires_grad) for param in self.net.parameters()]
        try:
            self.net.eval()
            for param, _ in grads:
                param.requires_grad_(False)
            yield
        finally:
            for module, training in modes:
                module.training = training
            for param, requires_grad in grads:
                param.requires_grad_(requires_grad)


def in_unit_box(picture: Image) -> Picture:
    """8-bit pixels as float32 numbers in [0, 1], channels first."""
    pixels = torch.from_numpy(np.array(picture, dtype=np.uint8))
    return pixels.view(picture.height, picture.width, -1).permute(2, 0, 1).float() / 255


def as_classifier(model: "Classifier | Model") -> Classifier:
    """The model itself, or a bare network or function of [0, 1] images as a ``Classifier``."""
    return model if isinstance(model, Classifier) else Classifier(model)


def _check_statistics(mean: Any, std: Any) -> None:
    for name, values in (("mean", mean), ("std", std)):
        if isinstance(values, (int, float)):
            raise BadInput(f"{name} must have one value for each channel, as in ({values},)")
        if values is not None and not all(map(math.isfinite, values)):
            raise BadInput(f"{name} must hold finite numbers, got {tuple(values)}")
    if mean is not None and std is not None and len(mean) != len(std):
        raise BadInput(f"mean has {len(mean)} values and std {len(std)}; they must agree")
    if std is not None and min(std) <= 0:
        raise BadInput(f"std must be above zero in every channel, got {tuple(std)}")
