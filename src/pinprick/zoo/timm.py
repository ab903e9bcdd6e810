"""``timm:NAME``: a classifier of timm with its pretrained weights, where timm is installed.

Input size, crop, interpolation, mean, std and class names are read from the configuration that
timm keeps beside the weights. Its own transform works on 8-bit pixels, too.
"""

import re
from typing import Any

from PIL.Image import Image

from pinprick.data.classes import imagenet_classes
from pinprick.data.pictures import as_rgb
from pinprick.errors import BadInput, MissingExtra, UnknownName
from pinprick.model import Classifier
from pinprick.types import Picture
from pinprick.zoo.safe_loading import fetching

_MAX_SIDE = 4096  # pixels of a side
_MAX_NUMBER = 1e30  # where float32 is close to its end
_CROPS = ("center", "squash", "border")
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "box", "hamming", "lanczos")


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
        raise BadInput(f"{name} gives features and no classes; it is no classifier")
    config = resolve_model_data_config(net)
    _check(config, name)
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


def _check(config: dict[str, Any], name: str) -> None:
    """See that the preprocessing can be done; the configuration may come from anywhere."""
    size, crop = config["input_size"], config["crop_pct"]
    channels = size[0] if isinstance(size, list | tuple) and len(size) == 3 else 0
    sides = size[1:] if channels else ()
    numbers = f"{channels} finite numbers"
    for entry, wanted, fits in (
        (
            "input_size",
            f"1 or 3 channels, then height and width up to {_MAX_SIDE}",
            channels in (1, 3) and all(type(one) is int and 0 < one <= _MAX_SIDE for one in sides),
        ),
        ("mean", numbers, _are_numbers(config["mean"], channels)),
        (
            "std",
            f"{numbers} above zero",
            _are_numbers(config["std"], channels) and min(config["std"]) > 0,
        ),
        ("crop_pct", "a share from 0.1 to 2", _are_numbers([crop], 1) and 0.1 <= crop <= 2),
        ("crop_mode", f"one of {', '.join(_CROPS)}", config["crop_mode"] in _CROPS),
        (
            "interpolation",
            f"one of {', '.join(_INTERPOLATIONS)}",
            config["interpolation"] in _INTERPOLATIONS,
        ),
    ):
        if not fits:
            raise BadInput(
                f"{entry} in the config of {name} must be {wanted}, got {str(config[entry])[:60]}"
            )


def _are_numbers(values: Any, count: int) -> bool:
    return (
        isinstance(values, list | tuple)
        and len(values) == count
        and all(type(one) in (int, float) and abs(one) < _MAX_NUMBER for one in values)
    )


def class_names(net: Any) -> tuple[str, ...]:
    """In words, as the configuration has them or as ImageNet's; empty where nobody says."""
    from timm.data import ImageNetInfo, infer_imagenet_subset

    config, count = net.pretrained_cfg, net.num_classes
    said = config.get("label_names") or []
    if isinstance(said, dict):  # by number; JSON has text in its place
        said = [said[key] for i in range(count) for key in (i, str(i)) if key in said]
    said = [str(name) for name in said] if len(said) == count else []
    names, words = said, config.get("label_descriptions")
    if isinstance(words, dict) and all(name in words for name in names):
        names = [str(words[name]) for name in names]
    synsets = bool(said) and all(re.fullmatch(r"n\d{8}", name) for name in said)
    subset = infer_imagenet_subset({"num_classes": count})
    if names and not (synsets and subset):
        return tuple(names)
    if count == 1000:
        return imagenet_classes()
    if subset is None:
        return ()
    info = ImageNetInfo(subset)
    return tuple(info.index_to_description(i) for i in range(count))
