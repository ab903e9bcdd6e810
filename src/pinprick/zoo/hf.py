"""``hf:ORG/NAME``: a classifier from the Hugging Face Hub that timm can build.

``@REVISION`` at the end names a version. The repository's ``config.json`` says which network it
is, and its ``model.safetensors`` holds the weights; a pickle is read as plain tensors or refused.
As with ``file:``, the weights must fill the whole network.
"""

import re
from pathlib import Path
from typing import Any

from torch import nn

from pinprick.errors import BadInput, first_sentence
from pinprick.json_text import read_json_file
from pinprick.model import Classifier
from pinprick.zoo.card import ModelCard
from pinprick.zoo.from_card import build_on_meta, check_forward
from pinprick.zoo.safe_loading import fetching, is_about_weights
from pinprick.zoo.timm import from_config, import_timm

_MAX_ARGUMENT = (
    100_000  # of the numbers of model_args, such as layers and channels, and of num_classes
)
_MAX_PARAMETERS = 10**10  # parameters; the largest classifiers of timm have 7 * 10**9


def load(name: str) -> Classifier:
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]+)?", name):
        raise BadInput(
            f"a model of the Hugging Face Hub is written hf:ORG/NAME or hf:ORG/NAME@REVISION, "
            f"got {name!r}"
        )
    timm = import_timm(f"the model hf:{name}")
    with fetching(f"hf:{name}") as filled:
        config = _read_config(name)
        if not timm.is_model(config["architecture"]):
            raise BadInput(
                f"hf:{name} is of the architecture {config['architecture']!r}, which timm does not "
                "know"
            )
        try:
            on_meta = build_on_meta(lambda: timm.create_model(f"hf-hub:{name}", pretrained=False))
            _check_parameters(on_meta, name)
            net = timm.create_model(f"hf-hub:{name}", pretrained=True)
            filled.check(net)
            model = from_config(net, f"hf:{name}")
            _check_forward(model, net, on_meta)
        except Exception as error:  # a config can make timm raise anything
            if is_about_weights(error):
                raise
            raise BadInput(
                f"hf:{name} cannot be built by timm as its config.json says "
                f"({first_sentence(error)})"
            ) from None
    return model


def _read_config(name: str) -> dict[str, Any]:
    """What ``config.json`` holds, where its entries are of the kinds that timm expects."""
    from huggingface_hub import hf_hub_download

    owner, _, revision = name.partition("@")
    path = hf_hub_download(owner, "config.json", revision=revision or None)
    where = f"the config.json of hf:{name}"
    try:
        config = read_json_file(Path(path), finite=True)
    except BadInput as error:
        raise BadInput(str(error).replace(path, where)) from None
    if not isinstance(config, dict):
        raise BadInput(f"{where} must hold a JSON object, not a {type(config).__name__}")
    inner, arguments = config.get("pretrained_cfg", {}), config.get("model_args", {})
    for entry, value in (("pretrained_cfg", inner), ("model_args", arguments)):
        if not isinstance(value, dict):
            raise BadInput(f"{entry} in {where} must be an object, got {str(value)[:60]}")
    if not isinstance(config.get("architecture"), str):
        raise BadInput(f"{where} names no architecture, so it is not a model that timm can build")
    if "pretrained_strict" in arguments:
        raise BadInput(f"pretrained_strict in {where} is refused: weights must fit as they are")
    for count in (config.get("num_classes", 0), inner.get("num_classes", 0)):
        if type(count) is not int or not 0 <= count <= _MAX_ARGUMENT:
            raise BadInput(
                f"num_classes in {where} must be from 0 to {_MAX_ARGUMENT}, got {count!r:.60}"
            )
    for number in _numbers(arguments):
        if abs(number) > _MAX_ARGUMENT:
            raise BadInput(f"model_args in {where} must be up to {_MAX_ARGUMENT}, got {number}")
    for labels in (config.get("label_names"), inner.get("label_names")):
        if not isinstance(labels, list | dict | None):
            raise BadInput(f"label_names in {where} must be a list, got {str(labels)[:60]}")
    return config


def _numbers(value: Any) -> list[int | float]:
    """All numbers that stand anywhere in ``value``."""
    if isinstance(value, dict):
        return _numbers(list(value.values()))
    if isinstance(value, list):
        return [number for one in value for number in _numbers(one)]
    return [value] if isinstance(value, int | float) else []


def _check_parameters(on_meta: nn.Module | None, name: str) -> None:
    """Raise where the network is larger than any known one, before memory is taken."""
    count = 0 if on_meta is None else sum(one.numel() for one in on_meta.parameters())
    if count > _MAX_PARAMETERS:
        raise BadInput(
            f"hf:{name} would have {count} parameters; at most {_MAX_PARAMETERS} are loaded"
        )


def _check_forward(model: Classifier, net: Any, on_meta: nn.Module | None) -> None:
    """Raise unless the network takes images as its config says."""
    assert model.size is not None
    card = ModelCard(
        net=model.name,
        classes=model.classes or tuple(map(str, range(net.num_classes))),
        mean=model.mean,
        std=model.std,
        size=model.size,
        channels=len(model.mean or ()),
    )
    check_forward(net, on_meta, card)
