"""The map that an explanation holds the change against: LayerCAM of small images, else Grad-CAM.

The last layers of networks for small images have maps of 4 by 4 or 8 by 8, too coarse for single
pixels. LayerCAM keeps its meaning in earlier, finer layers.
"""

from typing import Literal, cast

from torch import Tensor, nn

from pinprick.explain.gradcam import gradcam
from pinprick.explain.layercam import layercam
from pinprick.explain.maps import SMALL, Maps
from pinprick.explain.question import Classes
from pinprick.model import Classifier, Model
from pinprick.parts.choice import check_choice

MapMethod = Literal["auto", "gradcam", "layercam"]
MAP_METHODS: tuple[MapMethod, ...] = ("auto", "gradcam", "layercam")


def as_method(method: str) -> MapMethod:
    """The method of that name."""
    check_choice("an explanation", "map", method, MAP_METHODS)
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
