"""Attacked pictures as files: the adversarial PNG, judged again from the disk, and a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinprick.data.pictures import Named
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.report.attack_figure import attack_figure
from pinprick.report.png import read_png, save_figure, save_png
from pinprick.report.row import Prediction, Row, make_rows, plain, predictions
from pinprick.result import AttackResult
from pinprick.run import hear


@dataclass(frozen=True, kw_only=True, eq=False)
class Exhibit:
    """One attacked picture: what was measured, and the files made of it.

    Attributes:
        photo: The picture it came from.
        row: What was measured.
        reread: What the model says of the PNG, read back from the disk.
        reread_fools: Whether that still meets the goal.
        adversarial: The PNG; a path.
        figure: Before, change and after; a path, if it was drawn.
    """

    photo: Named
    row: Row
    reread: Prediction
    reread_fools: bool
    adversarial: Path
    figure: Path | None

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; file names are relative to the folder."""
        return {
            "name": self.photo.name,
            "path": str(self.photo.path),
            "reading": self.photo.remark,
            **plain(self.row),
            "png": {**plain(self.reread), "fools": self.reread_fools},
            "files": {
                "adversarial": self.adversarial.name,
                "figure": None if self.figure is None else self.figure.name,
            },
        }


def hang(
    result: AttackResult,
    photos: Sequence[Named],
    model: Classifier,
    folder: Path,
    *,
    title: str,
    figures: int | None = None,
) -> list[Exhibit]:
    """Write the files of one batch into ``folder``, which must exist; all figures, or so many."""
    try:
        return [
            _hang_one(
                row,
                photo,
                model,
                result[i],
                folder,
                title if figures is None or i < figures else None,
            )
            for i, (row, photo) in enumerate(zip(make_rows(result, model), photos, strict=True))
        ]
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror or error}") from error


def _hang_one(
    row: Row,
    photo: Named,
    model: Classifier,
    result: AttackResult,
    folder: Path,
    title: str | None,
) -> Exhibit:
    adversarial = folder / f"{photo.name}-adversarial.png"
    save_png(result.adversarial[0], adversarial)
    figure = None
    if title is not None:
        figure = folder / f"{photo.name}-figure.png"
        drawing = attack_figure(
            row, result.images[0], result.adversarial[0], title=f"{photo.name}: {title}"
        )
        save_figure(drawing, figure)
    again = read_png(adversarial).to(model.device or result.images.device, result.images.dtype)
    with model.frozen():
        logits = hear(model, again.unsqueeze(0))[0].to(result.images.device)
    return Exhibit(
        photo=photo,
        row=row,
        reread=predictions(logits, model)[0],
        reread_fools=bool(result.goal.met(logits)[0]),
        adversarial=adversarial,
        figure=figure,
    )
