"""``timm:NAME``: a classifier of timm with its pretrained weights, where timm is installed.

Input size, crop, interpolation, mean and std are read from the configuration that timm keeps
beside the weights.
"""

from typing import Any

from PIL.Image import Image

from pinprick.data.convert import as_rgb
from pinprick.errors import MissingExtra, UnknownName
from pinprick.model import Classifier
from pinprick.types import Picture
from pinprick.zoo.download import fetching
from pinprick.zoo.imagenet import imagenet_classes


def load(name: str) -> Classifier:
    try:
        import timm
    except ModuleNotFoundError:
        raise MissingExtra(f"the model timm:{name}", "timm", "timm") from None

    if not timm.is_model_pretrained(name):
        tagged = timm.list_pretrained()
        known = {full if "." in name else full.partition(".")[0] for full in tagged}
        raise UnknownName("pretrained model of timm", name, known)
    with fetching(f"timm:{name}"):
        net = timm.create_model(name, pretrained=True)
    return from_config(net, f"timm:{name}")


def from_config(net: Any, name: str) -> Classifier:
    """The network with what its configuration says of preprocessing."""
    from timm.data import create_transform, resolve_model_data_config

    config = resolve_model_data_config(net)
    steps = create_transform(**config, is_training=False, normalize=False)

    def prepare(picture: Image) -> Picture:
        picture8: Picture = steps(as_rgb(picture)[0]).float() / 255
        return picture8

    return Classifier(
        net.eval(),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        classes=imagenet_classes() if net.num_classes == 1000 else (),
        size=tuple(config["input_size"][1:]),
        prepare=prepare,
        name=name,
    )
