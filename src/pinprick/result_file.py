"""Results as one ``.safetensors`` file with a JSON header: no loss either way, no pickle."""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.files import aside
from pinprick.goal import Goal
from pinprick.json_text import read_json
from pinprick.passes import Passes
from pinprick.result import TENSORS, AttackResult
from pinprick.trace import FIELDS, Trace

FORMAT = 1
_START, _STAGE, _TRACE = "start", "stage.", "trace."  # before the names of their tensors
_HEADER = ("remarks", "found_by", "seconds", "peak_memory", "sent", "attack", "model", "seed")
_LARGEST = 100_000_000  # characters of a header, which safetensors bounds as well
_NOT_OURS = (
    SafetensorError,
    OSError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    RuntimeError,
)


def save_result(result: AttackResult, path: str | Path) -> None:
    """Write ``result`` to ``path``, aside first and then renamed, so never half a file."""
    path = Path(path)
    tensors = {name: getattr(result, name) for name in TENSORS} | result.optional()
    tensors["labels"] = result.goal.labels
    if result.goal.targets is not None:
        tensors["targets"] = result.goal.targets
    told_apart = {f"{_STAGE}{name}": passes for name, passes in result.stages.items()}
    if result.start is not None:
        told_apart[_START] = result.start
    for name, passes in told_apart.items():
        tensors[f"{name}.forwards"], tensors[f"{name}.backwards"] = vars(passes).values()
    if result.trace is not None:
        tensors |= {f"{_TRACE}{name}": getattr(result.trace, name) for name in FIELDS}
    header = {"format": FORMAT, **{name: getattr(result, name) for name in _HEADER}}
    header["stages"] = list(result.stages)
    with aside(path) as place:
        save_file(_apart(tensors), place, metadata={"pinprick": json.dumps(header)})


def load_result(path: str | Path) -> AttackResult:
    """The result that ``save_result`` wrote to ``path``, on the CPU."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
        where = f"{path} is not a result saved by pinprick: its header"
        header = read_json(metadata["pinprick"], where, largest=_LARGEST)
        if header.pop("format") != FORMAT:
            raise BadInput(f"{path} was written by another version of pinprick; run it again")
        header["remarks"] = tuple(header["remarks"])
        tensors.setdefault("out_of_time", torch.zeros_like(tensors["out_of_budget"]))
        goal = Goal(tensors.pop("labels"), tensors.pop("targets", None))
        header["found_by"] = tuple(header.get("found_by", ()))
        start = _passes(tensors, _START) if f"{_START}.forwards" in tensors else None
        stages = {name: _passes(tensors, f"{_STAGE}{name}") for name in header.pop("stages", [])}
        steps = {name: tensors.pop(f"{_TRACE}{name}", None) for name in FIELDS}
        trace = None if steps["steps"] is None else Trace(**steps)
        return AttackResult(goal=goal, stages=stages, start=start, trace=trace, **tensors, **header)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except _NOT_OURS as error:
        raise BadInput(f"{path} is not a result saved by pinprick: {error}") from error


def _passes(tensors: dict[str, Tensor], name: str) -> Passes:
    return Passes(tensors.pop(f"{name}.forwards"), tensors.pop(f"{name}.backwards"))


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
