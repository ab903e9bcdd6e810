"""Finished batches of an attack in a folder, so that a run that was stopped can be resumed.

    run.json                   what decides the results: settings, seed, digests of weights and data
    batch-00000.safetensors    the result of the first batch, as ``save_result`` writes it

Files are written whole, so a process may be killed at any time. A batch is finished when its file
is there and holds the images it should.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from pinprick.attacks.card import Attack, Card
from pinprick.batch_rows import BatchRows
from pinprick.errors import BadInput
from pinprick.files import open_folder, remove_leftovers, write_text
from pinprick.intake import Task
from pinprick.json_text import read_json_file
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.result_file import load_result, save_result

FORMAT = 1
_RUN, _BATCH, _ANY_BATCH = "run.json", "batch-{:05}.safetensors", "batch-*.safetensors"
_WAY_OUT = "resume with the same, or start again without the saved batches"
_DIGESTS = {
    "weights": "other model weights",
    "buffers": "other draws, or other buffers of the network",
    "images": "other images",
    "labels": "other labels",
    "targets": "other targets",
    "ids": "other ids",
    "allowed": "another mask",
    "start": "another start",
}


class SavedBatches:
    """The finished batches of one run, in a folder.

    Args:
        folder: The folder; it is made if it is missing.
        run: What decides the results, as plain data. A folder that was made with another run is
            refused.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        open_folder(folder)
        self._folder = folder
        now, path = json.loads(json.dumps({"format": FORMAT, **run})), folder / _RUN
        if path.exists():
            _check_same(read_json_file(path), now, folder)
        elif count_batches(folder):
            raise BadInput(
                f"{folder} has batches, but no {_RUN} to resume from; start again without them"
            )
        else:
            remove_leftovers(path)
            write_text(path, json.dumps(now, indent=2) + "\n")

    def load(self, number: int, part: Task) -> AttackResult | None:
        """The result of a batch, on the device of its images; None if it is not finished."""
        path = self._folder / _BATCH.format(number)
        if not path.exists():
            return None
        way_out = f"remove {path.name} to attack its images again"
        try:
            result = load_result(path)
        except BadInput as error:
            raise BadInput(f"{error}; {way_out}") from error
        home = part.images.device
        same = len(result) == len(part) and torch.equal(result.ids, part.ids.to("cpu"))
        if not same or not torch.equal(result.images, part.images.to("cpu")):
            raise BadInput(f"{path} holds other images than batch {number} of this run; {way_out}")
        return result.to(home)

    def save(self, number: int, result: AttackResult) -> None:
        path = self._folder / _BATCH.format(number)
        remove_leftovers(path)
        save_result(result, path)


def count_batches(folder: Path) -> int:
    """The number of finished batches in a folder and the folders in it."""
    return sum(1 for _ in folder.rglob(_ANY_BATCH))


def count_images(folder: Path) -> int:
    """The number of images in the finished batches of a folder and the folders in it."""
    count = 0
    for batch in folder.rglob(_ANY_BATCH):
        with suppress(SafetensorError, OSError), safe_open(batch, framework="pt") as file:
            count += file.get_slice("ids").get_shape()[0]
    return count


def saved_threads(folder: Path) -> int | None:
    """The number of CPU threads of the batches in a folder and those in it; None if unknown."""
    for batch in folder.rglob(_ANY_BATCH):
        path = batch.parent / _RUN
        run = read_json_file(path) if path.exists() else None
        if isinstance(run, dict) and isinstance(run.get("threads"), int):
            return int(run["threads"])
    return None


def remove_batches(folder: Path) -> None:
    """Remove the batches of a run, and their folder if nothing else is in it."""
    for pattern in (_ANY_BATCH, f".{_ANY_BATCH}.*.tmp", _RUN, f".{_RUN}.*.tmp"):
        for path in list(folder.glob(pattern)):
            path.unlink(missing_ok=True)
    with suppress(OSError):  # it is not empty
        folder.rmdir()


def describe_run(
    attack: Attack,
    facts: Card,
    model: Classifier,
    task: Task,
    *,
    seed: int,
    max_seconds: float | None,
    speed: str = "exact",
) -> dict[str, Any]:
    """All that decides the results of a run, as plain data; tensors as their SHA-256."""
    device = model.device or task.images.device
    return {
        "attack": attack.describe(),
        "revision": facts.revision,
        "model": model.name,
        "access": model.access,
        "mean": model.mean,
        "std": model.std,
        "weights": weights_sha256(model),
        "buffers": tensors_sha256(_unsaved_buffers(model)),
        "images": tensors_sha256([("images", task.images)]),
        "labels": tensors_sha256([("labels", task.goal.labels)]),
        "targets": tensors_sha256(_tensors(task.goal.targets)),
        "ids": tensors_sha256([("ids", task.ids)]),
        "allowed": tensors_sha256(_tensors(task.allowed)),
        "start": tensors_sha256(_tensors(task.start)),
        "seed": seed,
        "batch_size": task.batch_size,
        "max_forwards": task.max_forwards,
        "max_backwards": task.max_backwards,
        "max_passes": task.max_passes,
        "max_seconds": max_seconds,
        "trace": task.trace,
        "device": device.type,
        "threads": torch.get_num_threads() if device.type == "cpu" else None,
        "speed": None if speed == "exact" else speed,
    }


def _tensors(value: Tensor | BatchRows | None) -> list[tuple[str, Any]]:
    if value is None:
        return []
    return [("", value)] if isinstance(value, Tensor) else list(value.tensors().items())


def weights_sha256(model: Classifier) -> str | None:
    """The SHA-256 of a network's weights; None for a model that is no network."""
    weights = model.net.state_dict() if isinstance(model.net, nn.Module) else {}
    return tensors_sha256(weights.items())


def _unsaved_buffers(model: Classifier) -> list[tuple[str, Tensor]]:
    """What a network computes with and does not save, such as the draws of one that votes."""
    if not isinstance(model.net, nn.Module):
        return []
    saved = model.net.state_dict().keys()
    return [(name, value) for name, value in model.net.named_buffers() if name not in saved]


def tensors_sha256(values: Iterable[tuple[str, Any]]) -> str | None:
    """The SHA-256 of tensors under their names; None if there are none."""
    digest, empty = hashlib.sha256(), True
    for name, value in values:
        if isinstance(value, Tensor):
            empty = False
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
            content = value.detach().cpu().contiguous().flatten().view(torch.uint8)
            digest.update(content.numpy().data)
    return None if empty else digest.hexdigest()


def _check_same(before: Any, now: Mapping[str, Any], folder: Path) -> None:
    """Raise ``BadInput`` unless both runs are the same."""
    if not isinstance(before, dict) or before.get("format") != FORMAT:
        raise BadInput(
            f"{folder / _RUN} was not written by this version of pinprick; start again without it"
        )
    for key, new in now.items():
        if before.get(key) != new:
            difference = _difference(key, before.get(key), new)
            raise BadInput(f"the run saved in {folder} has {difference}; {_WAY_OUT}")


def _difference(key: str, old: Any, new: Any) -> str:
    """Where two runs differ, in words."""
    if key in _DIGESTS:
        return _DIGESTS[key]
    if isinstance(old, dict) and isinstance(new, dict) and old.get("name") == new.get("name"):
        key = next(name for name in {**old, **new} if old.get(name) != new.get(name))
        old, new = old.get(key), new.get(key)
    if isinstance(old, dict) and isinstance(new, dict):
        old, new = old.get("name"), new.get("name")
    return f"{key} {_word(old)}, this one has {_word(new)}"


def _word(value: Any) -> str:
    return "none" if value is None else str(value)
