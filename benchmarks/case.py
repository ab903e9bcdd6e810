"""A model, labelled images and attacks for the scripts of this folder.

``--data`` is a folder of photographs with the NIPS-2017 ``images.csv`` (labels from 1), or a
``.safetensors`` file with 8-bit ``images`` (image, channel, height, width) and ``labels``, or the
name of a dataset of small images, as ``pinprick explain --data`` takes it. Only images that the
model gets right are used: the first ``--images`` of them after ``--skip``.

``--case package.module:function`` names a function without arguments that gives a model, images in
[0, 1] and their labels; modules of the current folder are found too. Without one, it is
EfficientNet-Lite0 on the photographs of the extra ``demo``, with the model's own answers as labels.
"""

import argparse
import csv
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from write_rows import surroundings

import pinprick
from pinprick import Classifier, build, least_likely, load_model
from pinprick.data.select import load_subset
from pinprick.data.subset import parse
from pinprick.model import as_classifier


def read_data(path: Path, model: Classifier) -> tuple[Tensor, Tensor]:
    """Images in [0, 1] and their labels."""
    if path.is_dir():
        rows = list(csv.DictReader((path / "images.csv").open()))
        pictures = [Image.open(path / "images" / f"{row['ImageId']}.png") for row in rows]
        images = torch.stack([model.prepare(picture.convert("RGB")) for picture in pictures])
        return images, torch.tensor([int(row["TrueLabel"]) - 1 for row in rows])
    if not path.exists():
        data = load_subset(parse(str(path)))
        return data.images(), data.labels
    tensors = load_file(path)
    return tensors["images"].float() / 255, tensors["labels"].long()


def right_ones(
    model: Classifier, images: Tensor, labels: Tensor, skip: int, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Images that the model gets right, their labels, and the classes it believes in least."""
    images, labels = images[skip:], labels[skip:]
    with torch.no_grad(), model.frozen():
        pieces = [model(piece.to(model.device)).cpu() for piece in images.split(64)]
    logits = torch.cat(pieces)
    chosen = (logits.argmax(dim=1) == labels).nonzero().squeeze(1)[:count]
    return images[chosen], labels[chosen], least_likely(logits[chosen], labels[chosen])


def read_attack(text: str) -> pinprick.Attack:
    """The attack of a text such as ``sigma_zero,steps=100``."""
    name, *options = text.split(",")
    return build({"name": name, **dict(option.split("=", 1) for option in options)})


def run_parser(about: str | None) -> argparse.ArgumentParser:
    """The options that say which model, images and attacks, and where to write."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0] if about else None)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--attack", action="append", required=True)
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--least-likely", action="store_true", help="attack the least likely class")
    parser.add_argument("--out", type=Path, required=True)
    return parser


def open_run(
    options: argparse.Namespace,
) -> tuple[Classifier, Tensor, Tensor, Tensor | None, dict[str, Any]]:
    """Model, images, labels, targets if any, and the circumstances; makes the folder."""
    model = load_model(options.model)
    if isinstance(model.net, torch.nn.Module):
        model.net.to(options.device)
    images, labels = read_data(options.data, model)
    images, labels, targets = right_ones(model, images, labels, options.skip, options.images)
    options.out.mkdir(parents=True, exist_ok=True)
    about = {
        "model": options.model,
        "data": options.data.name if options.data.exists() else str(options.data),
        "goal": "least likely" if options.least_likely else "untargeted",
        "skip": options.skip,
        "images": len(images),
        **surroundings(options.device),
    }
    return model, images, labels, targets if options.least_likely else None, about


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
