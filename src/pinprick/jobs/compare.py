"""Compare attacks on the same pictures: one figure per picture, and compare.json."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack
from pinprick.data.pictures import PictureRecord, Unreadable
from pinprick.errors import PinprickError
from pinprick.files import writing
from pinprick.jobs.attack_group import (
    RunOptions,
    attack_group,
    remark_probabilities,
    remark_speed,
    settle_threads,
)
from pinprick.jobs.device import device_and_versions, load_on_device, unanswered
from pinprick.jobs.output import IncrementalJson, open_out
from pinprick.jobs.pictures import (
    PictureGroup,
    PictureSource,
    choose_data,
    list_unreadable,
    read_all,
)
from pinprick.jobs.progress import Progress
from pinprick.jobs.resume import UnfinishedRun, describe_request
from pinprick.model import Classifier
from pinprick.report.compare_figure import Column, compare_figure
from pinprick.report.png import save_figure
from pinprick.report.row import Prediction, make_rows, plain, predictions
from pinprick.report.words import settings_in_words
from pinprick.result import AttackResult
from pinprick.run import TimeLeft, logits_or_nan
from pinprick.speed import ModelPasses
from pinprick.threads import restored_threads
from pinprick.types import Images, Picture


@dataclass(frozen=True, eq=False)
class Comparison:
    """One picture under several attacks.

    Attributes:
        record: The picture.
        image: The picture as the model takes it.
        clean: The model's prediction for it.
        judged: The judge's prediction for it; None without a judge.
        title: The title of its figure.
        columns: One per attack that is done, in order.
    """

    record: PictureRecord
    image: Picture
    clean: Prediction
    judged: Prediction | None
    title: str
    columns: list[Column] = field(default_factory=list)

    @property
    def figure(self) -> str:
        return f"{self.record.name}-compare.png"

    def plain(self, *, drawn: bool) -> dict[str, Any]:
        """As JSON can hold it; the figure is None unless it is ``drawn``."""
        return {
            "name": self.record.name,
            "path": str(self.record.path),
            "reading": self.record.remark,
            "judge": None if self.judged is None else plain(self.judged),
            "figure": self.figure if drawn else None,
            "attacks": [
                {
                    "attack": column.name,
                    "settings": column.settings,
                    "unit": column.unit,
                    **plain(column.row),
                    "judge": None if column.judged is None else plain(column.judged),
                }
                for column in self.columns
            ],
            "label_from": self.record.label_from,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareOutcome:
    """What a comparison gave; ``unreadable``, ``document`` and ``failure`` as in AttackOutcome."""

    comparisons: list[Comparison]
    unreadable: tuple[Unreadable, ...]
    document: dict[str, Any]
    failure: PinprickError | None


@restored_threads()
def compare_attacks(
    attacks: Sequence[Attack],
    model: str | Classifier,
    source: PictureSource,
    out: Path,
    *,
    judge: str | Classifier | None = None,
    run: RunOptions | None = None,
    figures: int | None = None,
    resume: bool | None = None,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> CompareOutcome:
    """Run several attacks on the same pictures; write figures and compare.json to ``out``.

    An error or Ctrl-C after the first batch ends the run early. What was found until then is
    written and returned, and ``resume`` goes on from there. Figures are drawn at the end, and not
    after Ctrl-C.

    Args:
        attacks: The attacks with their settings.
        model: A model, or the name of one.
        source: The pictures, which are all held in memory.
        out: The folder; it is made if it is missing.
        judge: Another model, whose predictions are shown, too.
        run: Seed, batch size, limits and threads; ``max_seconds`` is per attack.
        figures: Draw at most so many figures; all by default.
        resume: True goes on with a run that was stopped, False starts again. None refuses where a
            run was stopped.
        device: The device for models given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks and counts.
    """
    run, progress = run or RunOptions(), progress or Progress()
    open_out(out)
    unfinished = UnfinishedRun(out, "compare.json", resume=resume, progress=progress)
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    other = None if judge is None else load_on_device(judge, device, trust=trust)
    group = read_all(source, chosen, classifier, progress)
    run = settle_threads(unfinished.with_threads(run), classifier, group.images, progress)
    remark_probabilities(classifier, group.logits, progress)
    comparisons = _start_comparisons(group, classifier, other)
    judged_by = judge.name if isinstance(judge, Classifier) else judge
    facts = {
        "request": describe_request(attacks, model, source, run, judge=judged_by),
        "attacks": [describe(attack) for attack in attacks],
        "limits": run.limits(),
        "model": classifier.name,
        "data": None if chosen is None else chosen.description,
        "mask": None if source.mask is None else str(source.mask),
        "judge": None if other is None else other.name,
        "seed": run.seed,
        "speed": run.speed,
        **device_and_versions(classifier),
        "unreadable": list_unreadable(group.unreadable),
    }
    document = partial(_document, facts, comparisons)
    file = IncrementalJson(out / "compare.json")
    failure: PinprickError | None = None
    passes, remark = ModelPasses(classifier, run.speed), ""
    try:
        with unfinished, file, passes:
            runs = [  # all of them, so that all input is checked before the first starts
                attack_group(
                    attack,
                    classifier,
                    group,
                    run,
                    TimeLeft(run.max_seconds),
                    folder=unfinished.folder / f"{number}-{attack.card.name}",
                    passes=passes,
                )
                for number, attack in enumerate(attacks)
            ]
            try:
                for attack, batches in zip(attacks, runs, strict=True):
                    done = 0
                    with progress.count_images(len(comparisons), attack.card.title) as advance:
                        for _, result in batches:
                            remark = remark_speed(result, progress, earlier=remark)
                            here = comparisons[done : done + len(result)]
                            _add_columns(here, attack, result, classifier, other)
                            file.update(document)
                            done += len(result)
                            advance(len(result))
            except PinprickError as error:
                if file.is_empty:
                    raise
                failure = error
                unfinished.remark_saved()
            count = len(comparisons) if figures is None else figures
            for comparison in comparisons[:count]:
                _save_comparison(comparison, out)
            file.update(partial(document, drawn=count, complete=failure is None))
            if failure is None:
                unfinished.finish()
    except KeyboardInterrupt:
        columns = sum(len(comparison.columns) for comparison in comparisons)
        total = f"{len(comparisons) * len(attacks)} images in {len(attacks)} attacks"
        failure = unfinished.stopped(columns, total)
        if file.is_empty:
            raise failure from None
    return CompareOutcome(
        comparisons=comparisons,
        unreadable=group.unreadable,
        document=file.document,
        failure=failure or unanswered(classifier, other),
    )


def _document(
    facts: Mapping[str, Any],
    comparisons: Sequence[Comparison],
    *,
    drawn: int = 0,
    complete: bool = False,
) -> dict[str, Any]:
    """What holds for all pictures, and every number of the attacks so far.

    The first ``drawn`` pictures have their figure.
    """
    images = [each.plain(drawn=number < drawn) for number, each in enumerate(comparisons)]
    return {"format": 1, "complete": complete, **facts, "images": images}


def _start_comparisons(
    group: PictureGroup, model: Classifier, judge: Classifier | None
) -> list[Comparison]:
    """One per picture, without a column yet."""
    judged = [None] * len(group.records) if judge is None else _judge(judge, group.images)
    seen = "" if judge is None else f"; classes as {judge.name} sees them"
    return [
        Comparison(record, image, clean, other, f"{record.name} on {model.name}{seen}")
        for record, image, clean, other in zip(
            group.records, group.images, predictions(group.logits, model), judged, strict=True
        )
    ]


def _add_columns(
    comparisons: Sequence[Comparison],
    attack: Attack,
    result: AttackResult,
    model: Classifier,
    judge: Classifier | None,
) -> None:
    """Add what ``attack`` did to the pictures of one batch."""
    adv = result.adversarial
    judged = [None] * len(adv) if judge is None else _judge(judge, adv)
    rows, settings = make_rows(result, model), settings_in_words(attack)
    unit = attack.facts().unit
    for comparison, row, image, other in zip(comparisons, rows, adv, judged, strict=True):
        column = Column(attack.full_name(), attack.card.title, row, image, other, settings, unit)
        comparison.columns.append(column)


def _judge(judge: Classifier, images: Images) -> list[Prediction]:
    """The predictions of another model than the attacked one: does the attack transfer?

    If the judge has another input size, images become 8-bit and are resized without a crop.
    """
    seen = torch.stack([_resized(image, judge.size) for image in images])
    with judge.frozen():
        logits = logits_or_nan(judge, seen.to(judge.device or seen.device))[0]
    return predictions(logits.cpu(), judge)


def _resized(image: Tensor, size: tuple[int, int] | None) -> Tensor:
    if size is None or tuple(image.shape[1:]) == tuple(size):
        return image
    height, width = size
    pixels = (image.cpu() * 255).round().byte().numpy()
    channels = [
        np.asarray(Image.fromarray(channel).resize((width, height), Image.Resampling.BICUBIC))
        for channel in pixels
    ]
    return torch.from_numpy(np.stack(channels)).to(image) / 255


def _save_comparison(comparison: Comparison, folder: Path) -> None:
    """Draw the figure and write it to the folder."""
    wanted = {column.row.target_name for column in comparison.columns} - {None}
    figure = compare_figure(
        comparison.image,
        comparison.columns,
        title="; target ".join([comparison.title, *sorted(map(str, wanted))]),
        clean_prediction=comparison.judged or comparison.clean,
    )
    with writing(folder):
        save_figure(figure, folder / comparison.figure)
