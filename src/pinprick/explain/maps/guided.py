"""Guided gradients, and Guided Grad-CAM: their product with Grad-CAM.

Springenberg et al.: Striving for simplicity: The all convolutional net. ICLR workshop 2015.
Selvaraju et al.: Grad-CAM. ICCV 2017.

    guided gradient   dz_c / dx  with the backward pass of every ReLU as in ``relu.py``
    Guided Grad-CAM   guided gradient * Grad-CAM, enlarged to the image

A guided gradient hardly depends on the class, nor on the weights of the upper layers: it draws the
edges that the network can see (Adebayo et al.: Sanity checks for saliency maps. NeurIPS 2018; Nie,
Zhang, Patel: A theoretical explanation for perplexing behaviors of backpropagation-based
visualizations. ICML 2018). It is good for finding a place in the image, never as evidence that a
pixel made the class.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from pinprick.errors import BadInput
from pinprick.explain.maps.class_maps import gradcam
from pinprick.explain.maps.maps import Attribution
from pinprick.explain.maps.question import Classes, ask, choose_classes, pick
from pinprick.model import Classifier, Model
from pinprick.types import Images, Labels

# ReLUs whose backward pass lets positive gradients through alone, wherever the network has them.
#
# Springenberg, Dosovitskiy, Brox, Riedmiller: Striving for simplicity: The all convolutional net.
# ICLR workshop 2015.
#
#     forward   b = ReLU(a)
#     backward  g_a = g_b  where a > 0 and g_b > 0, else 0
#
# ReLU6 is open where 0 < a < 6. The calls themselves are caught, so it makes no difference whether
# a ReLU is a module or a function, works in place, or is shared by many places in the network, and
# no module is touched.


OTHERS = {  # what else bends, and has no guided form
    "celu": "CELU",
    "elu": "ELU",
    "gelu": "GELU",
    "hardswish": "Hardswish",
    "leaky_relu": "LeakyReLU",
    "mish": "Mish",
    "prelu": "PReLU",
    "rrelu": "RReLU",
    "selu": "SELU",
    "silu": "SiLU",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}


class GuidedReLUs(TorchFunctionMode):
    """While this is entered, the backward pass of every ReLU that is called is the guided one.

    Attributes:
        count: How many calls of a ReLU were caught.
        others: Which activations without a guided form were called.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.others: set[str] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        called = getattr(func, "__name__", "").removesuffix(".default")
        name = called.removesuffix("_")
        if name in OTHERS:
            self.others.add(OTHERS[name])
        if name in _KINDS:
            given, ceiling, inplace = _KINDS[name](*args, **kwargs)
            if ceiling is not None:
                self.count += 1
                return _Guided.apply(given, ceiling, inplace or called.endswith("_"))
            self.others.add("Hardtanh")
        return func(*args, **kwargs)


_Call = tuple[Tensor, float | None, bool]  # its input, where it ends (None: no ReLU), in place?


def _relu(input: Tensor, inplace: bool = False) -> _Call:
    return input, torch.inf, inplace


def _relu6(input: Tensor, inplace: bool = False) -> _Call:
    return input, 6.0, inplace


def _hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> _Call:
    return input, max_val if min_val == 0 else None, inplace


_KINDS: dict[str, Callable[..., _Call]] = {"relu": _relu, "relu6": _relu6, "hardtanh": _hardtanh}


class _Guided(torch.autograd.Function):
    """A ReLU up to ``ceiling``, with the guided backward pass."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, ceiling: float, inplace: bool) -> Tensor:
        ctx.save_for_backward((given > 0) & (given < ceiling))
        if inplace:
            ctx.mark_dirty(given)
            return given.clamp_(0, ceiling)
        return given.clamp(0, ceiling)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (passes,) = ctx.saved_tensors
        return grad.clamp(min=0) * passes, None, None


@torch.inference_mode(False)  # gradients are needed, in whatever mode the caller is
def guided_gradients(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    batch_size: int | None = None,
) -> Attribution:
    """The guided gradient of each image's class score; one forward and one backward pass.

    Args:
        model: A ``Classifier`` of a network with ReLUs, or such a network of images in [0, 1].
        images: Images in [0, 1], on any device; the gradients come back there.
        classes: The class of each image whose score is followed; None for what the model says.
        batch_size: How many images to send at a time; chosen from their size by default.
    """
    question = ask("a guided gradient", model, images, classes, batch_size)
    home = question.images.device
    parts = [_guided(question.model, *batch) for batch in question.batches()]
    values, chosen = zip(*parts, strict=True)
    return Attribution(values=torch.cat(values).to(home), classes=torch.cat(chosen).to(home))


def guided_gradcam(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Attribution:
    """Guided Grad-CAM of each image for its class; what Grad-CAM and a guided gradient cost.

    Args:
        model: A ``Classifier`` of a network with ReLUs, or such a network of images in [0, 1].
        images: Images in [0, 1], on any device; the products come back there.
        classes: The class to look for in each image; None for what the model says it is.
        layer: The layer of Grad-CAM, or its name; None for the one that ``find_layer`` finds.
        batch_size: How many images to send at a time; chosen from their size by default.
    """
    guided = guided_gradients(model, images, classes, batch_size=batch_size)
    maps = gradcam(model, images, guided.classes, layer=layer, batch_size=batch_size)
    return Attribution(values=guided.values * maps.values.unsqueeze(1), classes=guided.classes)


def _guided(model: Classifier, images: Images, classes: Labels | None) -> tuple[Images, Labels]:
    images = images.detach().requires_grad_()
    with model.frozen(), torch.enable_grad():
        with GuidedReLUs() as relus:
            logits = model(images)
        _check_bends(model, relus)
        classes = choose_classes(logits, images, classes)
        total = pick(logits, classes)
        (grad,) = torch.autograd.grad(total, images, materialize_grads=True)
    return grad.nan_to_num(0.0, 0.0, 0.0), classes


def _check_bends(model: Classifier, relus: GuidedReLUs) -> None:
    """Raise ``BadInput`` unless every activation of the network is some kind of ReLU."""
    if relus.others:
        raise BadInput(
            f"{model.name} uses {' and '.join(sorted(relus.others))}, and guided gradients are "
            "defined for ReLUs alone; gradcam and layercam do without"
        )
    if not relus.count:
        raise BadInput(
            f"{model.name} called no ReLU, and guided gradients are about nothing else; "
            "gradcam and layercam need none"
        )
