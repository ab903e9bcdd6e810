"""Grad-CAM: where in the image a layer sees the class.

Selvaraju et al.: Grad-CAM: Visual explanations from deep networks via gradient-based
localization. ICCV 2017.

    weight_k = mean over i, j of  dz_c / dA_k[i, j]
    map      = ReLU(sum over k of  weight_k * A_k)

``z_c`` is the logit of the class, before the softmax, and ``A_k`` are the planes of the layer. One
forward pass, and one backward pass as far as the layer.
"""

from torch import Tensor, nn

from pinprick.explain.layer_maps import layer_maps
from pinprick.explain.layers import FINE_ENOUGH
from pinprick.explain.maps import Maps
from pinprick.explain.question import Classes, ask
from pinprick.model import Classifier, Model

_NAME = "Grad-CAM"


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
    question = ask(_NAME, model, images, classes, batch_size)
    return layer_maps(question, layer, _weigh, at_least=FINE_ENOUGH, method=_NAME)


def _weigh(planes: Tensor, slopes: Tensor) -> Tensor:
    weights = slopes.mean(dim=(2, 3), keepdim=True)
    return (weights * planes).sum(dim=1).relu()
