"""A result as PNG files with a list of them, and as a figure."""

import io
from pathlib import Path

from matplotlib.figure import Figure

from pinprick.errors import BadInput
from pinprick.files import open_folder, writing
from pinprick.model import Classifier
from pinprick.report.drawing import draw_changes, draw_picture, write_around
from pinprick.report.png import save_png
from pinprick.report.result_tables import model_for_names, write_csv
from pinprick.report.row import make_rows
from pinprick.report.words import changed, folded, outcome_words, prediction_below
from pinprick.result import AttackResult

LIST = "images.csv"


def save_pngs(result: AttackResult, folder: str | Path) -> list[Path]:
    """Write every adversarial image as a PNG, and images.csv, which says which of them fool.

    A PNG holds 8-bit values. Whether it fools is judged by the logits of the rounded image.
    """
    if result.images.shape[1] not in (1, 3):
        raise BadInput(f"a PNG holds 1 or 3 channels, these images have {result.images.shape[1]}")
    folder = Path(folder)
    open_folder(folder)
    paths = [folder / f"{row:04d}.png" for row in range(len(result))]
    with writing(folder):
        for path, image in zip(paths, result.adversarial, strict=True):
            save_png(image, path)
    targets = result.goal.targets
    columns = {
        "file": [path.name for path in paths],
        "id": result.ids.tolist(),
        "label": result.goal.labels.tolist(),
        "target": [None] * len(result) if targets is None else targets.tolist(),
        "prediction": result.rounded_logits.argmax(dim=1).tolist(),
        "attacked": (~result.skipped).tolist(),
        "fools": (result.survives_8bit & ~result.skipped).tolist(),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_csv(rows, folder / LIST)
    return paths


class ShownFigure(Figure):
    """A figure that a notebook shows, without pyplot and its global state."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", bbox_inches="tight", pad_inches=0.1)
        return file.getvalue()


def plot_result(result: AttackResult, model: Classifier | None = None, *, most: int = 8) -> Figure:
    """One line per image for the first ``most`` images: before, what changed, after."""
    if not len(result):
        raise BadInput("the result holds no image to draw")
    if most < 1:
        raise BadInput(f"most must be at least 1, got {most}")
    shown = result[:most]
    rows = make_rows(shown, model_for_names(result, model))
    figure = ShownFigure(figsize=(7.2, 0.4 + 2.9 * len(shown)), dpi=110, layout="constrained")
    rest = f", first {most} of {len(result)} images" if len(result) > most else ""
    name, model_name = result.attack.get("name", "attack"), result.model or "model"
    figure.suptitle(f"{name} on {model_name}{rest}", fontsize=11, parse_math=False)
    lines = figure.subplots(len(shown), 3, squeeze=False)
    for panels, row, one in zip(lines, rows, shown, strict=True):
        before, change, after = panels
        draw_picture(before, one.images[0])
        label = folded(f"label: {row.label_name}", 26)
        write_around(before, label, prediction_below(row.clean))
        how = draw_changes(change, one.images[0], one.adversarial[0])
        write_around(change, how, changed(row))
        draw_picture(after, one.adversarial[0])
        write_around(after, folded(outcome_words(row), 26), prediction_below(row.adversarial))
    return figure
