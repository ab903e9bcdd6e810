"""A network as ``.safetensors`` with its card beside it: no pickle, and no file is ever half.

Large networks are cut into shards in the layout of Hugging Face: files of a limited size, and an
index that says which holds what. The index keeps a SHA-256 of each, so that shards of two savings
are never mixed. The card is also kept in the metadata of every file.
"""

import hashlib
import json
from pathlib import Path

from safetensors.torch import save_file
from torch import nn

from pinprick.aside import aside
from pinprick.errors import BadInput
from pinprick.zoo.card import ModelCard
from pinprick.zoo.stored import State, Store, to_stored

CARD = "card.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


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
        card: What must be known to use it.
        folder: Made if it is not there; a model that is in it already is replaced.
        shard_mb: The most a file may hold, in millions of bytes; a single tensor is never cut.
        half: The same as ``store="float16"``.
        store: How weights are stored: "float32", "float16", or "int8" with a scale per output
            channel. They are float32 again once loaded.
    """
    if shard_mb <= 0:
        raise BadInput(f"shard_mb must be above zero, got {shard_mb}")
    folder = Path(folder)
    state = to_stored(_unwrapped(net).state_dict(), "float16" if half else store)
    if not state:
        raise BadInput("the network has no weights to save")
    text = card.as_json()
    shards = _cut(state, int(shard_mb * 1e6))
    total = len(shards)
    files = [WEIGHTS] if total == 1 else [_shard_name(i + 1, total) for i in range(total)]
    metadata = {"format": "pt", "pinprick": text}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, shard in zip(files, shards, strict=True):
            with aside(folder / file) as path:
                save_file(shard, path, metadata)
        if total > 1:
            with aside(folder / INDEX) as path:
                path.write_text(json.dumps(_index(folder, files, shards), indent=2) + "\n", "utf-8")
        with aside(folder / CARD) as path:
            path.write_text(text + "\n", "utf-8")
        _remove_others(folder, files)
    except OSError as error:
        raise BadInput(f"cannot save a model to {folder}: {error.strerror or error}") from None


def _unwrapped(net: nn.Module) -> nn.Module:
    """The network itself, without what runs it on several GPUs or compiles it."""
    while isinstance(net, nn.DataParallel | nn.parallel.DistributedDataParallel):
        net = net.module
    inner = getattr(net, "_orig_mod", None)
    return net if inner is None else _unwrapped(inner)


def _cut(state: State, most: int) -> list[State]:
    """The tensors in their order, in parts of at most ``most`` bytes."""
    shards: list[State] = [{}]
    taken = 0
    for name, tensor in state.items():
        if shards[-1] and taken + tensor.nbytes > most:
            shards.append({})
            taken = 0
        shards[-1][name] = tensor
        taken += tensor.nbytes
    return shards


def _shard_name(number: int, total: int) -> str:
    return f"model-{number:05}-of-{total:05}.safetensors"


def _index(folder: Path, files: list[str], shards: list[State]) -> dict[str, object]:
    digests = {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in files}
    size = sum(tensor.nbytes for shard in shards for tensor in shard.values())
    where = {name: file for file, shard in zip(files, shards, strict=True) for name in shard}
    return {"metadata": {"total_size": size, "sha256": digests}, "weight_map": where}


def _remove_others(folder: Path, files: list[str]) -> None:
    """Remove what an earlier saving left under names that this one does not use."""
    keep = {*files, INDEX} if len(files) > 1 else {*files}
    for old in (folder / WEIGHTS, *folder.glob("model-*-of-*.safetensors"), folder / INDEX):
        if old.name not in keep:
            old.unlink(missing_ok=True)
