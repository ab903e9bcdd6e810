"""A network saved as ``.safetensors`` with its card beside it: no pickle, and never half a model.

Large networks are cut into shards in the layout of Hugging Face: files of a limited size, and an
index of the tensors in each. The index lists the SHA-256 of each shard, and the card that of the
index or of the single file, so that two savings are never mixed. Cards of older versions and cards
written by hand list none; they belong to the weights beside them. The card is also in the metadata
of every file.

All files are written to a temporary folder and synced. Then the card is moved, and from there on
the old weights are refused; the new weights follow. So a reader gets the old model, the new one, or
an error which says that saving was interrupted.
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from pinprick.errors import BadInput, MissingExtra, first_few
from pinprick.files import sha256, sync, sync_folder, usual_permissions, writing
from pinprick.json_text import read_json_file
from pinprick.zoo.card import ModelCard, read_card_file, read_digests
from pinprick.zoo.from_card import check_net
from pinprick.zoo.weights import State, Store, to_stored

CARD = "card.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
HEADER = "pinprick"  # the entry in the header of our weights that holds the card
_SHARDS = "model-*-of-*.safetensors"
_TEMPORARY = ".saving"  # always the same name: the next saving removes what a killed one left


def save_model(
    net: nn.Module,
    card: ModelCard,
    folder: str | Path,
    *,
    shard_mb: int | float = 15,
    half: bool = False,
    store: Store = "float32",
) -> None:
    """Write the weights of ``net`` and its card to ``folder``, for ``load_model("file:FOLDER")``.

    Args:
        net: The network whose architecture the card names; left as it is.
        card: The network's architecture, classes and preprocessing. An architecture that
            ``load_model`` could not build again is refused.
        folder: Made if it is missing. A model that was saved there is replaced; a folder with
            weights from elsewhere is refused.
        shard_mb: The most a file may hold, in millions of bytes; a single tensor is never cut.
        half: The same as ``store="float16"``.
        store: How weights are stored: "float32", "float16", or "int8" with a scale per output
            channel. They are float32 again once loaded.
    """
    if shard_mb <= 0:
        raise BadInput(f"shard_mb must be above zero, got {shard_mb}")
    with suppress(MissingExtra):  # whoever loads it needs timm
        check_net(card.net)
    folder = Path(folder)
    state = to_stored(_unwrapped(net).state_dict(), "float16" if half else store)
    if not state:
        raise BadInput("the network has no weights to save")
    shards = _shards(state, int(shard_mb * 1e6))
    header = {"format": "pt", HEADER: card.as_json()}
    if foreign := foreign_files(folder):
        raise BadInput(
            f"{folder} holds files of another model ({first_few(foreign)}); "
            "choose another folder, or move them away"
        )
    new = folder / _TEMPORARY
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        try:
            files = _write_weights(new, shards, header)
            _write_text(new / CARD, card.as_json({files[-1]: sha256(new / files[-1])}))
            _swap(new, folder, files)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _unwrapped(net: nn.Module) -> nn.Module:
    """The network itself, without wrappers for several GPUs or of ``torch.compile``."""
    while isinstance(net, nn.DataParallel | nn.parallel.DistributedDataParallel):
        net = net.module
    inner = getattr(net, "_orig_mod", None)
    return net if inner is None else _unwrapped(inner)


def _shards(state: State, most: int) -> list[State]:
    """The tensors in their order, in shards of at most ``most`` bytes."""
    shards: list[State] = [{}]
    size = 0
    for name, tensor in state.items():
        if shards[-1] and size + tensor.nbytes > most:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    return shards


def _write_weights(new: Path, shards: list[State], header: dict[str, str]) -> list[str]:
    """Write the shards and their index; gives the file names, the one to load last."""
    total = len(shards)
    files = [WEIGHTS] if total == 1 else [_shard_name(i + 1, total) for i in range(total)]
    for file, shard in zip(files, shards, strict=True):
        path = new / file
        with usual_permissions(path):
            save_file(shard, path, header)
        sync(path)
    if total == 1:
        return files
    _write_text(new / INDEX, json.dumps(_index(new, files, shards), indent=2))
    return [*files, INDEX]


def _write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n", "utf-8")
    sync(path)


def _swap(new: Path, folder: Path, files: list[str]) -> None:
    """Replace the old files by the new ones: first the card, which refuses the old weights."""
    (new / CARD).replace(folder / CARD)
    sync_folder(folder)
    for old in weights_files(folder):
        if old.name not in files:
            old.unlink(missing_ok=True)
    for file in files:
        (new / file).replace(folder / file)
    sync_folder(folder)


def _shard_name(number: int, total: int) -> str:
    return f"model-{number:05}-of-{total:05}.safetensors"


def _index(folder: Path, files: list[str], shards: list[State]) -> dict[str, object]:
    digests = {file: sha256(folder / file) for file in files}
    size = sum(tensor.nbytes for shard in shards for tensor in shard.values())
    where = {name: file for file, shard in zip(files, shards, strict=True) for name in shard}
    return {"metadata": {"total_size": size, "sha256": digests}, "weight_map": where}


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
