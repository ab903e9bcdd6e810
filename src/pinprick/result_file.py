"""Results as one ``.safetensors`` file with a JSON header: no loss either way, no pickle."""

import json
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.errors import BadInput
from pinprick.files import atomic_write
from pinprick.goal import Goal
from pinprick.json_text import read_json
from pinprick.result import AttackResult, Failure
from pinprick.trace import Passes, Trace

FORMAT = 1
Part = TypeVar("Part", Passes, Trace)
_START, _STAGE, _TRACE = "start", "stage", "trace"  # before the names of their tensors
_HEADER = (
    "remarks",
    "found_by",
    "seconds",
    "peak_memory",
    "speed",
    "sent",
    "attack",
    "model",
    "model_from",
    "seed",
    "complete",
)
_LARGEST = 100_000_000  # characters of a header, which safetensors bounds as well
_NOT_OURS = (
    SafetensorError,
    OSError,
    AttributeError,
    TypeError,
    ValueError,
    RuntimeError,
)


def save_result(result: AttackResult, path: str | Path) -> None:
    """Write ``result`` to ``path``, without loss; a file is written whole or not at all."""
    path = Path(path)
    tensors = result.tensors() | result.goal.tensors()
    parts: dict[str, BatchRows | None] = {_START: result.start, _TRACE: result.trace}
    parts |= {f"{_STAGE}.{name}": passes for name, passes in result.stages.items()}
    for part, value in parts.items():
        if value is not None:
            tensors |= {f"{part}.{name}": tensor for name, tensor in value.tensors().items()}
    header = {"format": FORMAT, **{name: getattr(result, name) for name in _HEADER}}
    header["stages"] = list(result.stages)
    with atomic_write(path) as place:
        save_file(_apart(tensors), place, metadata={"pinprick": json.dumps(header)})


def is_result(path: str | Path) -> bool:
    """Whether the file begins like one that ``save_result`` writes; no picture does."""
    try:
        with Path(path).open("rb") as file:
            length, brace = int.from_bytes(file.read(8), "little"), file.read(1)
            return brace == b"{" and length <= Path(path).stat().st_size
    except OSError:
        return False


def load_result(path: str | Path) -> AttackResult:
    """The result that ``save_result`` wrote to ``path``, on the CPU."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
        if "pinprick" not in metadata:
            raise BadInput(
                f"{path} is not a result saved by pinprick; "
                "give a file that attack --save or save_result wrote"
            )
        where = f"{path} is not a result saved by pinprick: its header"
        header = read_json(metadata["pinprick"], where, largest=_LARGEST)
        if header.pop("format") != FORMAT:
            raise BadInput(f"{path} was written by another version of pinprick; run it again")
        known = {failure.value: failure for failure in Failure}
        header["remarks"] = tuple(known.get(text, text) for text in header["remarks"])
        tensors.setdefault("out_of_time", torch.zeros_like(tensors["out_of_budget"]))
        goal = Goal(tensors.pop("labels"), tensors.pop("targets", None))
        header["found_by"] = tuple(header.get("found_by", ()))
        start = _part(Passes, tensors, _START) if f"{_START}.forwards" in tensors else None
        trace = _part(Trace, tensors, _TRACE) if f"{_TRACE}.steps" in tensors else None
        names = header.pop("stages", [])
        stages = {name: _part(Passes, tensors, f"{_STAGE}.{name}") for name in names}
        return AttackResult(goal=goal, stages=stages, start=start, trace=trace, **tensors, **header)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except KeyError as error:
        raise BadInput(f"{path} is not a result saved by pinprick: it has no {error}") from error
    except _NOT_OURS as error:
        raise BadInput(f"{path} is not a result saved by pinprick: {error}") from error


def _part(kind: type[Part], tensors: dict[str, Tensor], name: str) -> Part:
    """The part of this name; its tensors are taken out of ``tensors``."""
    found = [key for key in tensors if key.rpartition(".")[0] == name]
    return kind(**{key.rpartition(".")[2]: tensors.pop(key) for key in found})


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, no two of them in the same memory, which the format asks for."""
    own: dict[str, Tensor] = {}
    taken = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        place = tensor.untyped_storage().data_ptr()
        own[name] = tensor.clone() if place in taken else tensor
        taken.add(place)
    return own
