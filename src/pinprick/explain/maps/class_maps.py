"""Class activation maps from one layer: Grad-CAM and LayerCAM.

Selvaraju et al.: Grad-CAM: Visual explanations from deep networks via gradient-based localization.
ICCV 2017.
Jiang, Zhang, Hou, Cheng, Wei: LayerCAM: Exploring hierarchical class activation maps for
localization. IEEE Transactions on Image Processing 2021.

    Grad-CAM  ReLU(sum over k of  weight_k * A_k),  weight_k = mean over i, j of  dz_c / dA_k[i, j]
    LayerCAM  ReLU(sum over k of  ReLU(dz_c / dA_k) * A_k)

``z_c`` is the logit of the class, before the softmax. ``A_k`` are the planes of the layer. The map
is enlarged to the image. It costs one forward pass, and one backward pass down to the layer.

The weights of Grad-CAM are means over a whole plane. They lose their meaning in early layers, whose
planes show edges rather than objects. LayerCAM has one weight per position, so it can use earlier,
finer layers: 16 by 16 for a 32 by 32 image, which can be compared with single pixels. Networks for
small images end with 4 by 4 or 8 by 8. So "auto" is LayerCAM for small images and Grad-CAM for
others. Unlike the paper, LayerCAM uses one layer here and no fusion of several.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick.errors import BadInput
from pinprick.explain.maps.inputs import Classes, check_inputs, choose_classes, sum_class_logits
from pinprick.explain.maps.layers import choose_layer
from pinprick.explain.maps.maps import SMALL, Maps
from pinprick.feature_layer import FINE_ENOUGH, first_tensor, planes
from pinprick.intake import check_images
from pinprick.model import Classifier, Model
from pinprick.settings import check_choice
from pinprick.types import Images, Labels

MapMethod = Literal["auto", "gradcam", "layercam"]
MAP_METHODS: tuple[MapMethod, ...] = ("auto", "gradcam", "layercam")

Planes = Float[Tensor, "batch planes rows columns"]


def as_method(method: str) -> MapMethod:
    """The method of that name."""
    check_choice("map of an explanation", method, MAP_METHODS)
    return cast(MapMethod, method)


@torch.inference_mode(False)  # gradients are needed, also when the caller is in inference mode
def class_maps(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    method: MapMethod = "auto",
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Maps:
    """One map per image of where a layer sees its class.

    Args:
        model: A ``Classifier`` of a network, or a network of images in [0, 1].
        images: Images in [0, 1], on any device; the maps come back there.
        classes: The class to explain per image; None for the predicted ones.
        method: "gradcam" or "layercam"; "auto" is LayerCAM up to 64 pixels per side.
        layer: The layer, or its name; None for the one that ``find_layer`` finds.
        batch_size: Images per batch; chosen from their size by default.
    """
    if as_method(method) == "auto":
        check_images(images)
        method = "layercam" if max(images.shape[2:]) <= SMALL else "gradcam"
    how = _METHODS[method]
    inputs = check_inputs(how.name, model, images, classes, batch_size)
    name, module = choose_layer(inputs, layer, at_least=how.least_side)
    maps, chosen = [], []
    for batch, wanted in inputs.batches():
        activations, gradients, found = _layer_gradients(inputs.model, module, name, batch, wanted)
        weighted = how.weigh(activations, gradients).nan_to_num(0.0, 0.0, 0.0)
        maps.append(weighted.to(images.device))
        chosen.append(found.to(images.device))
    coarse = torch.cat(maps)
    size = images.shape[2:]
    fine = F.interpolate(coarse.unsqueeze(1), size=size, mode="bilinear", align_corners=False)
    return Maps(
        values=fine.squeeze(1),
        coarse=coarse,
        classes=torch.cat(chosen),
        layer=name,
        method=how.name,
    )


def gradcam(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Maps:
    """Grad-CAM of each image for its class; arguments as in ``class_maps``.

    The default layer is the last one that gives at least 6 by 6.
    """
    return class_maps(model, images, classes, method="gradcam", layer=layer, batch_size=batch_size)


def layercam(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Maps:
    """LayerCAM of each image for its class; arguments as in ``class_maps``.

    The default layer is the last one that gives at least 14 by 14.
    """
    return class_maps(model, images, classes, method="layercam", layer=layer, batch_size=batch_size)


def _by_mean_gradient(activations: Planes, gradients: Planes) -> Tensor:
    weights = gradients.mean(dim=(2, 3), keepdim=True)
    return (weights * activations).sum(dim=1).relu()


def _by_positive_gradient(activations: Planes, gradients: Planes) -> Tensor:
    return (gradients.relu() * activations).sum(dim=1).relu()


@dataclass(frozen=True)
class _Method:
    name: str
    least_side: int  # of the layer's planes, if none is given
    weigh: Callable[[Planes, Planes], Tensor]


_METHODS = {
    "gradcam": _Method("Grad-CAM", FINE_ENOUGH, _by_mean_gradient),
    "layercam": _Method("LayerCAM", 14, _by_positive_gradient),
}


def _layer_gradients(
    model: Classifier, layer: nn.Module, name: str, images: Images, classes: Labels | None
) -> tuple[Planes, Planes, Labels]:
    """The layer's activations, the gradients of each image's class logit there, and the classes."""
    with model.frozen(), torch.enable_grad(), _detached_output(layer) as outputs:
        logits = model(images)
        classes = choose_classes(logits, images, classes)
        if not outputs:
            raise BadInput(
                f"the layer {name!r} was not called in the forward pass; pass another layer, or "
                "the network before it was compiled"
            )
        if planes(outputs[0], images) is None:
            raise BadInput(
                f"the layer {name!r} gives the shape {tuple(outputs[0].shape)}, which is no map of "
                f"the {tuple(images.shape)} images; pass the name of a layer that gives (batch, "
                "channels, height, width), or one token per patch"
            )
        if not logits.requires_grad:
            raise BadInput(
                f"the logits do not depend on the layer {name!r}, or no gradient reaches it; pass "
                "the name of another layer"
            )
        total = sum_class_logits(logits, classes)
        (gradient,) = torch.autograd.grad(total, outputs[0], materialize_grads=True)
    activations, gradients = planes(outputs[0].detach(), images), planes(gradient, images)
    assert activations is not None
    assert gradients is not None
    return activations, gradients, classes


@contextmanager
def _detached_output(layer: nn.Module) -> Iterator[list[Tensor]]:
    """A list with the output of the layer's last call; empty before the first call.

    The output is detached and the network goes on with a copy. So the backward pass stops at the
    layer, and nothing before it is kept in memory. Layers that work in place do not change it.
    """
    outputs: list[Tensor] = []

    def record(_module: nn.Module, _given: Any, output: Any) -> Any:
        first = first_tensor(output)
        if first is None:
            return None
        own = first.detach().clone().requires_grad_()
        outputs[:] = [own]
        return own.clone() if first is output else (own.clone(), *output[1:])

    handle = layer.register_forward_hook(record)
    try:
        yield outputs
    finally:
        handle.remove()
