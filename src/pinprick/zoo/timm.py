"""``timm:NAME``: a classifier of timm with its pretrained weights, where timm is installed.

Input size, crop, interpolation, mean, std and class names are read from the configuration that
timm keeps beside the weights. Its own transform works on 8-bit pixels, too.
"""

import re
from typing import Any

from PIL.Image import Image

from pinprick.data.convert import as_rgb
from pinprick.errors import BadInput, MissingExtra, UnknownName
from pinprick.model import Classifier
from pinprick.types import Picture
from pinprick.zoo.download import fetching
from pinprick.zoo.imagenet import imagenet_classes


def load(name: str) -> Classifier:
    timm = import_timm(f"the model timm:{name}")
    if not timm.is_model_pretrained(name):
        tagged = timm.list_pretrained()
        known = {full if "." in name else full.partition(".")[0] for full in tagged}
        raise UnknownName("pretrained model of timm", name, known)
    with fetching(f"timm:{name}"):
        net = timm.create_model(name, pretrained=True)
    return from_config(net, f"timm:{name}")


def names() -> list[str]:
    """All that have pretrained weights, each with the tag of its weights."""
    return [str(name) for name in import_timm("the list of timm's models").list_pretrained()]


def import_timm(what: str) -> Any:
    try:
        import timm
    except ModuleNotFoundError:
        raise MissingExtra(what, "timm", "timm") from None
    return timm


def from_config(net: Any, name: str) -> Classifier:
    """The network with what its configuration says of preprocessing and classes."""
    from timm.data import create_transform, resolve_model_data_config

    if not net.num_classes:
        raise BadInput(f"{name} gives features and no classes; it cannot be fooled as it is")
    config = resolve_model_data_config(net)
    steps = create_transform(**config, is_training=False, normalize=False)
    mode = "L" if config["input_size"][0] == 1 else "RGB"

    def prepare(picture: Image) -> Picture:
        picture8: Picture = steps(as_rgb(picture)[0].convert(mode)).float() / 255
        return picture8

    return Classifier(
        net.eval(),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        classes=class_names(net),
        size=tuple(config["input_size"][1:]),
        prepare=prepare,
        name=name,
    )


def class_names(net: Any) -> tuple[str, ...]:
    """In words, as the configuration has them or as ImageNet's; empty where nobody says."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    config, count = net.pretrained_cfg, net.num_classes
    said = config.get("label_names")
    names = [str(said[i]) for i in range(count)] if said and len(said) == count else []
    words = config.get("label_descriptions") or {}
    if isinstance(words, dict) and all(name in words for name in names):
        names = [str(words[name]) for name in names]
    synsets = bool(names) and all(re.fullmatch(r"n\d{8}", name) for name in said)
    subset = infer_imagenet_subset({"num_classes": count})
    if names and not (synsets and subset):
        return tuple(names)
    if count == 1000:
        return imagenet_classes()
    if subset is None:
        return ()
    info = ImageNetInfo(subset)
    return tuple(info.index_to_description(i) for i in range(count))
