"""Explain what each changed pixel of a saved result does, without attacking again."""

from collections.abc import Sequence
from pathlib import Path

import torch

from pinprick.data.pictures import PictureRecord, Unreadable
from pinprick.errors import BadInput, UnknownName, one_line
from pinprick.explain.explain_result import facts_of, title_of
from pinprick.explain.maps.class_maps import as_method
from pinprick.explain.noise.explain_noise import check_scores
from pinprick.jobs.attack_group import RunOptions, settle_threads
from pinprick.jobs.device import load_on_device
from pinprick.jobs.explain_batches import (
    FIGURES,
    Batches,
    ExplainOutcome,
    choose_figures,
    explain_batches,
    make_settings,
)
from pinprick.jobs.labels import with_label
from pinprick.jobs.output import open_out
from pinprick.jobs.pictures import PictureSource, choose_data, read_all
from pinprick.jobs.progress import Progress
from pinprick.jobs.start import rows_of_result
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.result_file import load_result
from pinprick.run import logits_or_nan
from pinprick.threads import restored_threads
from pinprick.types import Images

_PROBES = 8  # images on which a model is held to the logits of a saved result
_FAR = 0.02  # of the range of an image's logits: other devices differ less, other models more


@restored_threads()
def explain_saved(
    path: Path,
    out: Path,
    *,
    model: str | Classifier | None = None,
    source: PictureSource | None = None,
    seed: int = 0,
    threads: int | None = None,
    grouping: str | None = None,
    error: float = 0.05,
    max_pairs: int = 256,
    polish: bool | None = None,
    layer: str | None = None,
    method: str = "auto",
    figures: int | None = None,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> ExplainOutcome:
    """Explain a result that ``save_result`` wrote, without attacking again.

    Raises ``BadInput`` where the model gives other logits than the saved ones, or the pictures of
    ``source`` are others than the saved ones.

    Args:
        path: The file of the result, as ``pinprick attack --save`` writes it.
        out: The folder; it is made if it is missing.
        model: The attacked model, or its name; None for the one that the file names.
        source: The attacked pictures, or some of them, for their names; None for all of the file.
        seed: Decides what is sampled.
        threads: Number of CPU threads; None to measure which suits the model.
        grouping: As for ``explain_pictures``, like all that follow.
        error: As there.
        max_pairs: As there.
        polish: As there.
        layer: As there.
        method: As there.
        figures: Draw at most so many images; None for 8 at random where there are more.
        device: As there.
        trust: As there.
        progress: As there.
    """
    progress = progress or Progress()
    result = load_result(path)
    if not len(result):
        raise BadInput(f"{path} holds no image to explain")
    facts = facts_of(result)
    settings = make_settings(grouping, facts, seed=seed, error=error, max_pairs=max_pairs)
    as_method(method)
    open_out(out)
    classifier = load_attacked(model, result, path, device, trust=trust)
    check_scores(classifier)
    settle_threads(RunOptions(threads=threads), classifier, result.images, progress)
    chosen = None if source is None else choose_data(source)
    check_attacked(classifier, result, path)
    unreadable: Sequence[Unreadable] = ()
    if source is None:
        records = [
            PictureRecord(f"image-{number}", Path(f"{path}[{number}]"))
            for number in result.ids.tolist()
        ]
    else:
        group = read_all(source, chosen, classifier, progress)
        unreadable, records = group.unreadable, list(group.records)
        result = rows_of_result(result, group, str(path))
        _check_images(result, group.images, records, path)
    records = [
        with_label(record, label, "result", classifier)
        for record, label in zip(records, result.goal.labels.tolist(), strict=True)
    ]
    many = chosen is not None or (source is None and len(result) > FIGURES)
    return explain_batches(
        [(result.images, _batches(records, result))],
        classifier,
        out,
        title=title_of(result),
        facts={
            "unit": None if facts is None else facts.unit,
            "data": None if chosen is None else chosen.description,
            "mask": None,
            "result": str(path),
        },
        settings=settings,
        polish=polish,
        layer=layer,
        method=method,
        drawn=choose_figures(figures, len(result), dataset=many, seed=seed),
        total=len(result),
        totals=many,
        unreadable=unreadable,
        progress=progress,
    )


def load_attacked(
    model: str | Classifier | None, result: AttackResult, path: Path, device: str, *, trust: bool
) -> Classifier:
    """The model that was given, or the one of the result."""
    if model is not None:
        return load_on_device(model, device, trust=trust)
    try:
        return load_on_device(result.model_from or result.model, device, trust=trust)
    except UnknownName:
        raise BadInput(
            f"{path} is of the model {(result.model_from or result.model)!r}, which cannot be "
            "loaded by that name; give it with --model"
        ) from None


def check_attacked(model: Classifier, result: AttackResult, path: Path) -> None:
    """Raise ``BadInput`` where the model gives other logits than those saved."""
    some = result[: min(_PROBES, len(result))]
    other = f"{model.name} is not the model of {path}, which names {result.model!r}"
    for images, saved in (
        (some.images, some.clean_logits),
        (some.adversarial, some.adversarial_logits),
    ):
        try:
            with model.frozen():
                logits = logits_or_nan(model, images.to(model.device or images.device))[0].cpu()
        except RuntimeError as error:
            shape = tuple(images.shape[1:])
            raise BadInput(
                f"{model.name} does not take images of {path}, {shape}: {one_line(error)}"
            ) from error
        if logits.shape != saved.shape:
            raise BadInput(
                f"{other}: it has {logits.shape[1]} classes, the result {saved.shape[1]}"
            )
        far = (logits.double() - saved.double()).abs().amax(dim=1)
        wide = saved.double().amax(dim=1) - saved.double().amin(dim=1)
        if (far > _FAR * wide).any():  # false of NaN, where a remote model did not answer
            raise BadInput(
                f"{other}: its logits differ by up to {far.nan_to_num(0.0).max().item():.2g}"
            )


def _check_images(
    result: AttackResult, images: Images, records: Sequence[PictureRecord], path: Path
) -> None:
    """Raise ``BadInput`` where a picture is not the saved one."""
    for saved, image, record in zip(result.images, images.cpu(), records, strict=True):
        if saved.shape != image.shape or not torch.equal(saved, image):
            raise BadInput(
                f"{record.name} is not the picture that was saved in {path}; "
                "give the attacked pictures in the same order, or leave them out"
            )


def _batches(records: Sequence[PictureRecord], result: AttackResult) -> Batches:
    """The result in batches as large as those it was attacked in; each has its share of time."""
    size = int(result.batch_size.max())
    for start in range(0, len(result), size):
        yield records[start : start + size], result[start : start + size]
