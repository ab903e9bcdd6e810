"""Where an attack of the shell begins: at a saved result, or at images of the target class."""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from pinprick.cli.inputs import Inputs
from pinprick.data.dataset import Dataset
from pinprick.data.match_labels import match_labels
from pinprick.data.select import load_subset
from pinprick.data.subset import Subset, parse
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.random import Streams
from pinprick.result import AttackResult, join
from pinprick.result_file import load_result, save_result
from pinprick.types import Images

Start = Callable[[Inputs, Classifier], AttackResult | Tensor | None]  # for some of the pictures

_DATA = "data"


def open_start(
    text: str | None, data: str | None, *, root: Path | None, target: str | None, seed: int
) -> Start:
    """What ``--start`` stands for; ``data`` is the set that the pictures are from."""
    if text is None:
        return lambda group, model: None
    if text != _DATA:
        result = load_result(text)
        return lambda group, model: of_result(result, group, text)
    if data is None or target is None:
        raise BadInput("--start data takes images of the class of --target from the set of --data")
    subset = parse(data)
    whole = load_subset(Subset(subset.name, subset.split), root=root)
    return lambda group, model: of_target(whole, group, model, seed)


def of_result(result: AttackResult, group: Inputs, name: str) -> AttackResult:
    """The rows of a saved result that belong to the pictures, by their numbers."""
    place = {number: row for row, number in enumerate(result.ids.tolist())}
    for number, photo in zip(group.ids.tolist(), group.photos, strict=True):
        if number not in place:
            raise BadInput(
                f"the start {name} has {len(result)} images, but not {photo.name}; "
                "it must be of the same pictures"
            )
    rows = [place[number] for number in group.ids.tolist()]
    return result[torch.tensor(rows, dtype=torch.long)]


def of_target(whole: Dataset, group: Inputs, model: Classifier, seed: int) -> Images:
    """An image of the wanted class for each, drawn from the set by labels, with no question asked.

    One that the model takes for another class is no start, which an attack finds out by itself.
    """
    assert group.targets is not None, "open_start saw to that"
    labels = match_labels(whole, model, group.logits.shape[1])[0].labels
    draws = Streams(seed, group.ids).uniform(1, step=0, use="image of the target class").flatten()
    rows = []
    for target, draw in zip(group.targets.tolist(), draws.tolist(), strict=True):
        pool = (labels == target).nonzero().flatten()
        if not len(pool):
            raise BadInput(f"no image of {whole.source} is labelled {model.class_name(target)}")
        rows.append(int(pool[int(draw * len(pool))]))
    return whole[torch.tensor(rows, dtype=torch.long)].images(model)


def check_place(path: Path | None) -> None:
    """Raise ``BadInput`` where no file can be written, before the work starts."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise BadInput(f"cannot write {path}: give --save a file in a folder that is there")


def keep(results: list[AttackResult], path: Path) -> None:
    """Write the result of all batches, images and all, to one file."""
    try:
        save_result(join(results), path)
    except (OSError, SafetensorError) as error:
        raise BadInput(f"cannot write {path}: {error}") from error
