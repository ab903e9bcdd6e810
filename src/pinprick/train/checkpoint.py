"""The state of a training in one file, so that it can be killed at any time and taken up again.

Written aside, flushed and renamed after every epoch, by a thread of its own while the next epoch
begins: there is always one whole file, the new one or the one before. Weights, momentum and the
running mean are tensors of a ``.safetensors`` file, and all else is JSON in its metadata, with a
check sum over the tensors.
"""

import json
import os
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.json_text import read_json

CHECKPOINT = "checkpoint.safetensors"


class Writer:
    """Writes one checkpoint after another to the same file, and waits for the one before."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._helper = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def write(self, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
        """Begin to write; ``tensors`` are not to be changed by the caller any more."""
        self.wait()
        here = {name: tensor.to("cpu").contiguous() for name, tensor in tensors.items()}
        self._last = self._helper.submit(_write, self.path, here, record)

    def wait(self) -> None:
        """Wait until the last one is written, and say so if it could not be."""
        last, self._last = self._last, None
        if last is None:
            return
        try:
            last.result()
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadInput(f"cannot write {self.path}: {reason}") from None

    def close(self) -> None:
        self._helper.shutdown(wait=True)


def _write(path: Path, tensors: dict[str, Tensor], record: dict[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.tmp")  # one name: the half of a killed run is replaced
    text = json.dumps({"record": record, "check": _check(tensors)})
    try:
        save_file(tensors, aside, {"training": text})
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and record of a checkpoint; a damaged one is refused."""
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
    if check != _check(tensors):
        raise _damaged(path, "its check sum is wrong")
    return tensors, record


def _damaged(path: Path, why: object) -> BadInput:
    reason = " ".join(str(why).split()) or type(why).__name__
    return BadInput(f"the checkpoint {path} is damaged ({reason}); delete it to begin again")


def _check(tensors: dict[str, Tensor]) -> int:
    check = 0
    for name in sorted(tensors):
        values = tensors[name].flatten().view(torch.uint8) if tensors[name].numel() else None
        check = zlib.crc32(b"" if values is None else values.numpy().data, check)
    return check
