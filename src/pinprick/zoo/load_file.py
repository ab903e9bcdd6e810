"""``file:PATH``: a model of the user's, from one file, from shards, or from a folder.

A ``.safetensors`` or ``.pt`` file holds only weights; ``card.json`` beside it, or the card in its
own header, names the network. An ``.onnx`` file is a whole model that gives scores. TorchScript and
``torch.export`` files are programs, and loading one can run code: it needs ``trust``.
"""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput, NotTrusted, first_sentence
from pinprick.files import reading
from pinprick.model import Classifier
from pinprick.zoo.card import ModelCard, read_card, read_card_file
from pinprick.zoo.from_card import OTHER_NETS, load_from_card, wrap_net
from pinprick.zoo.prepare import as_it_is, in_batches
from pinprick.zoo.saved_folder import CARD, HEADER, INDEX, WEIGHTS, check_belongs
from pinprick.zoo.weights import read_checkpoint, read_safetensors, read_shards

_CHECKPOINTS = (".pt", ".pth", ".bin", ".ckpt", ".tar")
_SCRIPTS = (".ts", ".torchscript")
_EXPORTS = (".pt2",)
_SUFFIXES = (".safetensors", ".index.json", *_CHECKPOINTS, ".onnx", *_EXPORTS, *_SCRIPTS)


def load(given: str, *, trust: bool = False) -> Classifier:
    """The model at the path ``given``; ``trust`` allows files that are programs."""
    path = find_file(_expand_user(Path(given)))
    name = f"file:{given}"
    kind = kind_of(path)
    if kind == "weights":
        return _from_weights(path, name)
    card = find_card(path, {})
    if kind == "onnx":
        from pinprick.zoo import onnx

        return onnx.load(path, card, name)
    if not trust:
        raise NotTrusted(
            f"{path} is a program ({kind}), and loading it can run code; if you trust whoever made "
            "it, say load_model(..., trust=True), in the shell --trust"
        )
    return _from_program(path, kind, card, name)


def find_file(path: Path) -> Path:
    """The file itself, or the one that holds the model of a folder."""
    with reading(path):
        if path.is_file():
            return path
        if not path.is_dir():
            raise BadInput(f"there is no file or folder {path} to load a model from")
        for name in (WEIGHTS, INDEX):
            if (path / name).is_file():
                return path / name
        found = sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES))
    if len(found) != 1:
        names = ", ".join(file.name for file in found[:6]) or "none"
        raise BadInput(
            f"{path} should hold one model, as {WEIGHTS}; files of models there: {names}"
        )
    return found[0]


def kind_of(path: Path) -> str:
    """Whether it is "weights", "onnx", "TorchScript" or "torch.export"."""
    suffix = path.suffix.lower()
    if path.name.endswith(".index.json") or suffix == ".safetensors":
        return "weights"
    if suffix == ".onnx":
        return "onnx"
    if suffix in _SCRIPTS:
        return "TorchScript"
    if suffix in _EXPORTS:
        return "torch.export"
    if suffix not in _CHECKPOINTS:
        raise BadInput(f"{path} is no file of a model; those end in {', '.join(_SUFFIXES)}")
    names = {entry.rpartition("/")[2] for entry in _entries(path)}
    if "constants.pkl" in names:
        return "TorchScript"
    if names & {"archive_format", "serialized_exported_program.json"}:
        return "torch.export"
    return "weights"


def find_card(path: Path, header: dict[str, str]) -> ModelCard | None:
    """``card.json`` beside the file, or else the card in the file's own header, if there is one."""
    beside = path.parent / CARD
    if beside.is_file():
        card = read_card_file(beside)
        check_belongs(path, beside)
        return card
    if HEADER in header:
        return read_card(header[HEADER], f"the header of {path}")
    return None


def _from_weights(path: Path, name: str) -> Classifier:
    header: dict[str, str] = {}
    if path.name.endswith(".index.json"):
        state, header = read_shards(path)
    elif path.suffix.lower() == ".safetensors":
        state, header = read_safetensors(path)
    else:
        state = read_checkpoint(path)
    card = find_card(path, header)
    if card is None:
        raise BadInput(
            f"{path} holds only weights, and nothing says of which network; put a {CARD} "
            "beside it, such as "
            '{"net": "torchvision:resnet18", "classes": ["cat", "dog"], "size": [224, 224]}; '
            f"{OTHER_NETS}"
        )
    return load_from_card(card, state, where=str(path), name=name)


def _from_program(path: Path, kind: str, card: ModelCard | None, name: str) -> Classifier:
    """The network in the file, whose ``kind`` is "TorchScript" or "torch.export"."""
    if not zipfile.is_zipfile(path):
        raise BadInput(f"{path} is damaged or no {kind} file (it is no archive)")
    try:
        with warnings.catch_warnings(action="ignore"):  # TorchScript is deprecated
            net = _load_script(path) if kind == "TorchScript" else _load_export(path)
    except BadInput:
        raise
    except Exception as error:  # a damaged file makes the readers raise anything
        raise BadInput(f"{path} is damaged or no {kind} file ({first_sentence(error)})") from None
    if card is None:
        return Classifier(net, prepare=as_it_is, access="gradients", name=name)
    return wrap_net(net, card, name, access="gradients")


def _load_script(path: Path) -> nn.Module:
    net: nn.Module = torch.jit.load(str(path), map_location="cpu")
    return net.eval()


def _load_export(path: Path) -> nn.Module:
    with path.open("rb") as file:  # given a path, torch requires the suffix
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
    """A network from ``torch.export``, which has one mode: ``train`` and ``eval`` do nothing."""

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


def _expand_user(path: Path) -> Path:
    """The path with ``~`` spelled out, where there is such a user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def _entries(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return []  # the older format of torch, or damaged: its reader raises the error
