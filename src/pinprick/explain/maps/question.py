"""What is asked of an explanation, checked: a model, images, and a class for each."""

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
class Question:
    """A model with some images, and the classes to explain; None for what the model says."""

    model: Classifier
    images: Images
    classes: Labels | None
    batch_size: int

    @property
    def network(self) -> nn.Module:
        assert isinstance(self.model.net, nn.Module), "ask(..., needs='network') saw to that"
        return self.model.net

    @property
    def device(self) -> torch.device:
        """Where the model is asked."""
        return self.model.device or self.images.device

    def batches(self) -> Iterator[tuple[Images, Labels | None]]:
        """The images and their classes in pieces, where the model is."""
        for start in range(0, len(self.images), self.batch_size):
            rows = slice(start, start + self.batch_size)
            classes = None if self.classes is None else self.classes[rows].to(self.device)
            yield self.images[rows].to(self.device), classes


def ask(
    what: str,
    model: Classifier | Model,
    images: Tensor,
    classes: Classes,
    batch_size: int | None,
    *,
    needs: Access = "network",
) -> Question:
    """The arguments of a function that explains, or a line on what is wrong with them."""
    classifier = as_classifier(model)
    _check_open(what, classifier, needs)
    check_images(images)
    if not len(images):
        raise BadInput(f"{what} is of images, and there are none")
    if images.is_inference():  # nothing takes a gradient there
        images = images.clone()
    chosen = None if classes is None else per_image("classes", classes, images)
    return Question(classifier, images.detach(), chosen, batch_size_for(images, batch_size))


def _check_open(what: str, model: Classifier, needs: Access) -> None:
    """Raise ``BadInput`` unless the model lets itself be looked at as closely as is needed."""
    lacking = not gives(model.access, needs)
    if needs != "network":
        if lacking:
            raise BadInput(f"{what} needs {needs}, but {model.name} gives {model.access} alone")
        return
    if lacking or not isinstance(model.net, nn.Module):
        raise BadInput(
            f"{what} needs the layers of a network, but {model.name} gives {model.access} alone"
        )
    if any(isinstance(part, torch.jit.ScriptModule) for part in model.net.modules()):
        raise BadInput(
            f"{what} needs the layers of a network, but {model.name} hides them, as it was "
            "scripted or traced; pass it as it was before"
        )


def choose_classes(logits: Logits, images: Images, classes: Labels | None) -> Labels:
    """The classes to explain, if they are the model's; its own answers where none were given."""
    check_answers(logits, images)
    if classes is None:
        return logits.argmax(dim=1)
    check_range("classes", classes, logits.shape[1])
    return classes


def pick(logits: Logits, classes: Labels) -> Tensor:
    """The sum over images of the score of each one's class; its gradient is each image's own."""
    check_slope(logits)
    return logits.gather(1, classes.unsqueeze(1)).sum()


def check_slope(logits: Logits) -> None:
    """Raise ``BadInput`` unless the model passes a gradient back."""
    if not logits.requires_grad:
        raise BadInput(
            "the model passes no gradient back, and an explanation by gradients needs one"
        )
