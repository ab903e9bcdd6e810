"""Files that are broken, cut short or of another network get one line that says what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from pinprick import BadInput, UnknownName
from pinprick.zoo import load_model
from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model
from zoo.conftest import CARD

INDEX = "model.safetensors.index.json"


def edit_card(folder: Path, **entries: Any) -> None:
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps({**card, **entries}))


def fails(path: Path, message: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=message) as error:
        load_model(f"file:{path}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("left", [0, 1, 7, 100, 30_000])
@pytest.mark.parametrize("name", ["model.safetensors", "model.pt", "old.pt"])
def test_a_file_cut_short_is_said(net: nn.Module, tmp_path: Path, name: str, left: int) -> None:
    save_model(net, CARD, tmp_path)
    torch.save(net.state_dict(), tmp_path / "model.pt")
    torch.save(net.state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:left])
    fails(tmp_path / name, f"{name} is (no safetensors file: it is )?(damaged|a pickle)")


def test_a_byte_that_changed_in_a_shard_is_found(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path, shard_mb=0.05)
    path = tmp_path / "model-00001-of-00003.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    fails(tmp_path, "00001-of-00003.safetensors is not the file that .*index.json lists")


def test_shards_of_two_savings_are_not_mixed(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path / "a", shard_mb=0.05)
    save_model(build_net("mnist_cnn"), CARD, tmp_path / "b", shard_mb=0.05)
    name = "model-00002-of-00003.safetensors"
    (tmp_path / "b" / name).replace(tmp_path / "a" / name)
    fails(tmp_path / "a", "not the file")


def test_a_shard_that_is_not_there_is_named(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path, shard_mb=0.05)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    fails(tmp_path, "lists model-00002-of-00003.safetensors, which is not in its folder")


def test_a_shard_that_lacks_a_tensor_is_named(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "model-1.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}}
    (tmp_path / INDEX).write_text(json.dumps(index))
    fails(tmp_path, "model-1.safetensors lacks b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"weight_map": []}',
        '{"weight_map": {"a": 3}}',
        '{"weight_map": {}}',
        "\xff",
    ],
)
def test_an_index_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX).write_bytes(text.encode("latin1"))
    fails(tmp_path, "index")


def test_weights_without_a_card_say_what_to_write(net: nn.Module, tmp_path: Path) -> None:
    torch.save(net.state_dict(), tmp_path / "model.pt")
    fails(tmp_path, r'put a card\.json beside it, such as \{"net": "torchvision:resnet18"')
    card = {"net": "mnist_cnn", "classes": 10, "size": [28, 28], "channels": 1}
    (tmp_path / "card.json").write_text(json.dumps(card))
    assert load_model(f"file:{tmp_path}").classes == tuple("0123456789")


def test_the_wrong_network_is_said_with_what_does_not_fit(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    edit_card(tmp_path, net="mnist_cnn_large")
    fails(
        tmp_path, "fit mnist_cnn_large with 10 classes: the file lacks 3.weight, 3.bias, 9.weight"
    )
    edit_card(tmp_path, net="resnet20", channels=3, mean=None, std=None)
    fails(tmp_path, r"fit resnet20 .*: the file lacks .* and \d+ more; the network has no 0.bias, ")


def test_the_wrong_number_of_classes_is_said(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path)
    edit_card(tmp_path, classes=7)
    fails(tmp_path, r"with 7 classes: \S+ is 10 x 100 in the file and 7 x 100 in the network")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("lose", "mnist_cnn with 10 classes: the file lacks"),
        ("add", "the network has no extra.weight"),
        ("count", "is stored as torch.int64"),
    ],
)
def test_names_that_do_not_fit_are_said(
    net: nn.Module, tmp_path: Path, change: str, message: str
) -> None:
    save_model(net, CARD, tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    first = next(iter(state))
    if change == "lose":
        del state[first]
    elif change == "add":
        state["extra.weight"] = torch.zeros(1)
    else:
        state[first] = state[first].long()
    save_file(state, tmp_path / "model.safetensors")
    edit_card(tmp_path, sha256={})
    fails(tmp_path, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([torch.zeros(1)], "holds a list, not weights by name"),
        ({}, "holds a dict, not weights by name"),
        ({"a": torch.zeros(1), "epoch": 3}, "holds more than weights by name: epoch"),
        (torch.zeros(3), "holds a Tensor"),
    ],
)
def test_a_checkpoint_without_weights_by_name_is_refused(
    tmp_path: Path, content: Any, message: str
) -> None:
    torch.save(content, tmp_path / "m.pt")
    fails(tmp_path / "m.pt", message)


@pytest.mark.parametrize(
    ("net_name", "message"),
    [
        ("mnist_cn", "did you mean mnist_cnn"),
        ("torchvision:resnet5", "no classifier of torchvision"),
        ("timm:test_resne", "did you mean test_resnet"),
        ("timm:hf-hub:someone/net", "no model of timm is called 'hf-hub:someone/net'"),
        ("keras:vgg", "torchvision:NAME or timm:NAME, got 'keras:vgg'"),
    ],
)
def test_a_card_that_names_no_network_is_refused(
    net: nn.Module, tmp_path: Path, net_name: str, message: str
) -> None:
    if net_name.startswith("timm"):
        pytest.importorskip("timm")
    save_model(net, CARD, tmp_path)
    edit_card(tmp_path, net=net_name)
    fails(tmp_path, message)


def test_a_card_with_the_wrong_channels_is_refused(net: nn.Module, tmp_path: Path) -> None:
    card = ModelCard(net="mnist_cnn", classes=CARD.classes, mean=None, std=None, size=(28, 28))
    save_model(net, card, tmp_path)
    fails(tmp_path, "mnist_cnn has channels=1, but its card says 3")
