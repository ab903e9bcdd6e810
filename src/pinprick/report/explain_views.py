"""What the model looks at in some images of an explained batch, for both classes."""

from collections.abc import Sequence

import torch

from pinprick.errors import BadInput
from pinprick.explain.class_scores import rivals
from pinprick.explain.explain_result import Explained
from pinprick.explain.maps.guided import guided_gradients
from pinprick.explain.maps.maps import PixelMaps
from pinprick.model import Classifier
from pinprick.report.explain_figure import Views
from pinprick.types import Images, Labels


def views_of(
    told: Explained, model: Classifier, numbers: Sequence[int]
) -> list[tuple[Views, Views]]:
    """The clean and the adversarial views of some images, by their places in the batch."""
    rows = torch.tensor(numbers, dtype=torch.long, device=told.result.images.device)
    result = told.result[rows]
    led_to = rivals(result)
    true, other = (
        None if maps is None else maps.values[rows.to(maps.values.device)]
        for maps in (told.true_maps, told.adversarial_maps)
    )
    method = "Map" if told.true_maps is None else told.true_maps.method
    clean = _views(result.images, result.goal.labels, true, method, model)
    adversarial = _views(result.adversarial, led_to, other, method, model)
    return list(zip(clean, adversarial, strict=True))


def _views(
    images: Images, classes: Labels, maps: PixelMaps | None, method: str, model: Classifier
) -> list[Views]:
    heats = [None] * len(images) if maps is None else list(maps)
    guided, why_not = _guided(images, classes, maps, model)
    return [
        Views(
            picture=picture,
            class_name=model.class_name(number),
            method=method,
            heat=heat,
            guided=None if guided is None else guided[i],
            why_not=why_not,
        )
        for i, (picture, number, heat) in enumerate(
            zip(images, classes.tolist(), heats, strict=True)
        )
    ]


def _guided(
    images: Images, classes: Labels, maps: PixelMaps | None, model: Classifier
) -> tuple[Images | None, str]:
    """Guided Grad-CAM from maps that are there already, or why there is none."""
    if maps is None:
        return None, "no guided map without a map of the class"
    try:
        values = guided_gradients(model, images, classes).values
    except BadInput as error:
        return None, str(error)
    return values * maps.unsqueeze(1), ""
