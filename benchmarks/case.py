"""A model with labelled images for a benchmark: the user's own, or the demo's.

``package.module:function`` names a function without arguments that gives a model, images in [0, 1]
and their labels; modules of the current folder are found too. Without one, it is EfficientNet-Lite0
on the photographs that the extra ``demo`` installs, with the model's own answers for labels.
"""

import argparse
import sys
from importlib import import_module

import torch
from torch import Tensor, nn

from pinprick import Classifier, load_model
from pinprick.model import as_classifier


def case_parser(about: str | None, *, count: int, steps: int) -> argparse.ArgumentParser:
    """The flags of a script that attacks a case; ``about`` is its docstring, the rest defaults."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("--case", help="package.module:function giving model, images, labels")
    parser.add_argument("--count", type=int, default=count, help="images")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--device", default="cpu")
    return parser


def read_case(spec: str | None, device: str, count: int) -> tuple[Classifier, Tensor, Tensor]:
    """Model, images and labels on ``device``: the first ``count`` that the model gets right."""
    if spec is None:
        model, images, labels = _demo()
    else:
        sys.path.insert(0, "")
        module, _, function = spec.partition(":")
        given, images, labels = getattr(import_module(module), function)()
        model = as_classifier(given)
    if isinstance(model.net, nn.Module):
        model.net.to(device)
    images, labels = images.to(device), labels.to(device)
    with torch.no_grad(), model.frozen():
        right = torch.cat([model(part).argmax(dim=1) for part in images.split(64)]) == labels
    rows = right.nonzero().squeeze(1)[:count]
    return model, images[rows], labels[rows]


def _demo() -> tuple[Classifier, Tensor, Tensor]:
    from pinprick.data.sets.photographs import read_photographs

    model = load_model("efficientnet_lite0")
    images = torch.stack([model.prepare(photo.image) for photo in read_photographs()])
    with torch.no_grad(), model.frozen():
        return model, images, model(images).argmax(dim=1)
