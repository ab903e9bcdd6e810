"""Explain results batch by batch, and write figures and explanation.json as they come."""

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import nn

from pinprick.attacks.card import Card
from pinprick.data.pictures import PictureRecord, Unreadable
from pinprick.errors import BadInput, PinprickError
from pinprick.explain.explain_result import Explained, explain_result
from pinprick.explain.maps.class_maps import MapMethod, as_method, class_maps
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.totals import Totals, add_up
from pinprick.jobs.device import device_and_versions, unanswered
from pinprick.jobs.explain_files import ExplainedPicture, save_explanations
from pinprick.jobs.output import IncrementalJson
from pinprick.jobs.pictures import list_unreadable
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.types import Images

FIGURES = 8  # of a dataset, by default
NO_LAYER = "none"
Batches = Iterator[tuple[Sequence[PictureRecord], AttackResult]]  # results, one record per image


@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainOutcome:
    """What explaining pictures gave.

    Attributes:
        title: The attack and the model.
        pictures: The explained pictures, in order.
        totals: Numbers over all images of a dataset; None for pictures.
        unreadable, document, failure: As in ``AttackOutcome``; the document is explanation.json.
    """

    title: str
    pictures: list[ExplainedPicture]
    totals: Totals | None
    unreadable: list[Unreadable]
    document: dict[str, Any]
    failure: PinprickError | None


def explain_batches(
    groups: Iterable[tuple[Images, Batches]],
    model: Classifier,
    out: Path,
    *,
    title: str,
    facts: Mapping[str, str | None],
    settings: NoiseSettings,
    polish: bool | None,
    layer: str | None,
    method: str,
    drawn: Collection[int],
    total: int,
    totals: bool,
    unreadable: Sequence[Unreadable],
    progress: Progress,
) -> ExplainOutcome:
    """Explain results batch by batch; write figures and explanation.json to ``out``.

    Args:
        groups: The images of each group, and its batches. No batch is asked for before the first
            images were found to give maps.
        model: The attacked model.
        out: The folder, which must exist.
        title: The attack and the model.
        facts: What else explanation.json says of the attack: "unit", "data", "mask" and "result".
        settings: How pixels are grouped, evaluated and labelled.
        polish: As for ``explain_pictures``.
        layer: As for ``explain_pictures``.
        method: As for ``explain_pictures``.
        drawn: Indices of the images to draw.
        total: Number of images.
        totals: Whether to add up numbers over all images.
        unreadable: Files that were left out; it may grow while ``groups`` are read.
        progress: Receives remarks and counts.
    """
    pictures: list[ExplainedPicture] = []
    added: Totals | None = None
    failure: PinprickError | None = None
    map_method = as_method(method)
    with (
        IncrementalJson(out / "explanation.json") as file,
        progress.count_images(total, f"{title}, explained") as advance,
    ):
        try:
            for images, batches in groups:
                if not pictures:
                    layer = _check_layer(model, images, layer, map_method, progress)
                for records, result in batches:
                    explained = explain_result(
                        result,
                        model,
                        settings,
                        polished=polish,
                        maps=layer != NO_LAYER,
                        layer=None if layer == NO_LAYER else layer,
                        method=map_method,
                    )
                    layer = NO_LAYER if explained.true_maps is None else explained.true_maps.layer
                    here = {number - len(pictures) for number in drawn}
                    pictures += save_explanations(
                        explained, records, model, out, title=title, figures=here
                    )
                    make = partial(
                        _document, explained, pictures, unreadable, model, settings, facts
                    )
                    file.update(make)
                    advance(len(explained))
        except PinprickError as stop:
            if not pictures:
                raise
            failure = stop
        if totals:
            added = add_up([picture.explanation for picture in pictures])
        file.update(partial(make, added))
    return ExplainOutcome(
        title=title,
        pictures=pictures,
        totals=added,
        unreadable=list(unreadable),
        document=file.document,
        failure=failure or unanswered(model),
    )


def make_settings(
    grouping: str | None, facts: Card | None, *, seed: int, error: float, max_pairs: int
) -> NoiseSettings:
    """The settings of the explanation, with the grouping that suits the attack by default.

    Changes of a dense attack all touch and would form one group. So its pixels are taken singly.
    """
    if grouping is None:
        grouping = "connected" if facts is None or facts.norm == "l0" else "pixels"
    return NoiseSettings(
        grouping=cast(Any, grouping),
        seed=seed,
        error=error,
        least_pairs=min(NoiseSettings.least_pairs, max_pairs),
        max_pairs=max_pairs,
    )


def choose_figures(most: int | None, total: int, *, dataset: bool, seed: int) -> set[int]:
    """Indices of the images to draw: of a dataset sampled with the seed, else the first ones."""
    if most is None:
        most = FIGURES if dataset else total
    most = min(most, total)
    return set(random.Random(seed).sample(range(total), most) if dataset else range(most))


def _check_layer(
    model: Classifier, images: Images, layer: str | None, method: MapMethod, progress: Progress
) -> str | None:
    """The layer to take maps of, "none" where the model has no layers and none was named.

    Raises ``BadInput`` where the network gives no map, before the attack starts.
    """
    if layer == NO_LAYER:
        return layer
    if layer is None and not (model.access == "network" and isinstance(model.net, nn.Module)):
        progress.remark(f"{model.name} shows no layers: explained without maps")
        return NO_LAYER
    try:
        class_maps(model, images[:1], method=method, layer=layer)
    except BadInput as error:
        raise BadInput(f"{error}; --layer {NO_LAYER} explains without maps") from error
    return layer


def _document(
    explained: Explained,
    pictures: Sequence[ExplainedPicture],
    unreadable: Sequence[Unreadable],
    model: Classifier,
    settings: NoiseSettings,
    facts: Mapping[str, str | None],
    totals: Totals | None = None,
) -> dict[str, Any]:
    """Every number of the pictures so far; ``explained`` is the latest batch."""
    result, maps = explained.result, explained.true_maps
    return {
        "format": 3,
        "attack": result.attack,
        "model": result.model,
        **facts,
        "seed": result.seed,
        "seconds": sum(picture.row.seconds for picture in pictures),
        **device_and_versions(model),
        "settings": asdict(settings),
        "map": None if maps is None else maps.method,
        "layer": None if maps is None else maps.layer,
        "totals": None if totals is None else totals.to_dict(),
        "unreadable": list_unreadable(unreadable),
        "images": [picture.plain() for picture in pictures],
    }
