"""What the model looks at in the first few images of an explained batch, for both classes."""

import torch

from pinprick.errors import BadInput
from pinprick.explain.explained import Explained
from pinprick.explain.guided import guided_gradients
from pinprick.explain.maps import Maps
from pinprick.explain.rival import rivals
from pinprick.model import Classifier
from pinprick.report.explain_figure import Views
from pinprick.types import Images, Labels


def views_of(told: Explained, model: Classifier, count: int) -> list[tuple[Views, Views]]:
    """The clean and the adversarial views of the first ``count`` images."""
    result = told.result[torch.arange(count, device=told.result.images.device)]
    led_to = rivals(result)
    clean = _views(result.images, result.goal.labels, told.true_maps, model)
    adversarial = _views(result.adversarial, led_to, told.adversarial_maps, model)
    return list(zip(clean, adversarial, strict=True))


def _views(images: Images, classes: Labels, maps: Maps | None, model: Classifier) -> list[Views]:
    heats = [None] * len(images) if maps is None else list(maps.values[: len(images)])
    guided, why_not = _guided(images, classes, maps, model)
    return [
        Views(
            picture=picture,
            class_name=model.class_name(number),
            heat=heat,
            guided=None if guided is None else guided[i],
            why_not=why_not,
        )
        for i, (picture, number, heat) in enumerate(
            zip(images, classes.tolist(), heats, strict=True)
        )
    ]


def _guided(
    images: Images, classes: Labels, maps: Maps | None, model: Classifier
) -> tuple[Images | None, str]:
    """Guided Grad-CAM from maps that are there already, or why there is none."""
    if maps is None:
        return None, "no Guided Grad-CAM without a map"
    try:
        values = guided_gradients(model, images, classes).values
    except BadInput as error:
        return None, str(error)
    return values * maps.values[: len(images)].unsqueeze(1), ""
