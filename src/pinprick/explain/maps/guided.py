"""Guided gradients, and Guided Grad-CAM: their product with Grad-CAM.

Springenberg, Dosovitskiy, Brox, Riedmiller: Striving for simplicity: The all convolutional net.
ICLR workshop 2015.
Selvaraju et al.: Grad-CAM. ICCV 2017.

    guided gradient   dz_c / dx  with another backward pass of every ReLU b = ReLU(a):
                      g_a = g_b  where a > 0 and g_b > 0, else 0      (ReLU6: 0 < a < 6)
    Guided Grad-CAM   guided gradient * Grad-CAM, enlarged to the image

A guided gradient hardly depends on the class or on the weights of the upper layers: it draws edges
(Adebayo et al.: Sanity checks for saliency maps. NeurIPS 2018; Nie, Zhang, Patel: A theoretical
explanation for perplexing behaviors of backpropagation-based visualizations. ICML 2018). Use it to
find a pixel in the image, never as evidence that the pixel caused the class.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from pinprick.errors import BadInput
from pinprick.explain.maps.class_maps import gradcam
from pinprick.explain.maps.inputs import Classes, check_inputs, choose_classes, sum_class_logits
from pinprick.explain.maps.maps import Attribution
from pinprick.model import Classifier, Model
from pinprick.types import Images, Labels

OTHERS = {  # activations without a guided form
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
    """Within this context every call of a ReLU gets the guided backward pass.

    Calls are intercepted, not modules. So a ReLU may be a module or a function, work in place, or
    be shared.

    Attributes:
        count: Number of calls of a ReLU.
        others: Names of the other activations that were called.
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
        if name in _RELUS:
            given, ceiling, inplace = _RELUS[name](*args, **kwargs)
            if ceiling is not None:
                self.count += 1
                return _Guided.apply(given, ceiling, inplace or called.endswith("_"))
            self.others.add("Hardtanh")
        return func(*args, **kwargs)


_Call = tuple[Tensor, float | None, bool]  # input, upper limit (None: no ReLU), in place?


def _relu(input: Tensor, inplace: bool = False) -> _Call:
    return input, torch.inf, inplace


def _relu6(input: Tensor, inplace: bool = False) -> _Call:
    return input, 6.0, inplace


def _hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> _Call:
    return input, max_val if min_val == 0 else None, inplace


_RELUS: dict[str, Callable[..., _Call]] = {"relu": _relu, "relu6": _relu6, "hardtanh": _hardtanh}


class _Guided(torch.autograd.Function):
    """A ReLU with an upper limit, with the guided backward pass."""

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


@torch.inference_mode(False)  # gradients are needed, also when the caller is in inference mode
def guided_gradients(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    batch_size: int | None = None,
) -> Attribution:
    """The guided gradient of each image's class logit; one forward and one backward pass.

    Args:
        model: A ``Classifier`` of a network with ReLUs, or such a network of images in [0, 1].
        images: Images in [0, 1], on any device; the gradients come back there.
        classes: The class to explain per image; None for the predicted ones.
        batch_size: Images per batch; chosen from their size by default.
    """
    inputs = check_inputs("a guided gradient", model, images, classes, batch_size)
    parts = [_guided(inputs.model, *batch) for batch in inputs.batches()]
    values, chosen = (torch.cat(part).to(images.device) for part in zip(*parts, strict=True))
    return Attribution(values=values, classes=chosen)


def guided_gradcam(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Attribution:
    """Guided Grad-CAM of each image for its class; two forward and two backward passes.

    ``layer`` is the layer of Grad-CAM; the other arguments are those of ``guided_gradients``.
    """
    guided = guided_gradients(model, images, classes, batch_size=batch_size)
    maps = gradcam(model, images, guided.classes, layer=layer, batch_size=batch_size)
    return Attribution(values=guided.values * maps.values.unsqueeze(1), classes=guided.classes)


def _guided(model: Classifier, images: Images, classes: Labels | None) -> tuple[Images, Labels]:
    images = images.detach().requires_grad_()
    with model.frozen(), torch.enable_grad():
        with GuidedReLUs() as relus:
            logits = model(images)
        _check_activations(model, relus)
        classes = choose_classes(logits, images, classes)
        total = sum_class_logits(logits, classes)
        (grad,) = torch.autograd.grad(total, images, materialize_grads=True)
    return grad.nan_to_num(0.0, 0.0, 0.0), classes


def _check_activations(model: Classifier, relus: GuidedReLUs) -> None:
    """Raise ``BadInput`` unless all activations of the network are ReLUs."""
    if relus.others:
        raise BadInput(
            f"{model.name} uses {' and '.join(sorted(relus.others))}, but guided gradients are "
            "defined for ReLUs only; use gradcam or layercam"
        )
    if not relus.count:
        raise BadInput(
            f"{model.name} called no ReLU, but guided gradients need one; use gradcam or layercam"
        )
