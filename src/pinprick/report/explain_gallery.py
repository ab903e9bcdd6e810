"""Explained pictures as files: the adversarial PNG, a figure of the maps, one of the effects."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinprick.data.pictures import Named
from pinprick.errors import BadInput
from pinprick.explain.explain_result import Explained
from pinprick.explain.noise.changes import save_changes, without_pixels
from pinprick.explain.noise.explanation import Explanation
from pinprick.model import Classifier
from pinprick.report.effects_figure import effects_figure
from pinprick.report.explain_figure import Views, explain_figure
from pinprick.report.explain_views import views_of
from pinprick.report.png import save_figure, save_png
from pinprick.report.row import Row, make_rows, plain
from pinprick.types import Picture

_LISTED = 1024  # changed pixels up to which an explanation keeps the list of them


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainedPicture:
    """One explained picture: what was measured, and the files made of it.

    Attributes:
        photo: The picture it came from.
        row: What was measured of the attack, polishing included.
        explanation: What was found out; without the lists of pixels where there are too many.
        rival_name: The class it was led to, in words.
        adversarial: The adversarial image as a PNG, rounded to 8-bit values; a path. None for
            images that are neither grey nor RGB.
        changes: The lists of pixels, where the explanation has none; a path.
        figure, effects: The two figures; paths, if they were drawn.
    """

    photo: Named
    row: Row
    explanation: Explanation
    rival_name: str
    adversarial: Path | None
    changes: Path | None
    figure: Path | None
    effects: Path | None

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; file names are relative to the folder."""
        return {
            "name": self.photo.name,
            "path": str(self.photo.path),
            "reading": self.photo.remark,
            **plain(self.row),
            "rival_name": self.rival_name,
            "explanation": self.explanation.to_dict(),
            "files": {
                name: None if path is None else path.name
                for name, path in (
                    ("adversarial", self.adversarial),
                    ("changes", self.changes),
                    ("figure", self.figure),
                    ("effects", self.effects),
                )
            },
        }


def hang_explanations(
    told: Explained,
    photos: Sequence[Named],
    model: Classifier,
    folder: Path,
    *,
    title: str,
    figures: Collection[int] | None = None,
) -> list[ExplainedPicture]:
    """Write the files of one batch into ``folder``, which must exist.

    ``figures`` has the places in the batch of the images to draw; all of them if None.
    """
    rows = make_rows(told.result, model)
    drawn = [i for i in range(len(rows)) if figures is None or i in figures]
    views = views_of(told, model, drawn) if drawn else []
    files: list[tuple[Path | None, Path | None]] = [(None, None)] * len(rows)
    try:
        for i, pair in zip(drawn, views, strict=True):
            headline = f"{photos[i].name}: {title}"
            files[i] = _draw(rows[i], told.explanations[i], pair, photos[i], folder, headline)
        saved = [
            _save(picture, whole, photo, folder)
            for picture, whole, photo in zip(
                told.result.adversarial, told.explanations, photos, strict=True
            )
        ]
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror or error}") from error
    return [
        ExplainedPicture(
            photo=photo,
            row=row,
            explanation=whole if changes is None else without_pixels(whole),
            rival_name=model.class_name(whole.rival),
            adversarial=adversarial,
            changes=changes,
            figure=figure,
            effects=effects,
        )
        for photo, row, whole, (adversarial, changes), (figure, effects) in zip(
            photos, rows, told.explanations, saved, files, strict=True
        )
    ]


def _save(
    picture: Picture, told: Explanation, photo: Named, folder: Path
) -> tuple[Path | None, Path | None]:
    """The adversarial PNG, and the lists of pixels where they are too many for the JSON file."""
    adversarial = folder / f"{photo.name}-adversarial.png" if len(picture) in (1, 3) else None
    if adversarial is not None:
        save_png(picture, adversarial)
    if told.changed_pixels <= _LISTED:
        return adversarial, None
    changes = folder / f"{photo.name}-changes.safetensors"
    save_changes(told, changes)
    return adversarial, changes


def _draw(
    row: Row,
    told: Explanation,
    views: tuple[Views, Views],
    photo: Named,
    folder: Path,
    title: str,
) -> tuple[Path | None, Path | None]:
    figure, effects = (folder / f"{photo.name}-{word}.png" for word in ("explained", "effects"))
    clean, adversarial = views
    save_figure(explain_figure(row, told, clean, adversarial, title=title), figure)
    if not told.groups:
        return figure, None
    names = {"true_name": clean.class_name, "rival_name": adversarial.class_name}
    save_figure(effects_figure(told, title=title, **names), effects)
    return figure, effects
