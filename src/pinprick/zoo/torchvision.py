"""``torchvision:NAME``: a classifier of torchvision with its default weights, or ``@WEIGHTS``.

Resizing, cropping, mean, std and class names are read from the weights, so they are the ones the
network was measured with. Its own transform works on 8-bit pixels, too.
"""

from typing import Any

from PIL.Image import Image
from torchvision import models
from torchvision.transforms import functional as transform

from pinprick.data.pictures import as_rgb
from pinprick.errors import UnknownName
from pinprick.model import Classifier, in_unit_box
from pinprick.types import Picture
from pinprick.zoo.safe_loading import fetching


def load(given: str) -> Classifier:
    name, at, version = given.partition("@")
    if name not in names():
        raise UnknownName("classifier of torchvision", name, names())
    choices = models.get_model_weights(name)
    if at and version not in choices.__members__:
        raise UnknownName(f"set of weights of {name}", version, choices.__members__)
    weights = choices[version] if at else choices.DEFAULT
    with fetching(f"torchvision:{given}"):
        net = models.get_model(name, weights=weights)
    return from_weights(net, weights, f"torchvision:{given}")


def names() -> list[str]:
    """All image classifiers; torchvision's own list holds detectors and others too."""
    return [str(name) for name in models.list_models(module=models)]


def from_weights(net: Any, weights: Any, name: str) -> Classifier:
    """The network with what its weights say of preprocessing and classes."""
    steps = weights.transforms()

    def prepare(picture: Image) -> Picture:
        picture = as_rgb(picture)[0]
        picture = transform.resize(
            picture, steps.resize_size, interpolation=steps.interpolation, antialias=steps.antialias
        )
        return in_unit_box(transform.center_crop(picture, steps.crop_size))

    side = steps.crop_size[0]
    return Classifier(
        net.eval(),
        mean=tuple(steps.mean),
        std=tuple(steps.std),
        classes=tuple(weights.meta["categories"]),
        size=(side, side),
        prepare=prepare,
        name=name,
    )
