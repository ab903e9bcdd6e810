"""A result as flat rows and as a CSV file, one row per image."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from pinprick.errors import BadInput
from pinprick.files import atomic_write
from pinprick.model import Classifier
from pinprick.report.row import Row, make_rows, plain
from pinprick.result import AttackResult

_NEEDED = ("needed_pixels", "needed_elements")
_PREDICTIONS = ("clean", "adversarial", "rounded")


def flat_rows(result: AttackResult, model: Classifier | None = None) -> list[dict[str, Any]]:
    """One dict of plain values per image, with the same keys for all images.

    Names are those of ``Row``, with ``id`` before them. A prediction is three columns: the index of
    the class, its name and the confidence. The trace is left out. Needed units are infinite where
    the goal was not met: a median over None would leave failures out.
    """
    rows = make_rows(replace(result, trace=None), model_for_names(result, model))
    return [
        {"id": number, **_flat(row)} for number, row in zip(result.ids.tolist(), rows, strict=True)
    ]


def write_csv(rows: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write rows with the same keys as a CSV file with a header; None is an empty cell."""
    if not rows:
        raise BadInput("the result holds no image to write as a row")
    with (
        atomic_write(Path(path)) as temporary,
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def model_for_names(result: AttackResult, model: object) -> Classifier:
    """The given model, or for None a stand-in, which is not asked: its classes have no names."""
    if model is None:
        return Classifier(_no_answer, name=result.model)
    if not isinstance(model, Classifier):
        raise BadInput(
            "model must be the attacked Classifier, which has the names of the classes; got "
            f"{model!r:.80}. Names alone go in as Classifier(net, classes=names)"
        )
    return model


def _no_answer(_: Tensor) -> Tensor:
    raise BadInput("this model stands for the names of its classes; it cannot be asked")


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in plain(row).items():
        if name in _PREDICTIONS:
            flat[name] = value["index"]
            flat |= {f"{name}_{key}": value[key] for key in ("name", "confidence")}
        elif name == "stages":
            for stage, (forwards, backwards) in value.items():
                flat |= {f"{stage}_forwards": forwards, f"{stage}_backwards": backwards}
        elif name == "start":
            flat["start_forwards"], flat["start_backwards"] = value or (None, None)
        elif name in _NEEDED:
            flat[name] = math.inf if value is None else value
        elif name != "trace":
            flat[name] = value
    return flat
