"""Networks and images whose arithmetic is known, and networks that record what they are asked."""

import zlib
from typing import Any

import torch
from torch import Tensor, nn

from pinprick.model import Classifier
from pinprick.oracle import exact_images, exact_linear, sure_images

SHAPE = (3, 4, 5)
CLASSES = 4


class RowByRow(nn.Module):
    """A network that sees each image by itself, so that its rounding cannot depend on the batch."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([self.net(image.unsqueeze(0)) for image in images])


def network(model: Classifier) -> nn.Module:
    assert isinstance(model.net, nn.Module)
    return model.net


def row_by_row(
    classes: int = CLASSES,
    shape: tuple[int, int, int] = SHAPE,
    dtype: torch.dtype = torch.float64,
) -> Classifier:
    """An exact linear model that sees each image by itself."""
    return Classifier(RowByRow(network(exact_linear(classes, shape, dtype=dtype))))


def busy_network() -> nn.Module:
    """The exact linear network, with all that a careless attack could leave changed.

    It has modules in either mode, parameters with and without gradients, and a hook. In training
    mode it would drop half of its input at random.
    """
    linear = network(exact_linear(CLASSES, SHAPE))[1]  # type: ignore[index]
    norm = nn.BatchNorm1d(linear.in_features, eps=0.0).double()
    with torch.no_grad():
        norm.bias.fill_(1.0)  # above zero, where the ReLU is the identity
        linear.bias.copy_(-linear.weight.sum(dim=1))
    net = nn.Sequential(
        nn.Flatten(), nn.Dropout(0.5), norm, nn.ReLU(inplace=True), RowByRow(linear)
    )
    net.train()
    norm.eval()
    norm.weight.requires_grad_(False)
    norm.bias.grad = torch.full_like(norm.bias, 7.0)
    net.register_forward_hook(lambda *_: None)
    return net


def some_images(count: int = 6, shape: tuple[int, int, int] = SHAPE) -> Tensor:
    """Images of which the first half is easily fooled and the rest is not."""
    images = exact_images(count, shape)
    half = count // 2
    return torch.cat((images[:half], sure_images(exact_linear(CLASSES, shape), images)[half:]))


def guesses(model: Classifier, images: Tensor) -> Tensor:
    """What the model takes the images for."""
    with torch.no_grad(), model.frozen():
        return model(images).argmax(dim=1)


def stubborn() -> Classifier:
    """A model that says 0 of everything, though it has a gradient."""
    linear = row_by_row()
    for name, parameter in network(linear).named_parameters():
        if name.endswith("bias"):
            parameter.data[0] = 100
    return linear


def indifferent() -> Classifier:
    """A model whose logits are all tied, whatever it sees, and whose gradient is zero."""
    linear = row_by_row()
    for parameter in network(linear).parameters():
        parameter.data.zero_()
    return linear


# Faults of single images

FAULTS = {"nan logits": 0.3, "inf logits": 0.35, "nan gradient": 0.4, "zero gradient": 0.45}
_STAMPS = torch.tensor(list(FAULTS.values()), dtype=torch.float64)


def stamp(images: Tensor, fault: str) -> Tensor:
    """Copies of the images that a ``Faulty`` network has this fault with."""
    stamped = images.clone()
    stamped.flatten(1)[:, ::3] = FAULTS[fault]
    return stamped


def find_faults(images: Tensor) -> Tensor:
    """Which images bear which stamps, as (batch, faults); a few changes do not take one off."""
    values = images.detach().flatten(1)
    stamps = _STAMPS.to(values.dtype)
    return (values.unsqueeze(2) == stamps).sum(dim=1) > values.shape[1] // 6


class Faulty(nn.Module):
    """A network with something wrong with it, but for stamped images alone."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        faults = find_faults(images)
        if not faults.any():
            logits: Tensor = self.net(images)
            return logits
        nan_logits, inf_logits, nan_gradient, zero_gradient = faults.unsqueeze(2).unbind(dim=1)
        logits = self.net(_SpoilGradient.apply(images, nan_gradient, zero_gradient))
        return logits.where(~nan_logits, float("nan")).where(~inf_logits, float("inf"))


class _SpoilGradient(torch.autograd.Function):
    """The identity, with another gradient in some rows."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, nan: Tensor, zero: Tensor) -> Tensor:
        ctx.nan, ctx.zero = nan[:, :, None, None], zero[:, :, None, None]
        return images.view_as(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad.masked_fill(ctx.nan, float("nan")).masked_fill(ctx.zero, 0.0), None, None


# What a network was asked


class Counting(nn.Module):
    """A network that counts forward and backward passes.

    Several gradients cannot be made together, so that none is missed.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.forwards = self.backwards = 0

    def forward(self, images: Tensor) -> Tensor:
        self.forwards += len(images)
        if images.requires_grad:
            images = images.view_as(images)
            images.register_hook(self._note)
        logits: Tensor = self.net(images)
        return logits

    def _note(self, grad: Tensor) -> None:
        grad.any().item()  # raises an error under torch.vmap
        self.backwards += len(grad)


class Watched(Counting):
    """A network that also counts its calls, and has a checksum of all images that it saw."""

    def __init__(self, net: nn.Module | None = None) -> None:
        super().__init__(Faulty(busy_network() if net is None else net))
        self.calls = self.checksum = 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        self.checksum = zlib.crc32(images.detach().numpy().tobytes(), self.checksum)
        return super().forward(images)


class OneHot(nn.Module):
    """A network that gives the class, and nothing else that its logits say."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)
