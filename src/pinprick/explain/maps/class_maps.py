"""The map that an explanation holds the change against: LayerCAM of small images, else Grad-CAM.

The last layers of networks for small images have maps of 4 by 4 or 8 by 8, too coarse for single
pixels. LayerCAM keeps its meaning in earlier, finer layers.
"""

from collections.abc import Callable
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick.explain.maps.layers import FINE_ENOUGH, pick_layer, watch
from pinprick.explain.maps.maps import SMALL, Maps
from pinprick.explain.maps.question import Classes, Question, ask
from pinprick.model import Classifier, Model
from pinprick.settings import check_choice

MapMethod = Literal["auto", "gradcam", "layercam"]
MAP_METHODS: tuple[MapMethod, ...] = ("auto", "gradcam", "layercam")


def as_method(method: str) -> MapMethod:
    """The method of that name."""
    check_choice("map of an explanation", method, MAP_METHODS)
    return cast(MapMethod, method)


def class_maps(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    method: MapMethod = "auto",
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Maps:
    """A map of each image for its class.

    Args:
        model: A ``Classifier`` of a network, or a network of images in [0, 1].
        images: Images in [0, 1], on any device; the maps come back there.
        classes: The class to look for in each image; None for the predicted one.
        method: "gradcam" or "layercam"; "auto" is LayerCAM up to 64 pixels per side.
        layer: The layer, or its name; None for the one that the method finds.
        batch_size: Images per batch; chosen from their size by default.
    """
    if as_method(method) == "auto":
        method = "layercam" if max(images.shape[2:]) <= SMALL else "gradcam"
    draw = layercam if method == "layercam" else gradcam
    return draw(model, images, classes, layer=layer, batch_size=batch_size)


# Grad-CAM: where in the image a layer sees the class.
#
# Selvaraju et al.: Grad-CAM: Visual explanations from deep networks via gradient-based
# localization. ICCV 2017.
#
#     weight_k = mean over i, j of  dz_c / dA_k[i, j]
#     map      = ReLU(sum over k of  weight_k * A_k)
#
# ``z_c`` is the logit of the class, before the softmax, and ``A_k`` are the planes of the layer.
# One forward pass, and one backward pass as far as the layer.


_GRADCAM = "Grad-CAM"


def gradcam(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Maps:
    """Grad-CAM of each image for its class.

    Args:
        model: A ``Classifier`` of a network, or a network of images in [0, 1].
        images: Images in [0, 1], on any device; the maps come back there.
        classes: The class to look for in each image; None for what the model says it is.
        layer: The layer, or its name; None for the one that ``find_layer`` finds.
        batch_size: How many images to send at a time; chosen from their size by default.
    """
    question = ask(_GRADCAM, model, images, classes, batch_size)
    return layer_maps(question, layer, _mean_slope, at_least=FINE_ENOUGH, method=_GRADCAM)


def _mean_slope(planes: Tensor, slopes: Tensor) -> Tensor:
    weights = slopes.mean(dim=(2, 3), keepdim=True)
    return (weights * planes).sum(dim=1).relu()


# LayerCAM: Grad-CAM with a weight for each place, so that early, finer layers can be used.
#
# Jiang, Zhang, Hou, Cheng, Wei: LayerCAM: Exploring hierarchical class activation maps for
# localization. IEEE Transactions on Image Processing 2021.
#
#     map = ReLU(sum over k of  ReLU(dz_c / dA_k) * A_k)
#
# The weights of Grad-CAM are means over the whole plane and lose their meaning where a plane shows
# edges rather than things. With one weight a place, 16 by 16 of a 32 by 32 picture are of use, fine
# enough to be compared with single pixels. Costs what Grad-CAM does.
#
# Differs from the paper: one layer, no fusion of several.


_LAYERCAM = "LayerCAM"


def layercam(
    model: Classifier | Model,
    images: Tensor,
    classes: Classes = None,
    *,
    layer: str | nn.Module | None = None,
    batch_size: int | None = None,
) -> Maps:
    """LayerCAM of each image for its class.

    Args:
        model: A ``Classifier`` of a network, or a network of images in [0, 1].
        images: Images in [0, 1], on any device; the maps come back there.
        classes: The class to look for in each image; None for what the model says it is.
        layer: The layer, or its name; None for the last that gives at least 14 by 14.
        batch_size: How many images to send at a time; chosen from their size by default.
    """
    question = ask(_LAYERCAM, model, images, classes, batch_size)
    return layer_maps(question, layer, _positive_slope, at_least=14, method=_LAYERCAM)


def _positive_slope(planes: Tensor, slopes: Tensor) -> Tensor:
    return (slopes.relu() * planes).sum(dim=1).relu()


# Maps taken from a layer: the passes and the enlarging that Grad-CAM and LayerCAM share.


@torch.inference_mode(False)  # gradients are needed, in whatever mode the caller is
def layer_maps(
    question: Question,
    layer: str | nn.Module | None,
    weigh: Callable[[Tensor, Tensor], Tensor],
    *,
    at_least: int,
    method: str,
) -> Maps:
    """What ``weigh`` makes of a layer's planes and their gradients; not finite counts as zero."""
    home, size = question.images.device, question.images.shape[2:]
    name, module = pick_layer(question, layer, at_least=at_least)
    maps, classes = [], []
    for images, wanted in question.batches():
        planes, slopes, chosen = watch(question.model, module, name, images, wanted)
        maps.append(weigh(planes, slopes).nan_to_num(0.0, 0.0, 0.0).to(home))
        classes.append(chosen.to(home))
    coarse = torch.cat(maps)
    fine = F.interpolate(coarse.unsqueeze(1), size=size, mode="bilinear", align_corners=False)
    return Maps(
        values=fine.squeeze(1), coarse=coarse, classes=torch.cat(classes), layer=name, method=method
    )
