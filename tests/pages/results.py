"""Results that never ran, written as the files that a report reads."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from attacked_images import attacked
from bench.cells import ORIGIN

from pinprick import AttackResult, Goal, load_subset
from pinprick.bench.cell import Cell
from pinprick.bench.rows import error_table, to_table
from pinprick.bench.store import Store
from pinprick.report.png import save_png
from pinprick.report.result_tables import model_for_names
from pinprick.report.row import make_rows, plain
from pinprick.saved_batches import tensors_sha256

DATA = "fashion_sample/test[0:4]"


def sample(changes: list[int], name: str = "pin", **fields: Any) -> AttackResult:
    """The first images of fashion_sample with so many pixels set to white; 0 is a failure."""
    data = load_subset(DATA)
    images = data.images()[: len(changes)]
    adv = images.clone()
    for row, count in enumerate(changes):
        adv[row].view(-1)[:count] = 1.0  # all in the first rows, which are black
    base = attacked(*changes, name=name)
    fooled = torch.tensor([count > 0 for count in changes]).unsqueeze(1)
    labels = data.labels[: len(changes)]
    right = torch.nn.functional.one_hot(labels, 10).float()
    wrong = right.roll(1, dims=1)
    logits = torch.where(fooled, wrong, right)
    return replace(
        base,
        images=images,
        adversarial=adv,
        goal=Goal(labels),
        clean_logits=right,
        adversarial_logits=logits,
        rounded_logits=logits,
        ids=data.indices[: len(changes)],
        **fields,
    )


def write_folder(folder: Path, result: AttackResult, **changes: Any) -> Path:
    """A folder as ``pinprick attack`` writes it; ``changes`` replace keys of the document."""
    folder.mkdir(parents=True, exist_ok=True)
    images = []
    for row, one in zip(make_rows(result, model_for_names(result, None)), result, strict=True):
        number = int(one.ids[0])
        file = f"sample-{number}-adversarial.png"
        save_png(one.adversarial[0], folder / file)
        images.append(
            {
                "name": f"sample-{number}",
                "path": f"fashion_sample/test[{number}]",
                **plain(row),
                "png": {**plain(row.rounded), "fools": row.survives_8bit},
                "files": {"adversarial": file, "clean": None, "figure": None},
            }
        )
    document = {
        "format": 1,
        "attack": result.attack,
        "model": result.model,
        "data": DATA,
        "request": {"target": None, "root": None},
        "seed": result.seed,
        "pinprick": "0.1.0",
        "device": "cpu",
        "images": images,
        **changes,
    }
    (folder / "result.json").write_text(json.dumps(document))
    return folder


def write_store(folder: Path, results: list[AttackResult], *, error: str = "") -> Path:
    """A store with a cell per result; with ``error``, one more attack that has nothing else.

    A victim judged all images, and none of them fooled it.
    """
    store = Store(folder)
    store.prepare()
    for result in results:
        cell = _cell(result)
        labels = result.goal.labels
        store.write(
            cell,
            to_table(result, cell.key, victims=[labels], victims_clean=[labels]),
            ORIGIN,
        )
    if error:
        cell = _cell(results[0], name="broken")
        store.write(cell, error_table(cell.key, results[0].ids.tolist(), error), ORIGIN)
    return folder


def add_run_with_an_error(folder: Path, result: AttackResult, error: str) -> None:
    """One more cell for a store; its last image has an error in place of numbers."""
    cell, sound = _cell(result), result[:-1]
    labels = sound.goal.labels
    rows = to_table(sound, cell.key, victims=[labels], victims_clean=[labels])
    failed = error_table(cell.key, result.ids[-1:].tolist(), error)
    Store(folder).write(cell, pa.concat_tables([rows, failed]), ORIGIN)


def _cell(result: AttackResult, name: str | None = None) -> Cell:
    digest = tensors_sha256([("images", result.images), ("labels", result.goal.labels)])
    assert digest is not None
    return Cell(
        attack={"name": name or result.attack["name"]},
        revision=1,
        model="net",
        weights="a" * 64,
        data=DATA,
        data_hash=digest,
        first=0,
        last=len(result),
        seed=result.seed,
        victims=(("other net", "b" * 64),),
    )
