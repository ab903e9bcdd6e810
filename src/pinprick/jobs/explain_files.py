"""Explained pictures as files: the adversarial PNG, a figure with maps, and one with effects."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pinprick.data.pictures import PictureRecord
from pinprick.errors import BadInput
from pinprick.explain.class_scores import rivals
from pinprick.explain.explain_result import Explained
from pinprick.explain.maps.guided import guided_gradients
from pinprick.explain.maps.maps import PixelMaps
from pinprick.explain.noise.changes import save_changes, without_pixels
from pinprick.explain.noise.explanation import Explanation
from pinprick.files import writing
from pinprick.model import Classifier
from pinprick.report.effects_figure import effects_figure
from pinprick.report.explain_figure import Views, explain_figure
from pinprick.report.png import save_figure, save_png
from pinprick.report.row import Row, make_rows, plain
from pinprick.types import Images, Labels, Picture

_LISTED = 1024  # changed pixels up to which explanation.json lists them


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainedPicture:
    """One explained picture: what was measured, and the files made from it.

    Attributes:
        record: The picture it came from.
        row: What was measured of the attack, including polishing.
        explanation: The explanation; without the lists of pixels if they are in ``changes``.
        rival_name: The class that the changed pixels lead to.
        adversarial: Path of the adversarial PNG; None for images that are neither grey nor RGB.
        changes: Path of the file with the lists of pixels; None if the explanation has them.
        figure, effects: Paths of the two figures; None if they were not drawn.
    """

    record: PictureRecord
    row: Row
    explanation: Explanation
    rival_name: str
    adversarial: Path | None
    changes: Path | None
    figure: Path | None
    effects: Path | None

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; file names are relative to the folder."""
        files = {
            "adversarial": self.adversarial,
            "changes": self.changes,
            "figure": self.figure,
            "effects": self.effects,
        }
        return {
            "name": self.record.name,
            "path": str(self.record.path),
            "reading": self.record.remark,
            **plain(self.row),
            "rival_name": self.rival_name,
            "explanation": self.explanation.to_dict(),
            "files": {name: None if path is None else path.name for name, path in files.items()},
            "label_from": self.record.label_from,
        }


def save_explanations(
    explained: Explained,
    records: Sequence[PictureRecord],
    model: Classifier,
    folder: Path,
    *,
    title: str,
    figures: Collection[int] | None = None,
) -> list[ExplainedPicture]:
    """Write the files of one batch to ``folder``, which must exist.

    Args:
        explained: The explained batch.
        records: Its pictures.
        model: The model, which is asked for guided gradients of the images that are drawn.
        folder: Where to write.
        title: The attack and the model.
        figures: Rows of the batch to draw; all if None.
    """
    rows = make_rows(explained.result, model)
    drawn = [i for i in range(len(rows)) if figures is None or i in figures]
    views = dict(zip(drawn, make_views(explained, model, drawn), strict=True)) if drawn else {}
    pictures = []
    with writing(folder):
        for i, (record, row, whole) in enumerate(
            zip(records, rows, explained.explanations, strict=True)
        ):
            figure = effects = None
            if i in views:
                headline = f"{record.name}: {title}"
                figure, effects = _draw(row, whole, views[i], folder / record.name, headline)
            adversarial, changes = _save(
                explained.result.adversarial[i], whole, folder / record.name
            )
            pictures.append(
                ExplainedPicture(
                    record=record,
                    row=row,
                    explanation=whole if changes is None else without_pixels(whole),
                    rival_name=model.class_name(whole.rival),
                    adversarial=adversarial,
                    changes=changes,
                    figure=figure,
                    effects=effects,
                )
            )
    return pictures


def _draw(
    row: Row, explanation: Explanation, views: tuple[Views, Views], stem: Path, title: str
) -> tuple[Path, Path | None]:
    """Write both figures; the second only where something changed."""
    clean, adversarial = views
    figure = stem.with_name(f"{stem.name}-explained.png")
    save_figure(explain_figure(row, explanation, clean, adversarial, title=title), figure)
    if not explanation.groups:
        return figure, None
    effects = stem.with_name(f"{stem.name}-effects.png")
    names = {"true_name": clean.class_name, "rival_name": adversarial.class_name}
    save_figure(effects_figure(explanation, title=title, **names), effects)
    return figure, effects


def _save(
    picture: Picture, explanation: Explanation, stem: Path
) -> tuple[Path | None, Path | None]:
    """Write the adversarial PNG, and the lists of pixels if they are too long for the JSON file."""
    adversarial = stem.with_name(f"{stem.name}-adversarial.png") if len(picture) in (1, 3) else None
    if adversarial is not None:
        save_png(picture, adversarial)
    if explanation.changed_pixels <= _LISTED:
        return adversarial, None
    changes = stem.with_name(f"{stem.name}-changes.safetensors")
    save_changes(explanation, changes)
    return adversarial, changes


def make_views(
    explained: Explained, model: Classifier, rows: Sequence[int]
) -> list[tuple[Views, Views]]:
    """Clean and adversarial images with their maps, for some rows of the batch."""
    chosen = torch.tensor(rows, dtype=torch.long, device=explained.result.images.device)
    result = explained.result[chosen]
    true, other = (
        None if maps is None else maps.values[chosen.to(maps.values.device)]
        for maps in (explained.true_maps, explained.adversarial_maps)
    )
    method = "Map" if explained.true_maps is None else explained.true_maps.method
    clean = _views(result.images, result.goal.labels, true, method, model)
    adversarial = _views(result.adversarial, rivals(result), other, method, model)
    return list(zip(clean, adversarial, strict=True))


def _views(
    images: Images, classes: Labels, maps: PixelMaps | None, method: str, model: Classifier
) -> list[Views]:
    heats = [None] * len(images) if maps is None else list(maps)
    guided, why_not = _guided(images, classes, maps, model)
    return [
        Views(
            picture=picture,
            class_name=model.class_name(number),
            method=method,
            heat=heat,
            guided=None if guided is None else guided[i],
            why_not=why_not,
        )
        for i, (picture, number, heat) in enumerate(
            zip(images, classes.tolist(), heats, strict=True)
        )
    ]


def _guided(
    images: Images, classes: Labels, maps: PixelMaps | None, model: Classifier
) -> tuple[Images | None, str]:
    """Guided Grad-CAM from maps that are there already, or why there is none."""
    if maps is None:
        return None, "no guided map without a map of the class"
    try:
        values = guided_gradients(model, images, classes).values
    except BadInput as error:
        return None, str(error)
    return values * maps.unsqueeze(1), ""
