"""TorchScript and ``torch.export`` files: networks as programs, for files that are trusted.

Loading one can run code of whoever made it, so nothing here is called without ``trust``.
"""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.zoo.card import ModelCard
from pinprick.zoo.fit import as_card_says
from pinprick.zoo.prepare import as_it_is, in_batches
from pinprick.zoo.safe_loading import brief


def load(path: Path, kind: str, card: ModelCard | None, name: str) -> Classifier:
    """The network in the file, whose ``kind`` is "TorchScript" or "torch.export"."""
    if not zipfile.is_zipfile(path):
        raise BadInput(f"{path} is damaged or no {kind} file (it is no archive)")
    try:
        with warnings.catch_warnings(action="ignore"):  # that TorchScript is going out of use
            net = _script(path) if kind == "TorchScript" else _export(path)
    except BadInput:
        raise
    except Exception as error:  # a damaged file makes the readers raise anything
        raise BadInput(f"{path} is damaged or no {kind} file ({brief(error)})") from None
    if card is None:
        return Classifier(net, prepare=as_it_is, access="gradients", name=name)
    return as_card_says(net, card, name, access="gradients")


def _script(path: Path) -> nn.Module:
    net: nn.Module = torch.jit.load(str(path), map_location="cpu")
    return net.eval()


def _export(path: Path) -> nn.Module:
    with path.open("rb") as file:  # given a path, torch insists on the suffix
        program = torch.export.load(file)
    images = [
        node.meta["val"]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs
    ]
    if len(images) != 1 or images[0].ndim != 4:
        raise BadInput(f"{path} must take one batch of images, with four axes")
    batch = images[0].shape[0]
    return Exported(program.module(), batch if isinstance(batch, int) else None)


class Exported(nn.Module):
    """A network out of ``torch.export``, which is for evaluation alone.

    It was exported in one mode and refuses to be put into any, so modes pass it by.
    """

    def __init__(self, graph: Any, batch: int | None) -> None:
        super().__init__()
        self.graph, self.batch = graph, batch
        self.training = False

    def forward(self, images: Tensor) -> Tensor:
        if self.batch is not None:
            return in_batches(self.graph, images, self.batch)
        answer: Tensor = self.graph(images)
        return answer

    def train(self, mode: bool = True) -> "Exported":
        return self
