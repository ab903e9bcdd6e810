"""Runs and images from a result that ``attack --save`` or ``save_result`` wrote."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from pinprick.pages.from_documents import entry_of_row, run_of_rows
from pinprick.pages.report_parts import Entry, Source, changed_pixels
from pinprick.report.result_tables import model_for_names
from pinprick.report.row import make_rows, plain
from pinprick.result import AttackResult
from pinprick.result_file import load_result
from pinprick.saved_batches import tensors_sha256


def read_saved_result(path: Path) -> Source:
    """The run of one file; images are named by their numbers."""
    result = load_result(path)
    rows = [plain(row) for row in make_rows(result, model_for_names(result, None))]
    images = [f"image {number}" for number in result.ids.tolist()]
    run = run_of_rows(
        rows,
        images,
        model=result.model or "unnamed model",
        data=_data_name(result),
        attack=str(result.attack.get("name", "attack")),
        settings={key: value for key, value in result.attack.items() if key != "name"},
        seed=result.seed,
    )
    run = replace(run, elements=math.prod(result.images.shape[1:]))
    read = partial(_entries, result, rows, {name: at for at, name in enumerate(images)})
    return Source(name=str(path), runs=[(run, read)])


def _data_name(result: AttackResult) -> str:
    """The same for the same images and labels, so that attacks on them are compared."""
    digest = tensors_sha256([("images", result.images), ("labels", result.goal.labels)])
    assert digest is not None
    return f"{len(result)} saved images ({digest[:8]})"


def _entries(
    result: AttackResult,
    rows: Sequence[Mapping[str, Any]],
    by_name: Mapping[str, int],
    wanted: Sequence[str],
) -> list[Entry]:
    entries = []
    for image in wanted:
        at = by_name[image]
        clean, after = (one[at].permute(1, 2, 0) for one in (result.images, result.adversarial))
        eight_bit = (clean * 255).round().to(torch.uint8)
        moved = (clean != after).any(dim=2, keepdim=True)
        # unchanged pixels as in the clean image, which may have no 8-bit values itself
        shown = torch.where(moved, after.float(), eight_bit.float() / 255)
        entries.append(
            entry_of_row(
                rows[at],
                image,
                image,
                picture=eight_bit.numpy(),
                change=changed_pixels(eight_bit.numpy(), shown.numpy()),
            )
        )
    return entries
