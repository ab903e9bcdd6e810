"""Whatever a repository of the Hub holds, there is a model with all its weights, or one line."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from pinprick import BadInput, PinprickError
from pinprick.zoo import load_model
from zoo.conftest import HUB_CONFIG

timm = pytest.importorskip("timm")

NAME = "hf:someone/pets"


@pytest.fixture
def folder(shelf: Callable[[str], Path]) -> Path:
    """A repository that is in order."""
    folder = shelf("someone/pets")
    (folder / "config.json").write_text(json.dumps(HUB_CONFIG))
    net = timm.create_model("test_resnet", num_classes=3)
    save_file(net.state_dict(), folder / "model.safetensors")
    return folder


def edited(**entries: Any) -> dict[str, Any]:
    """The config with some entries in place of its own; pretrained_cfg is edited, too."""
    config = copy.deepcopy(HUB_CONFIG) | entries
    if isinstance(entries.get("pretrained_cfg"), dict):
        config["pretrained_cfg"] = HUB_CONFIG["pretrained_cfg"] | entries["pretrained_cfg"]
    return config


def refused(folder: Path, config: Any, message: str) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    (folder / "config.json").write_text(text)
    with pytest.raises(PinprickError, match=message) as error:
        load_model(NAME)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "config",
    [
        edited(model_args={"num_classes": 5}),  # the head would be random
        edited(num_classes=7, model_args={"num_classes": 3}),
    ],
    ids=["head", "config"],
)
def test_a_head_that_the_file_does_not_fill_is_refused(
    folder: Path, config: dict[str, Any]
) -> None:
    refused(folder, config, f"{NAME}.*do not fit the network: the file lacks fc.weight")


def test_weights_that_the_file_lacks_are_named(folder: Path) -> None:
    path = folder / "model.safetensors"
    state = load_file(path)
    save_file({name: one for name, one in state.items() if "layer2" not in name}, path)
    with pytest.raises(BadInput, match=rf"weights of {NAME} do not fit .*Missing.*layer2"):
        load_model(NAME)


def test_weights_that_are_not_loaded_by_name_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network of timm may have a way of its own to read files, which leaves out what it likes."""
    monkeypatch.setattr("timm.models._builder.load_pretrained", lambda *_, **__: None)
    with pytest.raises(BadInput, match=f"weights of {NAME} do not fit .*the file lacks conv1"):
        load_model(NAME)


def test_loading_draws_nothing_from_the_callers_random_numbers(folder: Path) -> None:
    before = torch.get_rng_state()
    load_model(NAME)
    assert torch.equal(torch.get_rng_state(), before)


DEEP = 10_000


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "not JSON"),
        ("[]", "must hold a JSON object, not a list"),
        ("null", "must hold a JSON object"),
        ("[" * DEEP + "]" * DEEP, "nested too deeply"),
        ('{"a":' * DEEP + "1" + "}" * DEEP, "nested too deeply"),
        ("\x00", "not JSON"),
        ({}, "names no architecture"),
        ({"pretrained_cfg": {}}, "names no architecture"),
        (edited(architecture=None), "names no architecture"),
        (edited(architecture=["test_resnet"]), "names no architecture"),
        (edited(architecture="hf-hub:someone/else"), "architecture"),
        (edited(architecture="local-dir:/tmp"), "architecture"),
        (edited(pretrained_cfg=[1]), "pretrained_cfg .* must be an object"),
        (edited(pretrained_cfg=None), "pretrained_cfg .* must be an object"),
        (edited(model_args=[1]), "model_args .* must be an object"),
        (edited(model_args={"layers": [10**9] * 4}), "1000000000"),
        (edited(model_args={"width": "x\n" * 500}), "cannot be built"),
        (edited(model_args={"pretrained": False}), "pretrained"),
        (edited(model_args={"pretrained_strict": False}), "pretrained_strict .* is refused"),
        (edited(model_args={"features_only": True}), NAME),
        (edited(model_args={"channels": [50_000] * 4, "num_classes": 3}), "parameters"),
        (edited(num_classes=0, model_args={}), "Unexpected key"),
        (edited(num_classes=-3, model_args={}), "num_classes"),
        (edited(num_classes=10**9, model_args={}), "num_classes"),
        (edited(num_classes="3"), "num_classes"),
        (edited(num_classes=True), "num_classes"),
        (edited(label_names=5), "label_names"),
        (edited(label_names={"a": "b"}, label_descriptions=[1]), None),
        (edited(label_names=[[1], {}, None]), None),
        (edited(pretrained_cfg={"mean": [float("nan")] * 3}), "holds the number nan"),
        (edited(pretrained_cfg={"mean": ["a", "b", "c"]}), "mean"),
        (edited(pretrained_cfg={"mean": [0.5]}), "mean"),
        (edited(pretrained_cfg={"mean": 0.5}), "mean"),
        (edited(pretrained_cfg={"std": [0.0, 1.0, 1.0]}), "std"),
        (edited(pretrained_cfg={"std": [1.0, 1.0, 10**400]}), "std"),
        (edited(pretrained_cfg={"std": {"r": 1}}), "std"),
        (edited(pretrained_cfg={"input_size": [3, 10**9, 10**9]}), "input_size"),
        (edited(pretrained_cfg={"input_size": [3, 0, 64]}), "input_size"),
        (edited(pretrained_cfg={"input_size": [3, 64.5, 64]}), "input_size"),
        (edited(pretrained_cfg={"input_size": [7, 64, 64]}), "input_size"),
        (edited(pretrained_cfg={"input_size": 64}), "cannot be built"),
        (edited(pretrained_cfg={"crop_pct": 1e-9}), "crop_pct"),
        (edited(pretrained_cfg={"crop_pct": -1}), "crop_pct"),
        (edited(pretrained_cfg={"crop_pct": "a"}), "crop_pct"),
        (edited(pretrained_cfg={"interpolation": "psychic"}), "interpolation"),
        (edited(pretrained_cfg={"interpolation": []}), None),
        (edited(pretrained_cfg={"crop_mode": 7}), "crop_mode"),
        (edited(pretrained_cfg={"first_conv": "no such layer"}), None),
        (edited(pretrained_cfg={"classifier": {"a": 1}}), None),
        (edited(pretrained_cfg={"label_offset": 2}), NAME),
        (edited(pretrained_cfg={"hf_hub_filename": "../../../secret"}), NAME),
        (
            edited(pretrained_cfg={"custom_load": "hf", "hf_hub_filename": "model.safetensors"}),
            NAME,
        ),
    ],
)
def test_an_odd_config_is_a_model_or_one_line(
    folder: Path, config: Any, message: str | None
) -> None:
    if message is not None:
        return refused(folder, config, message)
    (folder / "config.json").write_text(json.dumps(config))
    check(load_model(NAME))


def check(model: Any) -> None:
    with torch.no_grad():
        assert model(torch.rand(1, 3, *model.size)).isfinite().all()


def test_labels_may_be_given_by_number(folder: Path) -> None:
    labels = {"2": "owl", "0": "cat", "1": "dog"}
    (folder / "config.json").write_text(json.dumps(edited(label_names=labels)))
    assert load_model(NAME).classes == ("cat", "dog", "owl")


def test_a_size_that_the_network_does_not_take_is_said(shelf: Callable[[str], Path]) -> None:
    folder = shelf("someone/pets")
    net = timm.create_model("test_vit", num_classes=3)
    save_file(net.state_dict(), folder / "model.safetensors")
    fixed = {"num_classes": 3, "img_size": 160, "dynamic_img_size": False}
    config = edited(architecture="test_vit", model_args=fixed)
    refused(folder, config, rf"{NAME}.*does not take images of 3 x 64 x 64")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
PLACES = [
    *((key,) for key in HUB_CONFIG),
    *(("pretrained_cfg", key) for key in HUB_CONFIG["pretrained_cfg"]),  # type: ignore[attr-defined]
    *(("pretrained_cfg", key) for key in ("crop_mode", "label_offset", "custom_load", "source")),
    *(
        ("model_args", key)
        for key in ("layers", "channels", "in_chans", "global_pool", "act_layer")
    ),
    ("label_descriptions",),
]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_config_is_a_model_or_one_line(folder: Path, edits: list[Any]) -> None:
    config: Any = copy.deepcopy(HUB_CONFIG)
    for (*above, last), value in edits:
        inner = config
        for key in above:
            inner = inner[key] if isinstance(inner.get(key), dict) else {}
        inner[last] = value
    (folder / "config.json").write_text(json.dumps(config))
    said = ""
    try:
        check(load_model(NAME))
    except PinprickError as error:
        said = str(error)
    assert "\n" not in said
