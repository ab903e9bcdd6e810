"""LayerCAM: Grad-CAM with a weight for each place, so that early, finer layers can be used.

Jiang, Zhang, Hou, Cheng, Wei: LayerCAM: Exploring hierarchical class activation maps for
localization. IEEE Transactions on Image Processing 2021.

    map = ReLU(sum over k of  ReLU(dz_c / dA_k) * A_k)

The weights of Grad-CAM are means over the whole plane and lose their meaning where a plane shows
edges rather than things. With one weight a place, 16 by 16 of a 32 by 32 picture are of use, fine
enough to be compared with single pixels. Costs what Grad-CAM does.

Differs from the paper: one layer, no fusion of several.
"""

from torch import Tensor, nn

from pinprick.explain.layer_maps import layer_maps
from pinprick.explain.maps import Maps
from pinprick.explain.question import Classes, ask
from pinprick.model import Classifier, Model

_NAME = "LayerCAM"


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
    question = ask(_NAME, model, images, classes, batch_size)
    return layer_maps(question, layer, _weigh, at_least=14, method=_NAME)


def _weigh(planes: Tensor, slopes: Tensor) -> Tensor:
    return (slopes.relu() * planes).sum(dim=1).relu()
