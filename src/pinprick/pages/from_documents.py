"""Runs and images from result.json, compare.json and explanation.json."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pinprick.errors import BadInput
from pinprick.files import reading
from pinprick.json_text import read_json
from pinprick.metrics.needed import Numbers
from pinprick.pages.document_pictures import picture_elements, pictures_of
from pinprick.pages.explained_groups import explained_groups
from pinprick.pages.report_parts import (
    PICTURES,
    Entry,
    ReportRun,
    Source,
    Status,
    Steps,
    Task,
)
from pinprick.report.document_summary import attack_images, outcomes_of
from pinprick.report.words import goal_words

NAMES = ("result.json", "compare.json", "explanation.json")
_MOST_BYTES = 200_000_000  # of a document; 10,000 images with traces have less

Row = Mapping[str, Any]


def read_document(path: Path) -> Source:
    """The runs of one file; ``BadInput`` if it is none of those that pinprick writes."""
    with reading(path):
        document = read_json(path.read_bytes(), str(path), largest=_MOST_BYTES)
    try:
        images = document["images"]
        runs = [
            _run(document, path.parent, name, settings, rows)
            for (name, settings), rows in attack_images(document).items()
        ]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{path} is not a result of pinprick; give a result.json, compare.json or "
            f"explanation.json ({type(error).__name__}: {error})"
        ) from None
    if not images:
        raise BadInput(f"{path} holds no image")
    made_with = {name: str(document.get(name, "")) for name in ("pinprick", "device")}
    return Source(name=str(path), runs=runs, made_with=made_with)


def _run(
    document: Row, folder: Path, name: str, settings: str, rows: Sequence[Row]
) -> tuple[ReportRun, Any]:
    """One attack of a document; in compare.json settings are text, else they are in full."""
    own = {"options": settings} if "attacks" in document else dict(document["attack"])
    pictures = document["images"][: len(rows)]
    run = run_of_rows(
        rows,
        [str(picture["path"]) for picture in pictures],
        model=str(document["model"]),
        data=str(document.get("data") or PICTURES),
        attack=name,
        settings={key: value for key, value in own.items() if key != "name"},
        seed=int(document.get("seed", 0)),
        asked=document.get("request", {}).get("target"),
    )
    if not run.elements:
        run = replace(run, elements=picture_elements(document, folder, pictures))
    by_path = {key: number for number, key in enumerate(run.images)}
    read = partial(_entries, document, folder, pictures, rows, by_path)
    return run, read


def run_of_rows(
    rows: Sequence[Row],
    images: Sequence[str],
    *,
    model: str,
    data: str,
    attack: str,
    settings: Mapping[str, Any],
    seed: int,
    asked: str | None = None,
) -> ReportRun:
    """A run from one row per image, as ``report.row`` writes them."""
    goal = goal_words([row.get("target_name") for row in rows], asked) or "untargeted"
    lost = [_status(row) == "fooled" and _png(row) is False for row in rows]
    return ReportRun(
        task=Task(model, data, goal),
        attack=attack,
        settings=settings,
        seed=seed,
        images=tuple(images),
        outcomes=outcomes_of(rows),
        first_success=_first_success(rows),
        lost_as_png=np.array(lost, dtype=bool),
        steps=_steps(rows),
        elements=max(map(_elements, rows)),
    )


def entry_of_row(row: Row, image: str, name: str, **pictures: Any) -> Entry:
    """What the gallery shows of one row."""
    status = _status(row)
    counted = status == "fooled"
    explained = row.get("explanation") or {"groups": []}  # none where nothing was changed
    return Entry(
        image=image,
        name=name,
        status=status,
        png=_png(row) if counted else None,
        pixels=row["l0_pixels"] if counted else None,
        elements=row["l0_elements"] if counted else None,
        forwards=row["forwards"],
        backwards=row["backwards"],
        margin=row.get("margin"),
        label=row["label_name"],
        target=row["target_name"],
        clean=row["clean"]["name"],
        adversarial=row["adversarial"]["name"],
        clean_confidence=row["clean"]["confidence"],
        adversarial_confidence=row["adversarial"]["confidence"],
        remark=row["remark"],
        explanation=explained_groups(explained, row) if explained["groups"] else None,
        **pictures,
    )


def _entries(
    document: Row,
    folder: Path,
    pictures: Sequence[Row],
    rows: Sequence[Row],
    by_path: Mapping[str, int],
    wanted: Sequence[str],
) -> list[Entry]:
    entries = []
    for image in wanted:
        number = by_path[image]
        picture, row = pictures[number], rows[number]
        shown = pictures_of(document, folder, picture, row)
        entries.append(entry_of_row(row, image, str(picture["name"]), **shown))
    return entries


def _status(row: Row) -> Status:
    if row["skipped"]:
        return "skipped"
    return "fooled" if row["success"] else "not fooled"


def _png(row: Row) -> bool:
    """Whether the file on the disk fools, or where it was not asked about, the rounded image."""
    return bool(row["png"]["fools"] if "png" in row else row["survives_8bit"])


def _first_success(rows: Sequence[Row]) -> Numbers:
    """Forward passes at the first step of a trace that met the goal."""

    def one(row: Row) -> float:
        if not row["success"]:
            return math.inf
        steps = row.get("trace") or ()
        met = (step["forwards"] for step in steps if step["pixels"] is not None)
        return float(next(met, math.nan))

    return np.array([one(row) for row in rows], dtype=np.float64)


def _elements(row: Row) -> int:
    """Elements of an image, from the count and percentage of those that changed."""
    if not row["l0_elements"]:
        return 0
    elements: int = round(100 * row["l0_elements"] / row["l0_elements_percent"])
    return elements


def _steps(rows: Sequence[Row]) -> Steps | None:
    steps = [
        (number, step["forwards"] + step["backwards"], step["pixels"], step["elements"])
        for number, row in enumerate(rows)
        for step in row.get("trace") or ()
        if step["pixels"] is not None
    ]
    if not steps:
        return None
    image, passes, pixels, elements = np.array(steps, dtype=np.float64).T
    return Steps(
        image=image.astype(np.int64),
        passes=passes.astype(np.int64),
        pixels=pixels,
        elements=elements,
    )
