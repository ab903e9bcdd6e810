"""``file:PATH``: a model of the user's, from one file, from shards, or from a folder.

A ``.safetensors`` or ``.pt`` file holds weights alone; ``card.json`` beside it, or the card in its
own header, names the network. An ``.onnx`` file is a whole model that gives scores. TorchScript
and ``torch.export`` files are programs: they are loaded only when they are trusted.
"""

import zipfile
from pathlib import Path

from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.zoo.card import ModelCard, read_card, read_card_file
from pinprick.zoo.saved_folder import CARD, HEADER, INDEX, WEIGHTS, check_belongs

_CHECKPOINTS = (".pt", ".pth", ".bin", ".ckpt", ".tar")
_SCRIPTS = (".ts", ".torchscript")
_EXPORTS = (".pt2",)
_KINDS = (".safetensors", ".index.json", *_CHECKPOINTS, ".onnx", *_EXPORTS, *_SCRIPTS)


def load(given: str, *, trust: bool = False) -> Classifier:
    """The model at the path ``given``; ``trust`` allows files that are programs."""
    path = find_file(_at_home(Path(given)))
    name = f"file:{given}"
    kind = kind_of(path)
    if kind == "weights":
        return _from_weights(path, name)
    card = find_card(path, {})
    if kind == "onnx":
        from pinprick.zoo import onnx

        return onnx.load(path, card, name)
    if not trust:
        raise BadInput(
            f"{path} is a program ({kind}), and loading it can run code; if you trust whoever made "
            "it, say load_model(..., trust=True), in the shell --trust"
        )
    from pinprick.zoo import program

    return program.load(path, kind, card, name)


def find_file(path: Path) -> Path:
    """The file itself, or the one that makes up the model in a folder."""
    try:
        if path.is_file():
            return path
        if not path.is_dir():
            raise BadInput(f"there is no file or folder {path} to load a model from")
        for name in (WEIGHTS, INDEX):
            if (path / name).is_file():
                return path / name
        found = sorted(file for file in path.iterdir() if file.name.endswith(_KINDS))
    except OSError as error:  # it may not be read, or its name is too long
        raise BadInput(f"{str(path)[:200]} cannot be read: {error.strerror}") from None
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
        raise BadInput(f"{path} is no file of a model; those end in {', '.join(_KINDS)}")
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
    from pinprick.zoo.fit import classifier_from
    from pinprick.zoo.weights import read_checkpoint, read_safetensors, read_shards

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
            f"{path} holds weights alone, and nothing says of which network; put a {CARD} beside "
            'it, as {"net": "torchvision:resnet18", "classes": ["cat", "dog"], "size": [224, 224]}'
        )
    return classifier_from(card, state, where=str(path), name=name)


def _at_home(path: Path) -> Path:
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
        return []  # the older format of torch, or damaged: the reader will say
