"""Integrated gradients along the path from the clean image to the adversarial one.

Sundararajan, Taly, Yan: Axiomatic attribution for deep networks. ICML 2017.

    A_i = delta_i * mean over s in (0, 1) of  ds_c / dx_i (x + s * delta)

``s_c`` is the score of the class. The numbers of an image sum to the change of its score. Elements
that did not change get zero. A point costs one forward and one backward pass.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.explain.class_scores import GAUGES, Gauge, class_scores
from pinprick.explain.maps.inputs import (
    Classes,
    MapInputs,
    check_gradient,
    check_inputs,
    choose_classes,
)
from pinprick.explain.maps.maps import Attribution
from pinprick.explain.path_integral import PathFractions, Products, Rows, integrate
from pinprick.intake import check_images
from pinprick.model import Classifier, Model
from pinprick.settings import check_choice
from pinprick.types import Counts, Images, Labels, Logits, PerImage


@dataclass(frozen=True)
class PathAttribution(Attribution):
    """What each element adds to the change of the score from clean to adversarial.

    Attributes:
        change: The measured change of the score.
        gap: Difference between the sum of the numbers and ``change``, as a share of ``change``.
        steps: Points used per path.
    """

    change: PerImage
    gap: PerImage
    steps: Counts


@torch.inference_mode(False)  # gradients are needed, also when the caller is in inference mode
def integrated_gradients(
    model: Classifier | Model,
    images: Tensor,
    adv: Tensor,
    classes: Classes = None,
    *,
    gauge: Gauge = "centred",
    steps: int = 64,
    max_steps: int = 1024,
    tolerance: float = 0.02,
    batch_size: int | None = None,
) -> PathAttribution:
    """How much each changed element adds to the score of a class.

    Args:
        model: A ``Classifier``, or any network or function from images in [0, 1] to logits.
        images: Clean images in [0, 1], on any device; the numbers come back there.
        adv: The adversarial image of each.
        classes: The class to explain per image; None for the predictions for ``adv``.
        gauge: How logits become scores; see ``pinprick.explain.class_scores``.
        steps: Points per path in the first round.
        max_steps: Most points per path.
        tolerance: Largest accepted ``gap``; above it, three times as many points are used.
        batch_size: Points per batch, over all paths; chosen from the image size by default.
    """
    _check_settings(gauge, steps, max_steps, tolerance)
    inputs = check_inputs(
        "an integrated gradient", model, images, classes, batch_size, needs="gradients"
    )
    check_images(adv)
    if adv.shape != images.shape:
        raise BadInput(f"adv must have the shape {tuple(images.shape)}, got {tuple(adv.shape)}")
    with inputs.model.frozen():
        paths = _Paths(inputs, adv.detach().clone().to(images.device), gauge)
        found = integrate(
            paths.products,
            paths.change.unsqueeze(1),
            adv[0].numel(),
            torch.arange(len(images), device=images.device),
            steps=steps,
            max_steps=max_steps,
            gap=tolerance,
            block=inputs.batch_size,
        )
    off = (found.parts.sum(dim=(1, 2)) - paths.change).abs()
    return PathAttribution(
        values=found.parts.view(adv.shape).to(adv.dtype),
        classes=paths.classes,
        change=paths.change,
        gap=torch.where(off > 0, off / paths.change.abs(), 0),
        steps=found.steps,
    )


class _Paths:
    """The straight paths from clean to adversarial images."""

    def __init__(self, inputs: MapInputs, adv: Images, gauge: Gauge) -> None:
        self.model, self.images, size = inputs.model, inputs.images, inputs.batch_size
        self.adv, self.gauge = adv, gauge
        with torch.no_grad():
            after = torch.cat([self._logits(part) for part in adv.split(size)])
            before = torch.cat([self._logits(part) for part in self.images.split(size)])
        self.classes: Labels = choose_classes(after, adv, inputs.classes)
        self.change: PerImage = self._score(after, self.classes) - self._score(before, self.classes)

    def products(self, rows: Rows, fractions: PathFractions) -> Products:
        """Change times gradient of the score at one point per entry of ``rows``."""
        clean, adv = self.images[rows], self.adv[rows]
        points = torch.lerp(clean, adv, fractions.to(adv.dtype).view(-1, 1, 1, 1)).requires_grad_()
        with torch.enable_grad():
            logits = self._logits(points)
            check_gradient(logits)
            total = self._score(logits, self.classes[rows]).sum()
            (grad,) = torch.autograd.grad(total, points, materialize_grads=True)
        return ((adv - clean) * grad.nan_to_num(0.0, 0.0, 0.0)).flatten(1).unsqueeze(2)

    def _logits(self, images: Images) -> Logits:
        device = self.model.device or images.device
        return self.model(images.to(device)).to(images.device)

    def _score(self, logits: Logits, classes: Labels) -> PerImage:
        return class_scores(logits, classes.unsqueeze(1), self.gauge).squeeze(1)


def _check_settings(gauge: str, steps: int, max_steps: int, tolerance: float) -> None:
    check_choice("gauge of an integrated gradient", gauge, GAUGES)
    if steps < 1 or max_steps < steps:
        raise BadInput(
            f"integrated gradients need 1 <= steps <= max_steps, got {steps} and {max_steps}"
        )
    if not tolerance > 0:
        raise BadInput(f"tolerance must be above 0, got {tolerance}")
