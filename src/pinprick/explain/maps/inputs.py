"""The arguments that all functions of maps share, checked: a model, images, a class per image."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.intake import batch_size_for, check_answers, check_images, check_range, per_image
from pinprick.model import Access, Classifier, Model, as_classifier, gives
from pinprick.types import Images, Labels, Logits

Classes = Tensor | Sequence[int] | None


@dataclass(frozen=True)
class MapInputs:
    """A model, images, and the class to explain per image; None for the predicted classes."""

    model: Classifier
    images: Images
    classes: Labels | None
    batch_size: int

    @property
    def network(self) -> nn.Module:
        assert isinstance(self.model.net, nn.Module), "check_inputs(needs='network') ensures that"
        return self.model.net

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device or self.images.device

    def batches(self) -> Iterator[tuple[Images, Labels | None]]:
        """Batches of images and their classes, on the device of the model."""
        for start in range(0, len(self.images), self.batch_size):
            rows = slice(start, start + self.batch_size)
            classes = None if self.classes is None else self.classes[rows].to(self.device)
            yield self.images[rows].to(self.device), classes


def check_inputs(
    method: str,
    model: Classifier | Model,
    images: Tensor,
    classes: Classes,
    batch_size: int | None,
    *,
    needs: Access = "network",
) -> MapInputs:
    """The checked arguments; raise ``BadInput``, which names the ``method``, if one is wrong."""
    classifier = as_classifier(model)
    _check_access(method, classifier, needs)
    check_images(images)
    if not len(images):
        raise BadInput(f"{method} needs at least one image, got none")
    if images.is_inference():  # inference tensors allow no gradient
        images = images.clone()
    chosen = None if classes is None else per_image("classes", classes, images)
    return MapInputs(classifier, images.detach(), chosen, batch_size_for(images, batch_size))


def _check_access(method: str, model: Classifier, needs: Access) -> None:
    """Raise ``BadInput`` unless the model gives the access that is needed."""
    lacking = not gives(model.access, needs)
    if needs != "network":
        if lacking:
            raise BadInput(f"{method} needs {needs}, but {model.name} gives {model.access} alone")
        return
    if lacking or not isinstance(model.net, nn.Module):
        raise BadInput(
            f"{method} needs the layers of a network, but {model.name} gives {model.access} alone"
        )
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.net.modules()):
        raise BadInput(
            f"{method} needs the layers of a network, but {model.name} is scripted or traced, "
            "which hides them; pass the original network"
        )


def choose_classes(logits: Logits, images: Images, classes: Labels | None) -> Labels:
    """The classes to explain, checked; the predicted ones if None were given."""
    check_answers(logits, images)
    if classes is None:
        return logits.argmax(dim=1)
    check_range("classes", classes, logits.shape[1])
    return classes


def sum_class_logits(logits: Logits, classes: Labels) -> Tensor:
    """The sum over images of each one's class logit; its gradient is that of each image alone."""
    check_gradient(logits)
    return logits.gather(1, classes.unsqueeze(1)).sum()


def check_gradient(logits: Logits) -> None:
    """Raise ``BadInput`` unless the logits have a gradient."""
    if not logits.requires_grad:
        raise BadInput("the model passes no gradient back, which this explanation needs")
