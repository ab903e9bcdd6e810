"""A checkpoint is never run: a malicious pickle leaves no trace, wherever it is hidden."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torchvision import models

from pinprick import BadInput
from pinprick.zoo import load_model
from pinprick.zoo.safe_loading import weights_only
from zoo.conftest import CARD

Lay = Callable[..., Path]


def test_the_trap_works(lay_trap: Lay, trace: Path, tmp_path: Path) -> None:
    """Read without care it does run, so the other tests can fail."""
    with pytest.raises(TypeError):  # a folder is no tensor; by then it is too late
        raise TypeError(torch.load(lay_trap(tmp_path / "m.pt"), weights_only=False))
    assert trace.exists()


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.bin", "m.ckpt", "m.tar"])
@pytest.mark.parametrize("torch_format", [True, False])
@pytest.mark.parametrize("trust", [False, True])
def test_a_pickle_is_refused_and_not_run(
    lay_trap: Lay, trace: Path, tmp_path: Path, name: str, torch_format: bool, trust: bool
) -> None:
    (tmp_path / "card.json").write_text(CARD.as_json())
    path = lay_trap(tmp_path / name, torch_format=torch_format)
    with pytest.raises(BadInput) as error:
        load_model(f"file:{path}", trust=trust)
    assert not trace.exists()
    assert "\n" not in str(error.value)
    if torch_format:
        assert "mkdir, and reading it could run code; nothing was run" in str(error.value)
        assert "net.state_dict()" in str(error.value)


def test_a_whole_network_is_refused_with_the_way_out(tmp_path: Path) -> None:
    torch.save(models.squeezenet1_1(num_classes=2), tmp_path / "whole.pt")
    with pytest.raises(BadInput, match=r"needs torchvision\.models\.squeezenet\.SqueezeNet"):
        load_model(f"file:{tmp_path / 'whole.pt'}")


@pytest.mark.parametrize("torch_format", [True, False])
def test_a_pickle_that_is_called_safetensors_is_refused(
    lay_trap: Lay, trace: Path, tmp_path: Path, torch_format: bool
) -> None:
    path = lay_trap(tmp_path / "model.safetensors", torch_format=torch_format)
    with pytest.raises(BadInput, match="a pickle under another name"):
        load_model(f"file:{path}")
    assert not trace.exists()


@pytest.mark.parametrize(
    "name", ["../m.safetensors", "/m.safetensors", "..\\m.safetensors", "m.pt"]
)
def test_an_index_cannot_lead_out_of_its_folder(
    lay_trap: Lay, trace: Path, tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "card.json").write_text(CARD.as_json())
    save_file({"weight": torch.zeros(1)}, tmp_path / "m.safetensors")
    lay_trap(folder / "m.pt")
    index = {"weight_map": {"weight": name if name[0] != "/" else str(tmp_path / name[1:])}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(BadInput, match="no safetensors file in its folder"):
        load_model(f"file:{folder}")
    assert not trace.exists()


def test_torchvision_is_not_left_to_unpickle(
    lay_trap: Lay, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own loader would run whatever lies in the cache."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    url = models.SqueezeNet1_1_Weights.DEFAULT.url
    lay_trap(tmp_path / "hub" / "checkpoints" / url.rpartition("/")[2])
    with pytest.raises(BadInput, match="checkpoint of torchvision:squeezenet1_1 is a pickle"):
        load_model("torchvision:squeezenet1_1")
    assert not trace.exists()


def test_whoever_calls_torch_load_reads_weights_only(
    lay_trap: Lay, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lay_trap(tmp_path / "m.pt")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    careless: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((path,), {}),
        ((path,), {"weights_only": False}),
        ((path, "cpu", pickle), {"weights_only": False, "encoding": "latin1"}),
    ]
    before = torch.load
    with weights_only():
        for arguments, options in careless:
            for load in (torch.load, torch.serialization.load):
                with pytest.raises(pickle.UnpicklingError):
                    load(*arguments, **options)
    assert torch.load is before
    assert not trace.exists()


def test_the_guard_is_lifted_after_an_error() -> None:
    before = torch.load
    with pytest.raises(KeyError), weights_only():
        raise KeyError
    assert torch.load is before
