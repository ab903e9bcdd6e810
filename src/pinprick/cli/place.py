"""The model on its device, and what there is to know about that place."""

import platform

import torch
from torch import nn

from pinprick import __version__
from pinprick.errors import BadInput, NoAnswer
from pinprick.model import Classifier
from pinprick.zoo import load_model

_SMALL = 64  # side of a picture that a CPU is not kept busy by


def load_on(name: str, device: str, *, trust: bool = False) -> Classifier:
    """The model called ``name`` on ``device``, "auto" being a GPU where there is one."""
    place = find_device(device)
    model = load_model(name, trust=trust)
    if isinstance(model.net, nn.Module):
        model.net.to(place)
    return model


def find_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
        return device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"the device {name!r} cannot be used ({reason}); try cpu or auto") from None


def choose_batch_size(given: int | None, model: Classifier) -> int | None:
    """One at a time on a CPU, where batches of large pictures gain nothing.

    Each picture then has its own time. Small ones do gain, so they go together as everywhere.
    """
    on_cpu = model.device is None or model.device.type == "cpu"
    small = model.size is not None and max(model.size) <= _SMALL
    return 1 if given is None and on_cpu and not small else given


def check_answered(*models: Classifier | None) -> None:
    """Raise where a remote model left questions without an answer; all else is done by now."""
    for model in models:
        sent = None if model is None else model.sent
        if model is not None and sent is not None and sent.unanswered:
            raise NoAnswer(
                f"{model.name} left {sent.unanswered} of {sent.asked} questions without an answer; "
                "what was found with the others is shown and written"
            )


def surroundings(model: Classifier) -> dict[str, str]:
    """Versions and the device, to be kept beside the numbers."""
    device = model.device or torch.device("cpu")
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return {
        "device": f"{device} {gpu}".strip(),
        "pinprick": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
