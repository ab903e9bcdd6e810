"""``rounded:NAME`` and ``ensemble:NAME+NAME``: models made of other models, for transfer.

    rounded:file:mine                       file:mine, which sees images rounded to 8-bit values
    ensemble:file:mine+torchvision:vgg16    the mean of the logits of several models

Rounding has no gradient, so a rounded model gives scores at most. Its use is as a victim: it judges
what a PNG of an adversarial image would hold.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.model import Access, Classifier, gives

_GREY_LEVELS = 255
_JOINS = "+"  # between the names of an ensemble


def load_rounded(name: str, model: Classifier) -> Classifier:
    """The model behind 8-bit images.

    Args:
        name: The name of the whole, for tables.
        model: The model that sees the rounded images.
    """
    access: Access = "scores" if gives(model.access, "scores") else "labels"
    return _like(model, _Rounded([model]), name, access=access)


def load_ensemble(name: str, models: Sequence[Classifier]) -> Classifier:
    """The mean of the logits of several models.

    Args:
        name: The name of the whole, for tables.
        models: Two models or more, with the same classes and image size, which give gradients.
    """
    if len(models) < 2:
        raise BadInput(f"{name} has one model; an ensemble is written ensemble:NAME{_JOINS}NAME")
    first = models[0]
    for other in models[1:]:
        if (other.classes, other.size) != (first.classes, first.size):
            raise BadInput(
                f"{other.name} has other classes or another image size than {first.name}; the "
                "models of an ensemble must have the same"
            )
    for model in models:
        if not gives(model.access, "gradients"):
            raise BadInput(f"{model.name} gives no gradients, so it cannot be in an ensemble")
    return _like(first, _MeanLogits(models), name, access="gradients")


def split_names(names: str) -> list[str]:
    """The names of an ensemble, one by one."""
    return names.split(_JOINS)


class _Several(nn.Module):
    """Networks with their own mean and std, which are part of its state."""

    def __init__(self, models: Sequence[Classifier]) -> None:
        super().__init__()
        self.models = tuple(models)
        nets = [model.net for model in models]
        self.nets = nn.ModuleList(net for net in nets if isinstance(net, nn.Module))
        for number, model in enumerate(models):
            for kind, values in (("mean", model.mean), ("std", model.std)):
                if values is not None:
                    self.register_buffer(f"{kind}_{number}", torch.tensor(values))


class _Rounded(_Several):
    def forward(self, images: Tensor) -> Tensor:
        return self.models[0]((images * _GREY_LEVELS).round() / _GREY_LEVELS)


class _MeanLogits(_Several):
    def forward(self, images: Tensor) -> Tensor:
        return torch.stack([model(images) for model in self.models]).mean(dim=0)


def _like(model: Classifier, net: nn.Module, name: str, *, access: Access) -> Classifier:
    """``net`` with classes, size and preparation of ``model``; it normalises by itself."""
    return Classifier(
        net.eval(),
        classes=model.classes,
        size=model.size,
        prepare=model.prepare,
        access=access,
        name=name,
    )
