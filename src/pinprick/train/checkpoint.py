"""The state of a training in one file, so that it can be killed at any time and resumed.

A thread of its own writes it after every epoch, while the next one begins. There is always one
complete file: the new one or the one before. Weights, momentum and the averaged weights are tensors
of a ``.safetensors`` file. The rest is JSON in its metadata, with a checksum of the tensors.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pinprick.errors import BadInput, one_line
from pinprick.files import atomic_write, remove_leftovers
from pinprick.json_text import read_json

CHECKPOINT = "checkpoint.safetensors"

Epoch = TypeVar("Epoch")
Record = dict[str, Any]


def save_each(
    path: Path, epochs: Iterable[Epoch], state: Callable[[], tuple[dict[str, Tensor], Record]]
) -> Iterator[Epoch]:
    """The epochs, with a checkpoint of the state after each."""
    writer = CheckpointWriter(path)
    try:
        for epoch in epochs:
            writer.write(*state())
            yield epoch
        writer.wait()
    finally:
        writer.close()


class CheckpointWriter:
    """Writes one checkpoint after another to the same file."""

    def __init__(self, path: Path) -> None:
        remove_leftovers(path)
        self.path = path
        self._thread = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def write(self, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
        """Begin to write, after the one before; the caller must not change ``tensors``."""
        self.wait()
        on_cpu = {name: tensor.to("cpu").contiguous() for name, tensor in tensors.items()}
        self._last = self._thread.submit(_write, self.path, on_cpu, record)

    def wait(self) -> None:
        """Wait until the last one is written; ``BadInput`` if it could not be."""
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def close(self) -> None:
        self._thread.shutdown(wait=True)


def _write(path: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    text = json.dumps({"record": record, "check": _checksum(tensors)})
    with atomic_write(path, flush=True) as temporary:
        save_file(tensors, temporary, {"training": text})


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and record of a checkpoint; ``BadInput`` if it is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            text = (file.metadata() or {}).get("training")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None
    if text is None:
        raise BadInput(f"{path} is no checkpoint of pinprick; choose another folder")
    try:
        held = read_json(text, "its record")
        record: dict[str, Any] = held["record"]
        check = held["check"]
    except (BadInput, KeyError, TypeError) as error:
        raise _damaged(path, error) from None
    if check != _checksum(tensors):
        raise _damaged(path, "its checksum is wrong")
    return tensors, record


def _damaged(path: Path, why: object) -> BadInput:
    return BadInput(f"the checkpoint {path} is damaged ({one_line(why)}); delete it to begin again")


def _checksum(tensors: dict[str, Tensor]) -> int:
    check = 0
    for name in sorted(tensors):
        values = tensors[name].flatten().view(torch.uint8) if tensors[name].numel() else None
        check = zlib.crc32(b"" if values is None else values.numpy().data, check)
    return check
