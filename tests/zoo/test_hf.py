"""Models of timm and of the Hugging Face Hub, from a cache laid out as the Hub's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from pinprick import BadInput, MissingExtra
from pinprick.zoo import load_model
from zoo.conftest import HUB_CONFIG as CONFIG

timm = pytest.importorskip("timm")

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8))


def test_a_model_of_the_hub_is_what_its_config_says(shelf: Callable[[str], Path]) -> None:
    from timm.data import create_transform, resolve_model_data_config

    net = timm.create_model("test_resnet", num_classes=3).eval()
    folder = shelf("someone/pets")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    save_file(net.state_dict(), folder / "model.safetensors")

    model = load_model("hf:someone/pets")

    assert model.name == "hf:someone/pets"
    assert model.classes == ("cat", "dog", "owl")
    assert model.size == (64, 64)
    assert (model.mean, model.std) == ((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
    theirs = create_transform(**resolve_model_data_config(model.net), is_training=False)(PICTURE)
    prepared = model.prepare(PICTURE)
    assert torch.equal(model.normalise(prepared[None])[0], theirs)
    assert torch.equal((prepared * 255).round() / 255, prepared)
    with torch.no_grad():
        assert torch.equal(model(prepared[None]), net(model.normalise(prepared[None])))


def test_a_model_of_timm_comes_with_its_weights(shelf: Callable[[str], Path]) -> None:
    net = timm.create_model("test_resnet").eval()
    (name,) = timm.list_pretrained("test_resnet*")
    save_file(net.state_dict(), shelf(f"timm/{name}") / "model.safetensors")
    model = load_model("timm:test_resnet")
    assert model.class_name(282) == "tiger cat"
    images = torch.rand(1, 3, *(model.size or ()))
    with torch.no_grad():
        assert torch.equal(model(images), net(model.normalise(images)))


@pytest.mark.parametrize("careless", [False, True])
@pytest.mark.parametrize("name", ["hf:someone/pets", "timm:test_resnet"])
def test_a_pickle_on_the_hub_is_not_run(
    shelf: Callable[[str], Path],
    lay_trap: Callable[[Path], Path],
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    careless: bool,
) -> None:
    """Also where timm itself is careless, as older versions of it are."""

    def unsafe(path: str, map_location: Any = "cpu", weights_only: bool = True) -> Any:
        return torch.load(path, map_location=map_location, weights_only=False)

    if careless:
        monkeypatch.setattr("timm.models._hub._torch_load", unsafe)
    (tagged,) = timm.list_pretrained("test_resnet*")
    folder = shelf("someone/pets" if name.startswith("hf") else f"timm/{tagged}")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    lay_trap(folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match=r"nothing (of it )?was run"):
        load_model(name)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "bert"}, "not a model that timm can build"),
        (
            {**CONFIG, "architecture": "no_such_net"},
            "architecture 'no_such_net', which timm does not know",
        ),
        ({**CONFIG, "model_args": {"no_such_option": 1}}, "cannot be built .*no_such_option"),
    ],
)
def test_a_repository_of_something_else_is_said(
    shelf: Callable[[str], Path], config: dict[str, Any], message: str
) -> None:
    (shelf("someone/else") / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match=message):
        load_model("hf:someone/else")


def test_weights_that_do_not_fit_or_are_cut_are_said(shelf: Callable[[str], Path]) -> None:
    folder = shelf("someone/pets")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    path = folder / "model.safetensors"
    save_file(timm.create_model("test_resnet", num_classes=7).state_dict(), path)
    with pytest.raises(
        BadInput, match=r"weights of hf:someone/pets do not fit .*size mismatch for"
    ):
        load_model("hf:someone/pets")
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(BadInput, match="the weights of hf:someone/pets are damaged"):
        load_model("hf:someone/pets")


def test_what_is_not_there_is_one_clear_line(shelf: Callable[[str], Path]) -> None:
    with pytest.raises(BadInput, match="hf:someone/nothing could not be fetched") as error:
        load_model("hf:someone/nothing")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["pets", "a/b/c", "", "../x", "a/b@", "http://a/b"])
def test_a_name_on_the_hub_has_an_owner(name: str) -> None:
    with pytest.raises(BadInput, match="written hf:ORG/NAME"):
        load_model(f"hf:{name}")


def test_without_timm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "timm", None)
    with pytest.raises(MissingExtra, match=r"hf:a/b needs the package timm.*'pinprick\[timm\]'"):
        load_model("hf:a/b")


def test_class_names_of_other_sets_come_from_timm() -> None:
    from pinprick.zoo.timm import class_names

    large = timm.create_model("test_resnet", num_classes=11821)
    assert len(class_names(large)) == 11821
    assert any("tench" in name for name in class_names(large))
    assert class_names(timm.create_model("test_resnet", num_classes=5)) == ()


def test_features_are_no_classes() -> None:
    from pinprick.zoo.timm import from_config

    with pytest.raises(BadInput, match="timm:x gives features and no classes"):
        from_config(timm.create_model("test_resnet", num_classes=0), "timm:x")
