"""The model on its device: loading it there, and its versions."""

import platform

import torch
from torch import nn

from pinprick import __version__
from pinprick.errors import BadInput, NoAnswer
from pinprick.model import Classifier
from pinprick.zoo import load_model

# Sources whose networks take feature maps in channels last. Code of users may `view` its maps.
_TAKE_CHANNELS_LAST = ("efficientnet_lite0", "file", "hf", "pinprick", "timm", "torchvision")
_PROGRAMS = (torch.jit.ScriptModule, torch.fx.GraphModule)  # code of users in a model file


def load_on_device(model: str | Classifier, device: str, *, trust: bool = False) -> Classifier:
    """Load the model called ``model`` to ``device``; a ``Classifier`` stays where it is.

    On a CPU its weights are in channels last where the network is known to allow that.

    Args:
        model: A name as ``load_model`` takes it, or a model that is loaded already.
        device: "cpu", "cuda", "cuda:1" and so on; "auto" for a GPU where there is one.
        trust: Load model files that are programs, too.
    """
    if isinstance(model, Classifier):
        return model
    found = find_device(device)
    classifier = load_model(model, trust=trust)
    if isinstance(classifier.net, nn.Module):
        classifier.net.to(found)
        if found.type == "cpu" and _takes_channels_last(classifier):  # faster there
            classifier.net.to(memory_format=torch.channels_last)
    return classifier


def _takes_channels_last(model: Classifier) -> bool:
    known = model.name.partition(":")[0] in _TAKE_CHANNELS_LAST
    return known and not isinstance(model.net, _PROGRAMS)


def find_device(name: str) -> torch.device:
    """The device called ``name``; raises ``BadInput`` if it cannot be used."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
        return device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"the device {name!r} cannot be used ({reason}); try cpu or auto") from None


def unanswered(*models: Classifier | None) -> NoAnswer | None:
    """An error that says how many questions a remote model left unanswered; None if none."""
    for model in models:
        sent = None if model is None else model.sent
        if model is not None and sent is not None and sent.unanswered:
            return NoAnswer(
                f"{model.name} did not answer {sent.unanswered} of {sent.asked} questions; "
                "results from the other answers are shown and written"
            )
    return None


def device_and_versions(model: Classifier) -> dict[str, str | int]:
    """The device, the number of CPU threads and the versions that numbers were measured with."""
    device = model.device or torch.device("cpu")
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return {
        "device": f"{device} {gpu}".strip(),
        "threads": torch.get_num_threads(),
        "pinprick": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
