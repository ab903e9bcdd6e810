"""Models by name; one file a source."""

import difflib

from pinprick.errors import UnknownName
from pinprick.model import Classifier

_FORMS = ("efficientnet_lite0", "torchvision:NAME", "timm:NAME", "package.module:function")


def load_model(name: str) -> Classifier:
    """The model called ``name``, on the CPU, with its preprocessing and its classes in words.

    Args:
        name: ``efficientnet_lite0`` (extra ``demo``), ``torchvision:NAME``, ``timm:NAME`` (extra
            ``timm``), or ``package.module:function`` for a function of yours that gives a
            ``Classifier`` or a network of images in [0, 1].
    """
    source, colon, rest = name.partition(":")
    if name == "efficientnet_lite0":
        from pinprick.zoo import efficientnet_lite0

        return efficientnet_lite0.load()
    if source == "torchvision" and colon:
        from pinprick.zoo import torchvision

        return torchvision.load(rest)
    if source == "timm" and colon:
        from pinprick.zoo import timm

        return timm.load(rest)
    if colon:
        from pinprick.zoo import function

        return function.load(source, rest)
    raise UnknownName("model", name, [*_FORMS, *_similar(name)])


def _similar(name: str) -> list[str]:
    """Names of torchvision near ``name``, which people write without the source."""
    from pinprick.zoo import torchvision

    return [f"torchvision:{near}" for near in difflib.get_close_matches(name, torchvision.names())]
