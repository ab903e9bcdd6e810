"""The files of a saved model: their names, which of them are ours, and which belong together.

``card.json`` lists the SHA-256 of the weights that it was saved with. Cards of older versions and
cards written by hand list none, and are taken for those of the weights beside them.
"""

import hashlib
from pathlib import Path
from typing import Any

from safetensors import safe_open

from pinprick.errors import BadInput
from pinprick.json_text import read_json_file
from pinprick.zoo.card import read_card_file, read_digests

CARD = "card.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
HEADER = "pinprick"  # the entry in the header of our weights that holds the card
_SHARDS = "model-*-of-*.safetensors"


def sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}") from None


def weights_files(folder: Path) -> list[Path]:
    """Files in the folder under the names that weights are saved by, ours or not."""
    found = [folder / WEIGHTS, *sorted(folder.glob(_SHARDS)), folder / INDEX]
    return [path for path in found if path.exists()]


def foreign_files(folder: Path) -> list[str]:
    """Names of files that saving a model would replace or remove, and that are not ours."""
    weights = weights_files(folder)
    ours = [path for path in weights if _is_ours(path)]
    foreign = [path.name for path in weights if path not in ours]
    card = folder / CARD
    if card.exists() and not ours and not _is_our_card(card):
        foreign.append(CARD)
    return foreign


def belongs(path: Path, card: Path) -> bool:
    """Whether the weights at ``path`` are those that the card was saved with, if it says which."""
    digests = read_digests(card)
    if path.name in digests:
        return digests[path.name] == sha256(path)
    return not digests or path.name not in (WEIGHTS, INDEX)


def check_belongs(path: Path, card: Path) -> None:
    """Raise ``BadInput`` unless weights and card were saved together."""
    if not belongs(path, card):
        raise BadInput(
            f"{path} is not the file that {card.name} was saved with: it is damaged, or saving was "
            f"interrupted; save the model again, or take sha256 out of {card.name} if it is right"
        )


def _is_ours(path: Path) -> bool:
    try:
        if path.name == INDEX:
            held: Any = read_json_file(path)
            return "sha256" in held["metadata"]
        with safe_open(path, framework="pt") as file:
            return HEADER in (file.metadata() or {})
    except Exception:  # damaged, or of another kind
        return False


def _is_our_card(path: Path) -> bool:
    """Whether the card lists its weights, or a training of an older version wrote it."""
    try:
        return bool(read_digests(path)) or "training" in read_card_file(path).facts
    except BadInput:
        return False
