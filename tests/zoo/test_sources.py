"""Every source gives the preprocessing and the classes that belong to its weights."""

import sys
import urllib.error
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import models

from pinprick import BadInput, MissingExtra, UnknownName
from pinprick.data.classes import imagenet_classes
from pinprick.data.sets.photographs import read_photographs
from pinprick.zoo import load_model
from pinprick.zoo.timm import from_config
from pinprick.zoo.torchvision import from_weights

PICTURE = Image.fromarray(
    np.random.default_rng(0).integers(0, 256, (301, 417, 3), dtype=np.uint8)
).resize((640, 433))


@pytest.mark.parametrize(
    "weights",
    [
        models.ResNet50_Weights.IMAGENET1K_V1,
        models.ResNet50_Weights.IMAGENET1K_V2,
        models.EfficientNet_V2_S_Weights.DEFAULT,
        models.ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1,
        models.Inception_V3_Weights.DEFAULT,
    ],
    ids=str,
)
def test_torchvision_prepares_as_its_weights_say(weights: Any) -> None:
    model = from_weights(nn.Identity(), weights, "test")
    prepared = model.prepare(PICTURE)
    assert torch.equal(model.normalise(prepared[None])[0], weights.transforms()(PICTURE))
    assert prepared.shape[1:] == model.size
    assert model.class_name(282) == "tiger cat"


def test_torchvision_loads_a_checkpoint_in_its_own_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = models.squeezenet1_1()
    url = models.SqueezeNet1_1_Weights.DEFAULT.url
    checkpoint = tmp_path / "hub" / "checkpoints" / url.rpartition("/")[2]
    checkpoint.parent.mkdir(parents=True)
    torch.save(net.state_dict(), checkpoint)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))

    model = load_model("torchvision:squeezenet1_1")

    images = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(model(images), net.eval()(model.normalise(images)))
    assert model.name == "torchvision:squeezenet1_1"


def test_torchvision_has_several_sets_of_weights_for_a_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def get_model(name: str, weights: Any) -> nn.Module:
        asked.append(weights)
        return nn.Identity()

    monkeypatch.setattr(models, "get_model", get_model)
    model = load_model("torchvision:resnet50@IMAGENET1K_V1")
    load_model("torchvision:resnet50")
    versions = models.ResNet50_Weights
    assert asked == [versions.IMAGENET1K_V1, versions.DEFAULT]
    assert versions.DEFAULT != versions.IMAGENET1K_V1
    assert model.name == "torchvision:resnet50@IMAGENET1K_V1"
    assert torch.equal(
        model.normalise(model.prepare(PICTURE)[None])[0],
        versions.IMAGENET1K_V1.transforms()(PICTURE),
    )


def test_a_download_that_was_cut_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    name = models.SqueezeNet1_1_Weights.DEFAULT.url.rpartition("/")[2]
    checkpoint = tmp_path / "hub" / "checkpoints" / name
    checkpoint.parent.mkdir(parents=True)
    torch.save(models.squeezenet1_1().state_dict(), checkpoint)
    checkpoint.write_bytes(checkpoint.read_bytes()[:5000])
    with pytest.raises(BadInput, match=r"torchvision:squeezenet1_1 are damaged \(.*fetched again"):
        load_model("torchvision:squeezenet1_1")


def test_no_network_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise urllib.error.URLError("Name or service\nnot known")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr("torch.hub.download_url_to_file", fail)
    with pytest.raises(BadInput) as error:
        load_model("torchvision:squeezenet1_1")
    assert "\n" not in str(error.value)
    assert "torchvision:squeezenet1_1 could not be fetched" in str(error.value)
    assert "not known" in str(error.value)
    assert capsys.readouterr().out == ""  # stdout is for results


def test_timm_prepares_as_its_configuration_says() -> None:
    timm = pytest.importorskip("timm")
    from timm.data import create_transform, resolve_model_data_config

    for name in ("test_resnet", "test_vit", "test_efficientnet"):
        net = timm.create_model(name, pretrained=False)
        model = from_config(net, f"timm:{name}")
        theirs = create_transform(**resolve_model_data_config(net), is_training=False)(PICTURE)
        prepared = model.prepare(PICTURE)
        assert torch.equal(model.normalise(prepared[None])[0], theirs)
        assert torch.equal((prepared * 255).round() / 255, prepared)
        assert prepared.shape[1:] == model.size


def test_timm_names_are_checked_before_anything_is_fetched() -> None:
    pytest.importorskip("timm")
    with pytest.raises(UnknownName, match="did you mean vit_small_patch16_224"):
        load_model("timm:vit_smal_patch16_224")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("timm:resnet18", "timm", "timm"),
        ("efficientnet_lite0", "efficientnet_lite_pytorch", "demo"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"{module}.* pip install 'pinprick\[{extra}\]'"):
        load_model(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("efficientnet_lite", "did you mean efficientnet_lite0"),
        ("resnet50", "torchvision:resnet50"),
        ("torchvision:resnet5", "did you mean resnet50"),
        ("torchvision:fasterrcnn_resnet50_fpn", "no classifier of torchvision"),
        (
            "",
            r"known: efficientnet_lite0, ensemble:NAME\+NAME, file:PATH, file:PATH.onnx, hf:ORG",
        ),
        (
            "torchvision:resnet50@V1",
            "no set of weights of resnet50 .* known: DEFAULT, IMAGENET1K_V1",
        ),
    ],
)
def test_unknown_names_offer_the_nearest(name: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        load_model(name)


def test_a_long_list_of_names_is_cut() -> None:
    error = UnknownName("class", "?", imagenet_classes())
    assert str(error).endswith("and 988 more")


def test_the_embedded_default_knows_its_photographs() -> None:
    model = load_model("efficientnet_lite0")
    images = torch.stack([model.prepare(photo.image) for photo in read_photographs()])
    with torch.no_grad():
        top = model(images).softmax(dim=1).max(dim=1)
    said = [model.class_name(int(index)) for index in top.indices]
    assert said == ["tiger cat", "espresso", "tripod", "missile", "moped"]
    sure = [0.39, 0.95, 0.94, 0.30, 0.48]
    assert top.values.tolist() == pytest.approx(sure, abs=0.006)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "pinprick:mnist_cnn"])
def test_loading_draws_nothing_from_the_callers_random_numbers(name: str) -> None:
    if name == "efficientnet_lite0":
        pytest.importorskip("efficientnet_lite_pytorch")
    before = torch.get_rng_state()
    load_model(name)
    assert torch.equal(torch.get_rng_state(), before)
