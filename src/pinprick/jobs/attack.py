"""Attack pictures and write what came of it: adversarial PNGs, figures and result.json."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pinprick.attacks.card import Attack
from pinprick.data.pictures import PictureRecord, Unreadable
from pinprick.errors import BadInput, PinprickError
from pinprick.files import writing
from pinprick.jobs.attack_group import (
    RunOptions,
    attack_group,
    remark_probabilities,
    remark_speed,
    settle_threads,
)
from pinprick.jobs.device import device_and_versions, load_on_device, unanswered
from pinprick.jobs.output import IncrementalJson, IncrementalResult, open_out
from pinprick.jobs.pictures import (
    ChosenData,
    PictureSource,
    choose_data,
    list_unreadable,
    read_groups,
)
from pinprick.jobs.progress import Progress
from pinprick.jobs.resume import UnfinishedRun, describe_request
from pinprick.jobs.start import open_start
from pinprick.model import Classifier
from pinprick.report.attack_figure import attack_figure
from pinprick.report.attack_totals import attack_totals
from pinprick.report.png import read_png, save_figure, save_png
from pinprick.report.row import Prediction, Row, make_rows, plain, predictions
from pinprick.result import AttackResult
from pinprick.run import TimeLeft, logits_or_nan
from pinprick.speed import ModelPasses
from pinprick.threads import restored_threads


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackedPicture:
    """One attacked picture: what was measured, and the files made from it.

    Attributes:
        record: The picture it came from.
        row: What was measured.
        reread: The prediction for the PNG as it is on the disk.
        reread_fools: Whether the PNG on the disk meets the goal.
        adversarial: Path of the PNG.
        clean: Path of the PNG of the picture as the model saw it; None for images that the dataset
            itself holds in that form.
        figure: Path of the figure with clean image, change and adversarial image; None if it was
            not drawn.
    """

    record: PictureRecord
    row: Row
    reread: Prediction
    reread_fools: bool
    adversarial: Path
    clean: Path | None
    figure: Path | None

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; file names are relative to the folder."""
        return {
            "name": self.record.name,
            "path": str(self.record.path),
            "reading": self.record.remark,
            **plain(self.row),
            "png": {**plain(self.reread), "fools": self.reread_fools},
            "files": {
                "adversarial": self.adversarial.name,
                "clean": None if self.clean is None else self.clean.name,
                "figure": None if self.figure is None else self.figure.name,
            },
            "label_from": self.record.label_from,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackOutcome:
    """What an attack on pictures gave.

    Attributes:
        title: The attack and the model.
        pictures: The attacked pictures, in order.
        unreadable: Files and pictures that were left out, and why.
        document: What result.json holds.
        failure: The error that ended the run early, or that says how many questions a remote model
            did not answer; None if all went well. ``Stopped`` after Ctrl-C.
    """

    title: str
    pictures: list[AttackedPicture]
    unreadable: list[Unreadable]
    document: dict[str, Any]
    failure: PinprickError | None


@restored_threads()
def attack_pictures(
    attack: Attack,
    model: str | Classifier,
    source: PictureSource,
    out: Path,
    *,
    run: RunOptions | None = None,
    start: str | None = None,
    save: Path | None = None,
    figures: int | None = None,
    resume: bool | None = None,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> AttackOutcome:
    """Attack pictures; write PNGs, figures and result.json to the folder ``out``.

    An error or Ctrl-C after the first batch ends the run early. What was found until then is
    written and returned, and ``resume`` goes on from there.

    Args:
        attack: The attack with its settings.
        model: A model, or the name of one.
        source: The pictures.
        out: The folder; it is made if it is missing.
        run: Seed, batch size, limits and threads.
        start: Where to start, as for ``open_start``.
        save: A file for the result with all images, which ``start`` can name later.
        figures: Draw at most so many figures; all by default.
        resume: True goes on with a run that was stopped, False starts again. None refuses where a
            run was stopped.
        device: The device for a model given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks and counts.
    """
    run, progress = run or RunOptions(), progress or Progress()
    _check_save_file(save)
    start_of = None if start is None else open_start(start, source, seed=run.seed)
    open_out(out)
    unfinished = UnfinishedRun(out, "result.json", resume=resume, progress=progress)
    run = unfinished.with_threads(run)
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    groups, total = read_groups(source, chosen, classifier, progress)

    title = f"{attack.card.title} on {classifier.name}"
    request = describe_request([attack], model, source, run, start=start)
    document = partial(attack_document, classifier, chosen, request)
    time_left = TimeLeft(run.max_seconds)
    pictures: list[AttackedPicture] = []
    unreadable: list[Unreadable] = []
    file, saved = IncrementalJson(out / "result.json"), IncrementalResult(save, model)
    failure: PinprickError | None = None
    passes, remark = ModelPasses(classifier, run.speed), ""
    try:
        with (
            unfinished,
            file,
            saved,
            passes,
            progress.count_images(total, title) as advance,
        ):
            for number, group in enumerate(groups):
                unreadable += group.unreadable
                if not group.records:  # a remote model answered for none of them
                    continue
                if not pictures:
                    remark_probabilities(classifier, group.logits, progress)
                run = settle_threads(run, classifier, group.images, progress)
                first = None if start_of is None else start_of(group, classifier)
                folder = unfinished.folder / f"part-{number}"
                for records, result in attack_group(
                    attack, classifier, group, run, time_left, first, folder, passes
                ):
                    remark = remark_speed(result, progress, earlier=remark)
                    left = None if figures is None else figures - len(pictures)
                    pictures += _save_pictures(
                        result,
                        records,
                        classifier,
                        out,
                        title=title,
                        clean=chosen is None or chosen.images.pixels is None,
                        figures=left,
                        drawn=unfinished.has_made,
                    )
                    saved.add(result)  # with the PNGs, so that all files hold the same images
                    found = (list(pictures), list(unreadable))
                    file.update(partial(document, result, *found))
                    advance(len(result))
            file.update(partial(document, result, pictures, unreadable, complete=True))
            saved.complete()
            unfinished.finish()
    except PinprickError as error:
        if file.is_empty:
            raise
        failure = error
        unfinished.remark_saved()
    except KeyboardInterrupt:
        failure = unfinished.stopped(len(pictures), f"{total} images", save)
        if file.is_empty:
            raise failure from None
    return AttackOutcome(
        title=title,
        pictures=pictures,
        unreadable=unreadable,
        document=file.document,
        failure=failure or unanswered(classifier),
    )


def _check_save_file(path: Path | None) -> None:
    """Raise ``BadInput`` where no file can be written, before the work starts."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise BadInput(f"cannot write {path}: give --save a file in a folder that is there")


def _save_pictures(
    result: AttackResult,
    records: Sequence[PictureRecord],
    model: Classifier,
    folder: Path,
    *,
    title: str,
    clean: bool,
    figures: int | None,
    drawn: Callable[[Path], bool],
) -> list[AttackedPicture]:
    """Write the PNGs of one batch and its first ``figures`` figures; ask about the PNGs.

    With ``clean``, the clean images are written as well, as reports show them.
    Figures that are ``drawn`` already, before the run was stopped, are not drawn again.
    """
    pictures = []
    with writing(folder):
        for i, (row, record) in enumerate(zip(make_rows(result, model), records, strict=True)):
            one = result[i]
            adversarial, figure = folder / f"{record.name}-adversarial.png", None
            save_png(one.adversarial[0], adversarial)
            before = folder / f"{record.name}-clean.png" if clean else None
            if before is not None:
                save_png(one.images[0], before)
            if figures is None or i < figures:
                figure = folder / f"{record.name}-figure.png"
                if not drawn(figure):
                    headline = f"{record.name}: {title}"
                    drawing = attack_figure(row, one.images[0], one.adversarial[0], title=headline)
                    save_figure(drawing, figure)
            reread, fools = _reread(adversarial, one, model)
            pictures.append(
                AttackedPicture(
                    record=record,
                    row=row,
                    reread=reread,
                    reread_fools=fools,
                    adversarial=adversarial,
                    clean=before,
                    figure=figure,
                )
            )
    return pictures


def _reread(path: Path, result: AttackResult, model: Classifier) -> tuple[Prediction, bool]:
    """The prediction for a PNG read back from the disk, and whether it meets the goal."""
    image = read_png(path).to(model.device or result.images.device, result.images.dtype)
    with model.frozen():
        logits = logits_or_nan(model, image.unsqueeze(0))[0].to(result.images.device)
    return predictions(logits, model)[0], bool(result.goal.met(logits)[0])


def attack_document(
    model: Classifier,
    chosen: ChosenData | None,
    request: dict[str, Any],
    result: AttackResult,
    pictures: Sequence[AttackedPicture],
    unreadable: Sequence[Unreadable],
    *,
    complete: bool = False,
) -> dict[str, Any]:
    """Every number of the pictures so far; ``result`` is the latest batch."""
    if chosen is not None and not complete:
        chosen = chosen.up_to(int(result.ids[-1]))
    return {
        "format": 1,
        "complete": complete,
        "attack": result.attack,
        "model": result.model,
        "data": None if chosen is None else chosen.description,
        "mask": request["mask"],
        "request": request,
        "sent": None if model.sent is None else vars(model.sent),
        "seed": result.seed,
        "speed": "exact" if result.speed is None else result.speed["speed"],
        "seconds": sum(picture.row.seconds for picture in pictures),
        **device_and_versions(model),
        "unreadable": list_unreadable(unreadable),
        **attack_totals(result.attack, [picture.row for picture in pictures]),
        "images": [picture.plain() for picture in pictures],
    }
