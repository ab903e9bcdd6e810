"""Attack pictures and explain what each changed pixel does: figures and explanation.json."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import nn

from pinprick.attacks.card import Attack
from pinprick.data.pictures import Unreadable
from pinprick.errors import BadInput, PinprickError
from pinprick.explain.explain_result import Explained, explain_result
from pinprick.explain.maps.class_maps import MapMethod, as_method, class_maps
from pinprick.explain.noise.explain_noise import check_scores
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.totals import Totals, add_up
from pinprick.jobs.attack_group import RunOptions, attack_group
from pinprick.jobs.device import device_and_versions, load_on_device, unanswered
from pinprick.jobs.explain_files import ExplainedPicture, save_explanations
from pinprick.jobs.output import IncrementalJson, open_out
from pinprick.jobs.pictures import PictureSource, choose_data, list_unreadable, read_groups
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.run import TimeLeft
from pinprick.types import Images

NO_LAYER = "none"
_FIGURES = 8  # of a dataset, by default


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


def explain_pictures(
    attack: Attack,
    model: str | Classifier,
    source: PictureSource,
    out: Path,
    *,
    run: RunOptions | None = None,
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
    """Attack pictures and explain the changes; write figures and explanation.json to ``out``.

    An error after the first batch ends the run early; what was found until then is kept.

    Args:
        attack: The attack with its settings.
        model: A model, or the name of one.
        source: The pictures.
        out: The folder; it is made if it is missing.
        run: Seed, batch size and limits of the attack; the seed also decides what is sampled.
        grouping: "connected" or "pixels"; None for the one that suits the attack.
        error: Largest standard error of a sampled effect, as a share of the margin change.
        max_pairs: Most pairs of orders that are sampled per group.
        polish: Put back every pixel that is not needed first; None where the attack counts units.
        layer: The layer of the maps by name, "none" for no maps, None for the last fine one.
        method: "auto", "gradcam" or "layercam".
        figures: Draw at most so many images; None for all pictures, and 8 of a dataset at random.
        device: The device for a model given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks and counts.
    """
    run, progress = run or RunOptions(), progress or Progress()
    settings = make_settings(grouping, attack, seed=run.seed, error=error, max_pairs=max_pairs)
    map_method = as_method(method)
    open_out(out)
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    check_scores(classifier)
    groups, total = read_groups(source, chosen, classifier, progress)
    drawn = choose_figures(figures, total, dataset=chosen is not None, seed=run.seed)

    title, unit = f"{attack.card.title} on {classifier.name}", attack.facts().unit
    data = None if chosen is None else chosen.description
    mask = None if source.mask is None else str(source.mask)
    time_left = TimeLeft(run.max_seconds)
    pictures: list[ExplainedPicture] = []
    unreadable: list[Unreadable] = []
    totals: Totals | None = None
    failure: PinprickError | None = None
    with (
        IncrementalJson(out / "explanation.json") as file,
        progress.count_images(total, f"{title}, explained") as advance,
    ):
        try:
            for group in groups:
                if not pictures:
                    layer = _check_layer(classifier, group.images, layer, map_method, progress)
                unreadable += group.unreadable
                if not group.records:  # a remote model answered for none of them
                    continue
                for records, result in attack_group(attack, classifier, group, run, time_left):
                    explained = explain_result(
                        result,
                        classifier,
                        settings,
                        polished=polish,
                        maps=layer != NO_LAYER,
                        layer=None if layer == NO_LAYER else layer,
                        method=map_method,
                    )
                    layer = NO_LAYER if explained.true_maps is None else explained.true_maps.layer
                    here = {number - len(pictures) for number in drawn}
                    pictures += save_explanations(
                        explained, records, classifier, out, title=title, figures=here
                    )
                    make = partial(
                        _document,
                        explained,
                        pictures,
                        unreadable,
                        classifier,
                        settings,
                        data,
                        mask,
                        unit,
                    )
                    file.update(make)
                    advance(len(explained))
        except PinprickError as stop:
            if not pictures:
                raise
            failure = stop
        if chosen is not None:
            totals = add_up([picture.explanation for picture in pictures])
        file.update(partial(make, totals))
    return ExplainOutcome(
        title=title,
        pictures=pictures,
        totals=totals,
        unreadable=unreadable,
        document=file.document,
        failure=failure or unanswered(classifier),
    )


def make_settings(
    grouping: str | None, attack: Attack, *, seed: int, error: float, max_pairs: int
) -> NoiseSettings:
    """The settings of the explanation, with the grouping that suits the attack by default.

    Changes of a dense attack all touch and would form one group. So its pixels are taken singly.
    """
    if grouping is None:
        grouping = "connected" if attack.facts().norm == "l0" else "pixels"
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
        most = _FIGURES if dataset else total
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
    data: str | None,
    mask: str | None,
    unit: str | None,
    totals: Totals | None = None,
) -> dict[str, Any]:
    """Every number of the pictures so far; ``explained`` is the latest batch."""
    result, maps = explained.result, explained.true_maps
    return {
        "format": 2,
        "attack": result.attack,
        "unit": unit,
        "model": result.model,
        "data": data,
        "mask": mask,
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
