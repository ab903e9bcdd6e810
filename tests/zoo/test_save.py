"""Weights are written whole or in shards, never half, and hold what the network held."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pinprick import BadInput, PinprickError, load_model
from pinprick.zoo import saved_folder
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.saved_folder import save_model

CARD = ModelCard(net="resnet20", classes=("a", "b"), mean=None, std=None, size=(4, 4))


@pytest.fixture
def net() -> nn.Module:
    """Nine tensors: weights of several sizes, buffers, and a counter that is a whole number."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.Flatten(),
        nn.Linear(128, 2),
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> bool:
    return found.keys() == wanted.keys() and all(
        torch.equal(found[name], wanted[name]) for name in wanted
    )


def test_a_small_network_is_one_file_with_its_card(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path / "new" / "model")
    folder = tmp_path / "new" / "model"
    assert names(folder) == ["card.json", "model.safetensors"]
    assert same(load_file(folder / "model.safetensors"), net.state_dict())
    assert read_card((folder / "card.json").read_text(), "card.json") == CARD
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        assert read_card(file.metadata()["pinprick"], "metadata") == CARD


def test_others_may_read_what_the_user_lets_them_read(net: nn.Module, tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    save_model(net, CARD, tmp_path / "made")
    modes = {path.stat().st_mode for path in (tmp_path / "made").iterdir()}
    assert modes == {(tmp_path / "plain").stat().st_mode}


def test_a_large_one_is_cut_into_shards_with_an_index(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path, shard_mb=0.0009)
    shards = [f"model-{number:05}-of-00004.safetensors" for number in (1, 2, 3, 4)]
    assert names(tmp_path) == ["card.json", *shards, "model.safetensors.index.json"]

    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    found: dict[str, Tensor] = {}
    for shard in shards:
        held = load_file(tmp_path / shard)
        size = sum(tensor.nbytes for tensor in held.values())
        assert size <= 900 or len(held) == 1  # a tensor is never cut
        assert {name for name, file in index["weight_map"].items() if file == shard} == set(held)
        content = (tmp_path / shard).read_bytes()
        assert index["metadata"]["sha256"][shard] == hashlib.sha256(content).hexdigest()
        found |= held
    assert same(found, net.state_dict())
    total = sum(tensor.nbytes for tensor in net.state_dict().values())
    assert index["metadata"]["total_size"] == total


def test_half_keeps_16_bits_of_weights_and_all_of_counters(net: nn.Module, tmp_path: Path) -> None:
    save_model(net, CARD, tmp_path, half=True)
    found = load_file(tmp_path / "model.safetensors")
    wanted = {
        name: t.half() if t.is_floating_point() else t for name, t in net.state_dict().items()
    }
    assert same(found, wanted)
    assert {tensor.dtype for tensor in found.values()} == {torch.float16, torch.int64}


def test_what_does_not_fit_16_bits_is_said_and_nothing_written(tmp_path: Path) -> None:
    net = nn.Linear(1, 1)
    net.weight.data.fill_(1e6)
    with pytest.raises(BadInput, match="weight has values too large for 16 bits"):
        save_model(net, CARD, tmp_path / "model", half=True)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("first", "second"), [(0.0009, 15.0), (15.0, 0.0009), (0.0009, 0.0003)])
def test_a_second_saving_leaves_nothing_of_the_first(
    net: nn.Module, tmp_path: Path, first: float, second: float
) -> None:
    (tmp_path / "model-notes.txt").write_text("mine")
    save_model(net, CARD, tmp_path, shard_mb=first)
    save_model(net, CARD, tmp_path, shard_mb=second)
    save_model(net, CARD, tmp_path / "alone", shard_mb=second)
    assert set(names(tmp_path)) - {"alone", "model-notes.txt"} == set(names(tmp_path / "alone"))
    assert (tmp_path / "model-notes.txt").exists()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def in_one_file(folder: Path) -> None:
    save_file({"weight": torch.zeros(2)}, folder / "model.safetensors", {"format": "pt"})


def in_shards(folder: Path) -> None:
    for number in (1, 2):
        shard = folder / f"model-0000{number}-of-00002.safetensors"
        save_file({f"weight{number}": torch.zeros(2)}, shard, {"format": "pt"})
    index = {"metadata": {"total_size": 16}, "weight_map": {"weight1": "..."}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def with_a_card_by_hand(folder: Path) -> None:
    torch.save({"weight": torch.zeros(2)}, folder / "best.pt")
    (folder / "card.json").write_text('{"net": "resnet20", "classes": 2, "size": [32, 32]}')


def half_a_file(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"half")


@pytest.mark.parametrize("lay", [in_one_file, in_shards, with_a_card_by_hand, half_a_file])
def test_weights_from_elsewhere_are_not_touched(
    lay: Callable[[Path], None], net: nn.Module, tmp_path: Path
) -> None:
    lay(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(BadInput, match=r"holds files of another model \(.*choose another folder"):
        save_model(net, CARD, tmp_path)
    assert contents(tmp_path) == before


def test_weights_of_an_older_version_and_lost_ones_are_replaced(
    net: nn.Module, tmp_path: Path
) -> None:
    save_model(net, CARD, tmp_path, shard_mb=0.0009)
    (tmp_path / "card.json").write_text(CARD.as_json())  # without a digest
    save_model(net, CARD, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    save_model(net, CARD, tmp_path)
    assert names(tmp_path) == ["card.json", "model.safetensors"]


def test_a_saving_that_fails_leaves_the_old_model(
    net: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(net, CARD, tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    def fill_up(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saved_folder, "save_file", fill_up)
    with pytest.raises(BadInput, match=r"cannot write to .*: No space left"):
        save_model(net, CARD, tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_shared_and_strided_weights_are_written_out(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3)).to(
        memory_format=torch.channels_last
    )
    net[1].weight = net[0].weight
    save_model(net, CARD, tmp_path)
    assert same(load_file(tmp_path / "model.safetensors"), net.state_dict())


@pytest.mark.slow  # compiling is brought in
def test_what_wraps_a_network_leaves_no_trace(net: nn.Module, tmp_path: Path) -> None:
    save_model(torch.compile(nn.DataParallel(net)), CARD, tmp_path)  # type: ignore[arg-type]
    assert same(load_file(tmp_path / "model.safetensors"), net.state_dict())


def test_saving_changes_nothing_about_the_network(net: nn.Module, tmp_path: Path) -> None:
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    save_model(net, CARD, tmp_path, half=True)
    assert same(net.state_dict(), before)
    assert net.training


@pytest.mark.parametrize("shard_mb", [0, -1])
def test_shards_must_hold_something(net: nn.Module, tmp_path: Path, shard_mb: float) -> None:
    with pytest.raises(BadInput, match="shard_mb must be above zero"):
        save_model(net, CARD, tmp_path, shard_mb=shard_mb)


def test_a_network_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no weights"):
        save_model(nn.ReLU(), CARD, tmp_path)


@pytest.mark.parametrize("name", ["mynet:Net", "mynet"])
def test_a_network_that_no_card_can_name_is_refused_before_anything_is_written(
    net: nn.Module, tmp_path: Path, name: str
) -> None:
    line = r"file\.py:function" if ":" in name else "no network is called 'mynet'"
    with pytest.raises(PinprickError, match=line):
        save_model(net, replace(CARD, net=name), tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
    torch.save(net.state_dict(), tmp_path / "net.pt")
    with pytest.raises(BadInput, match=r"holds only weights.*--model file\.py:function"):
        load_model(f"file:{tmp_path / 'net.pt'}")
