"""``tensors:PATH``: the user's images and labels as tensors in safetensors files.

A file holds ``images`` (8-bit, batch x channel x height x width) and ``labels``, and may name its
classes in its metadata, as a JSON list called ``classes``. A path to a folder stands for the files
``train.safetensors`` and ``test.safetensors`` in it.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from pinprick.data.dataset import Dataset, NoSplit, split_parts
from pinprick.errors import BadInput


def load(path: Path, split: str) -> Dataset:
    name = f"tensors:{path}"
    parts = split_parts(split)
    if path.is_dir():
        read = [read_tensors(path / f"{part}.safetensors") for part in parts]
        source = f"{name}/{split}"
    elif split == "train":
        raise NoSplit(
            f"{path} is one file without a training split; give a folder that holds "
            "train.safetensors and test.safetensors"
        )
    else:
        read, source = [read_tensors(path)], name
    pixels, labels, classes = zip(*read, strict=True)
    if len(set(classes)) > 1:
        raise BadInput(f"train and test of {name} name other classes; they must be the same")
    if pixels[0].shape[1:] != pixels[-1].shape[1:]:
        raise BadInput(
            f"images of {name} are {tuple(pixels[0].shape[1:])} in train and "
            f"{tuple(pixels[-1].shape[1:])} in test"
        )
    return Dataset.in_memory(name, classes[0], torch.cat(pixels), torch.cat(labels), source)


def read_tensors(path: Path) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Images, labels and names of the classes; no names if the file has none."""
    try:
        with safe_open(path, framework="pt") as file:
            if missing := {"images", "labels"} - set(file.keys()):
                raise BadInput(f"{path} holds no tensor called {' or '.join(sorted(missing))}")
            images, labels = file.get_tensor("images"), file.get_tensor("labels")
            words = (file.metadata() or {}).get("classes", "[]")
    except FileNotFoundError:
        raise NoSplit(f"{path}: there is no such file") from None
    except (SafetensorError, OSError) as error:
        raise BadInput(f"{path} is no safetensors file, or half of one ({error})") from None
    check_tensors(images, labels, path)
    return images, labels.long(), _read_names(words, path)


def _read_names(text: str, path: Path) -> tuple[str, ...]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(
            f"classes in the metadata of {path} must be a JSON list of names, got {text!r:.40}"
        )
    return tuple(names)


def check_tensors(images: Tensor, labels: Tensor, path: Path, prefix: str = "") -> None:
    """Raise ``BadInput`` unless these are 8-bit images with one integer label each.

    ``prefix`` stands before the names of the two tensors in the file.
    """
    if images.dtype != torch.uint8 or images.ndim != 4:
        raise BadInput(
            f"{prefix}images of {path} must be 8-bit and of shape (batch, channel, height, width), "
            f"got {images.dtype} of shape {tuple(images.shape)}"
        )
    fraction = labels.is_floating_point() or labels.is_complex()
    if labels.ndim != 1 or fraction or labels.dtype == torch.bool:
        raise BadInput(f"{prefix}labels of {path} must be one whole number for each image")
    if len(images) != len(labels):
        raise BadInput(
            f"{path} has {len(images)} images and {len(labels)} labels; "
            "it must have one label per image"
        )
