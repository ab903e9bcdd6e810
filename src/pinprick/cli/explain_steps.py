"""What ``pinprick explain`` does with each batch that was attacked."""

import random
from collections.abc import Iterable, Iterator
from typing import Any, cast

from torch import nn

from pinprick.attacks.card import Attack
from pinprick.cli.console import remark
from pinprick.errors import BadInput
from pinprick.explain.explain_result import Explained, explain_result
from pinprick.explain.maps.class_maps import MapMethod, class_maps
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.types import Images

NO_LAYER = "none"
_FIGURES = 8  # of a dataset, unless more are asked for


def as_settings(
    grouping: str | None, attack: Attack, *, seed: int, error: float, max_pairs: int
) -> NoiseSettings:
    """The settings that the command line leaves open.

    The changes of a dense attack touch one another everywhere and would be one group, so its pixels
    are taken singly and joined by where they lie.
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


def check_layer(model: Classifier, images: Images, layer: str | None, method: MapMethod) -> None:
    """Raise ``BadInput`` where the network gives no map, before the attack starts."""
    if layer == NO_LAYER or (layer is None and not _shows_layers(model)):
        return
    try:
        class_maps(model, images[:1], method=method, layer=layer)
    except BadInput as error:
        raise BadInput(f"{error}; --layer {NO_LAYER} explains without maps") from error


def choose_figures(most: int | None, total: int, *, dataset: bool, seed: int) -> set[int]:
    """The numbers of the images to draw: of a dataset drawn at random, else the first so many."""
    if most is None:
        most = _FIGURES if dataset else total
    most = min(most, total)
    return set(random.Random(seed).sample(range(total), most) if dataset else range(most))


def explain_batches(
    batches: Iterable[AttackResult],
    model: Classifier,
    settings: NoiseSettings,
    *,
    polish: bool | None,
    layer: str | None,
    method: MapMethod,
    quiet: bool,
) -> Iterator[Explained]:
    """Each batch explained, with maps where the model has layers and ``layer`` is not "none"."""
    maps = layer != NO_LAYER
    if maps and not _shows_layers(model):
        if layer is None and not quiet:
            remark(f"{model.name} shows no layers: explained without maps")
        maps = layer is not None  # a layer that was asked for and is not there is an error
    for result in batches:
        told = explain_result(
            result,
            model,
            settings,
            polished=polish,
            maps=maps,
            layer=layer if maps else None,
            method=method,
        )
        layer = NO_LAYER if told.true_maps is None else told.true_maps.layer  # found once
        yield told


def _shows_layers(model: Classifier) -> bool:
    return model.access == "network" and isinstance(model.net, nn.Module)
