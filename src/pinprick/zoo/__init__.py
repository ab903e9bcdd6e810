"""Models by name; one file a source."""

import difflib
from importlib import import_module
from pathlib import Path

from pinprick.errors import UnknownName
from pinprick.model import Classifier
from pinprick.zoo.card import ModelCard
from pinprick.zoo.listing import SOURCES

LOADERS = {  # what stands before the colon: the file that knows the rest
    "pinprick": "shipped",
    "torchvision": "torchvision",
    "timm": "timm",
    "hf": "hf",
    "robustbench": "robustbench",
    "file": "file",
}


def load_model(name: str, *, trust: bool = False) -> Classifier:
    """The model called ``name``, on the CPU, with its preprocessing and its classes in words.

    Args:
        name: ``efficientnet_lite0`` (extra ``demo``), ``pinprick:NAME`` for those that are shipped,
            ``torchvision:NAME`` or ``torchvision:NAME@WEIGHTS``, ``timm:NAME`` and ``hf:ORG/NAME``
            (extra ``timm``), ``robustbench:NAME``, ``file:PATH``, or ``package.module:function``
            for a function of yours that gives a ``Classifier`` or a network of images in [0, 1].
        trust: Load files that are programs (TorchScript, ``torch.export``) too; that can run code.
    """
    source, colon, rest = name.partition(":")
    if name == "efficientnet_lite0":
        from pinprick.zoo import efficientnet_lite0

        return efficientnet_lite0.load()
    if source == "file" and colon:
        from pinprick.zoo import load_file

        return load_file.load(rest, trust=trust)
    if source in LOADERS and colon:
        module = import_module(f"pinprick.zoo.{LOADERS[source]}")
        model: Classifier = module.load(rest)
        return model
    if colon:
        from pinprick.zoo import function

        return function.load(source, rest)
    raise UnknownName("model", name, [*(one.form for one in SOURCES), *_similar(name)])


def card_of(name: str) -> ModelCard | None:
    """The card of a shipped model, or the one beside a file of the user's; None without one."""
    source, _, rest = name.partition(":")
    if source == "pinprick":
        from pinprick.zoo import shipped

        return shipped.card(rest)
    if source == "file":
        from pinprick.zoo import load_file

        return load_file.find_card(load_file.find_file(Path(rest).expanduser()), {})
    return None


def _similar(name: str) -> list[str]:
    """Names of shipped models and of torchvision's that people write without the source."""
    from pinprick.zoo import shipped, torchvision

    known = {near: f"torchvision:{near}" for near in torchvision.names()}
    known |= {near: f"pinprick:{near}" for near in shipped.names()}
    return [known[near] for near in difflib.get_close_matches(name, known)]
