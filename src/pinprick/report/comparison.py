"""Several attacks on the same pictures, gathered picture by picture."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pinprick.attacks.card import Attack
from pinprick.data.pictures import Named
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.report.compare_figure import Column, compare_figure
from pinprick.report.judge import judge_images
from pinprick.report.png import save_figure
from pinprick.report.row import Prediction, make_rows, plain, predictions
from pinprick.report.words import settings_in_words
from pinprick.result import AttackResult
from pinprick.types import Images, Logits, Picture


@dataclass(frozen=True, eq=False)
class Comparison:
    """One picture under several attacks.

    Attributes:
        photo: The picture.
        image: The same as the model wants it.
        clean: What the model says of it.
        judged: What the judge says of it, if there is one.
        title: What stands over its figure.
        columns: One for each attack that is done, in order.
    """

    photo: Named
    image: Picture
    clean: Prediction
    judged: Prediction | None
    title: str
    columns: list[Column] = field(default_factory=list)

    @property
    def figure(self) -> str:
        return f"{self.photo.name}-compare.png"

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "name": self.photo.name,
            "path": str(self.photo.path),
            "reading": self.photo.remark,
            "judge": None if self.judged is None else plain(self.judged),
            "figure": self.figure,
            "attacks": [
                {
                    "attack": column.name,
                    "settings": column.settings,
                    **plain(column.row),
                    "judge": None if column.judged is None else plain(column.judged),
                }
                for column in self.columns
            ],
        }


def start_comparisons(
    photos: Sequence[Named],
    images: Images,
    logits: Logits,
    model: Classifier,
    judge: Classifier | None,
) -> list[Comparison]:
    """One for each picture, without a column yet."""
    judged = [None] * len(photos) if judge is None else judge_images(judge, images)
    seen = "" if judge is None else f"; classes as {judge.name} sees them"
    return [
        Comparison(photo, image, clean, said, f"{photo.name} on {model.name}{seen}")
        for photo, image, clean, said in zip(
            photos, images, predictions(logits, model), judged, strict=True
        )
    ]


def add_columns(
    comparisons: Sequence[Comparison],
    attack: Attack,
    result: AttackResult,
    model: Classifier,
    judge: Classifier | None,
) -> None:
    """What ``attack`` did to the first few of the pictures, one batch of them."""
    adv = result.adversarial
    judged = [None] * len(adv) if judge is None else judge_images(judge, adv)
    rows, settings = make_rows(result, model), settings_in_words(attack)
    for comparison, row, image, said in zip(comparisons, rows, adv, judged, strict=False):
        column = Column(attack.card.name, attack.card.title, row, image, said, settings)
        comparison.columns.append(column)


def save_comparison(comparison: Comparison, folder: Path) -> None:
    """Draw the figure and write it into ``folder``, which must exist."""
    wanted = {column.row.target_name for column in comparison.columns} - {None}
    figure = compare_figure(
        comparison.image,
        comparison.columns,
        title="; wanted ".join([comparison.title, *sorted(map(str, wanted))]),
        clean_prediction=comparison.judged or comparison.clean,
    )
    try:
        save_figure(figure, folder / comparison.figure)
    except OSError as error:
        raise BadInput(f"cannot write to {folder}: {error.strerror or error}") from error
