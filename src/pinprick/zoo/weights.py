"""Weights by name: read from files, and stored as float32, float16 or int8.

Files are ``.safetensors``, whole or in shards, or ``.pt`` as plain tensors. No code in a file is
run, and nothing outside its folder is opened.

An 8-bit weight is ``q * scale`` with an integer q from -127 to 127 and one scale per output
channel. Its tensor is stored as int8 under its own name and the scales under ``NAME.scale``. Only
weights of convolutions and linear layers are stored so; norms, biases and buffers stay float32.

    scale = max |w| / 127 of the channel, rounded up to 11 significant bits
    q     = round(w / scale)

With 11 bits every product q * scale is exact in float32. So loading gives the same numbers on
every machine, and storing a loaded network again gives the same tensors.
"""

import pickle
import zipfile
from pathlib import Path
from typing import Any, Literal, cast, get_args

import torch
from safetensors import safe_open
from torch import Tensor

from pinprick.errors import BadInput, UnknownName, first_sentence
from pinprick.files import reading, sha256
from pinprick.json_text import read_json_file
from pinprick.zoo.safe_loading import name_list, printable, unsafe_pickle

State = dict[str, Tensor]
Store = Literal["float32", "float16", "int8"]
STORES: tuple[str, ...] = get_args(Store)

_SCALE = ".scale"
_LARGEST = 127
_BITS = 11  # significant bits of a scale; 8 more still fit float32
_SMALLEST = 1e-30  # a channel below it is stored as zeros
_MAX_LETTERS = 200  # in the name of a file
_MAX_UNPACKED = 20  # times the size of a checkpoint; torch does not compress them at all
_INSIDE = ("state_dict", "model_state_dict", "model", "net")  # where training loops put weights


def read_safetensors(path: Path) -> tuple[State, dict[str, str]]:
    """The tensors of one file, and the metadata in its header."""
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return state, file.metadata() or {}
    except Exception as error:  # a damaged file makes the reader raise anything
        start = _first_bytes(path)
        if start in (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
            reason = "a pickle under another name, and it was not opened as one"
        else:
            reason = f"damaged or of another kind ({first_sentence(error)})"
        raise BadInput(f"{path} is no safetensors file: it is {reason}") from None


def read_shards(index: Path) -> tuple[State, dict[str, str]]:
    """The tensors of all shards that ``index`` lists, and the metadata of the first one."""
    where, digests = _read_index(index)
    state: State = {}
    metadata: dict[str, str] = {}
    for shard in sorted(set(where.values())):
        path = index.parent / shard
        if not path.is_file():
            raise BadInput(f"{index} lists {printable(shard)}, which is not in its folder")
        if shard in digests and digests[shard] != sha256(path):
            raise BadInput(f"{path} is not the file that {index.name} lists; it is damaged or new")
        held, header = read_safetensors(path)
        missing = sorted(name for name, file in where.items() if file == shard and name not in held)
        if missing:
            raise BadInput(f"{path} lacks {name_list(missing)}, which {index.name} says it holds")
        state |= {name: tensor for name, tensor in held.items() if where.get(name) == shard}
        metadata = metadata or header
    return state, metadata


def read_checkpoint(path: Path) -> State:
    """The tensors of a ``.pt`` file, bare or where training loops put them."""
    _check_unpacked(path)
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise unsafe_pickle(str(path), error) from None
    except Exception as error:  # a damaged file makes the reader raise anything
        raise BadInput(
            f"{path} is damaged or no checkpoint of torch ({first_sentence(error)})"
        ) from None
    for key in _INSIDE:
        if isinstance(held, dict) and isinstance(held.get(key), dict):
            held = held[key]
    if not isinstance(held, dict) or not held:
        raise BadInput(f"{path} holds a {type(held).__name__}, not weights by name")
    others = [str(key) for key, value in held.items() if not isinstance(value, Tensor)]
    if others:
        raise BadInput(
            f"{path} holds more than weights by name: {name_list(others)}; "
            f"put them under one of {', '.join(_INSIDE)}, or save them apart"
        )
    state = {str(key): value for key, value in held.items()}
    for name, tensor in state.items():
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
            raise BadInput(f"{path} holds {printable(name)} as a tensor that is sparse or empty")
    return state


def _read_index(index: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """The shard of each tensor, and the SHA-256 of each shard where the index has one."""
    held = read_json_file(index, finite=True)
    try:
        where = held["weight_map"]
        digests = held.get("metadata", {}).get("sha256", {})
        names = {str(shard) for shard in where.values()}
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{index} is not an index of shards: it has no weight_map") from None
    for shard in names:
        outside = Path(shard).name != shard or "\\" in shard
        if outside or not shard.endswith(".safetensors") or len(shard) > _MAX_LETTERS:
            raise BadInput(
                f"{index} lists {printable(shard)}, which is no safetensors file in its folder"
            )
    if not names:
        raise BadInput(f"{index} lists no shards")
    return where, digests if isinstance(digests, dict) else {}


def _first_bytes(path: Path) -> bytes:
    with reading(path), path.open("rb") as opened:
        return opened.read(2)


def _check_unpacked(path: Path) -> None:
    """Refuse an archive that is far larger once it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return  # the older format of torch, or damaged: its reader raises the error
    if unpacked > _MAX_UNPACKED * path.stat().st_size:
        raise BadInput(
            f"{path} unpacks to {unpacked} bytes, over {_MAX_UNPACKED} times its size; "
            "save the weights again, with torch.save"
        )


def as_store(name: str) -> Store:
    """The way to store weights that is called ``name``."""
    if name not in STORES:
        raise UnknownName("way to store weights", name, STORES)
    return cast(Store, name)


def to_stored(state: State, store: Store) -> State:
    """The tensors as they are written: copies on the CPU, contiguous."""
    as_store(store)
    stored: State = {}
    for name, tensor in state.items():
        plain = tensor.detach().to("cpu", copy=True).contiguous()
        if store == "float16" and plain.is_floating_point():
            stored[name] = _to_half(name, plain)
        elif store == "int8" and plain.is_floating_point() and plain.dim() >= 2:
            stored[name], stored[name + _SCALE] = _to_int8(name, plain.float())
        else:
            stored[name] = plain
    return stored


def from_stored(state: State, where: str) -> State:
    """The weights that ``state`` encodes; only 8-bit ones change."""
    scaled = {
        name
        for name, tensor in state.items()
        if tensor.dtype == torch.int8 and name + _SCALE in state
    }
    loaded: State = {}
    for name, tensor in state.items():
        if name in scaled:
            loaded[name] = _from_int8(name, tensor, state[name + _SCALE], where)
        elif name.removesuffix(_SCALE) not in scaled:
            loaded[name] = tensor
    return loaded


def _to_half(name: str, plain: Tensor) -> Tensor:
    half = plain.half()
    if not torch.equal(half.isfinite(), plain.isfinite()):
        raise BadInput(f"{name} has values too large for 16 bits; save it without half")
    return half


def _to_int8(name: str, plain: Tensor) -> tuple[Tensor, Tensor]:
    if not plain.isfinite().all():
        raise BadInput(f"{name} has values that are NaN or infinite; save it as float32")
    largest = plain.flatten(1).abs().amax(dim=1)
    mantissa, exponent = torch.frexp(largest.double() / _LARGEST)
    scale = torch.ldexp((mantissa * 2**_BITS).ceil(), exponent - _BITS).float()
    scale = scale.where(largest > _SMALLEST, torch.ones_like(scale))
    rows = scale.view(-1, *[1] * (plain.dim() - 1))
    return (plain / rows).round().to(torch.int8), scale


def _from_int8(name: str, tensor: Tensor, scale: Tensor, where: str) -> Tensor:
    if tensor.dim() < 2 or scale.shape != tensor.shape[:1] or not scale.is_floating_point():
        raise BadInput(
            f"{where} does not hold one scale per output channel of {printable(name)}: "
            f"expected {tensor.shape[0] if tensor.dim() else 1} numbers, "
            f"got {tuple(scale.shape)} of {scale.dtype}"
        )
    return tensor.float() * scale.float().view(-1, *[1] * (tensor.dim() - 1))
