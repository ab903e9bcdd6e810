"""Weights in 8 bits: the network is what is stored, to the last bit, however often it is saved."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor, nn

from pinprick import BadInput, UnknownName, load_model
from pinprick.zoo.card import ModelCard
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model
from pinprick.zoo.weights import as_store, from_stored, to_stored

DIGITS = ModelCard(
    net="mnist_cnn", classes=tuple("0123456789"), mean=None, std=None, size=(28, 28), channels=1
)


def rounded(weight: Tensor) -> Tensor:
    return from_stored(to_stored({"w": weight}, "int8"), "here")["w"]


def test_weights_are_bytes_with_one_scale_per_output_channel_and_the_rest_is_float32() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 2))
    stored = to_stored(net.state_dict(), "int8")
    for name, count in (("0.weight", 8), ("3.weight", 2)):
        assert stored[name].dtype == torch.int8
        assert stored[name].abs().flatten(1).amax(dim=1).tolist() == [127] * count
        assert stored[f"{name}.scale"].shape == (count,)
    others = {
        t.dtype for name, t in stored.items() if "0.weight" not in name and "3.weight" not in name
    }
    assert others == {torch.float32, torch.int64}
    assert from_stored(stored, "here").keys() == net.state_dict().keys()


@given(st.integers(0, 2**32 - 1), st.floats(-25, 25))
def test_rounding_is_to_half_a_step_and_rounding_again_changes_nothing(
    seed: int, magnitude: float
) -> None:
    draw = torch.Generator().manual_seed(seed)
    weight = torch.randn(5, 3, 2, 2, generator=draw) * 10**magnitude
    once = rounded(weight)
    step = weight.flatten(1).abs().amax(dim=1) / 127 * (1 + 2**-10)
    assert ((once - weight).abs().flatten(1) <= 0.5001 * step.view(-1, 1)).all()
    assert torch.equal(rounded(once), once)


def test_a_channel_of_zeros_stays_zero() -> None:
    weight = torch.tensor([[0.0, 0.0], [1e-40, -1e-38], [1.0, -2.0]])
    assert rounded(weight)[:2].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert rounded(weight)[2, 1] == pytest.approx(-2, rel=1e-3)


def test_a_saved_network_loads_as_what_is_stored_and_saves_to_the_same(tmp_path: Path) -> None:
    save_model(build_net("mnist_cnn"), DIGITS, tmp_path / "first", store="int8")
    net = load_model(f"file:{tmp_path / 'first'}").net
    assert isinstance(net, nn.Module)
    stored = from_stored(load_file(tmp_path / "first" / "model.safetensors"), "here")
    assert all(torch.equal(tensor, stored[name]) for name, tensor in net.state_dict().items())
    save_model(net, DIGITS, tmp_path / "second", store="int8")
    first, second = (tmp_path / name / "model.safetensors" for name in ("first", "second"))
    again = load_file(second)
    assert all(torch.equal(tensor, again[name]) for name, tensor in load_file(first).items())
    weights = sum(tensor.numel() for tensor in net.state_dict().values())
    assert first.stat().st_size < 1.3 * weights


def test_a_weight_and_its_scale_may_lie_in_two_shards(tmp_path: Path) -> None:
    net = build_net("mnist_cnn")
    save_model(net, DIGITS, tmp_path / "one", store="int8")
    save_model(net, DIGITS, tmp_path / "many", store="int8", shard_mb=1e-4)
    nets = [load_model(f"file:{tmp_path / name}").net for name in ("one", "many")]
    states = [net.state_dict() for net in nets if isinstance(net, nn.Module)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_what_cannot_be_stored_or_read_is_one_line() -> None:
    with pytest.raises(BadInput, match="w has values that are NaN or infinite"):
        rounded(torch.tensor([[1.0, torch.inf]]))
    with pytest.raises(UnknownName, match="no way to store weights is called 'int4'"):
        as_store("int4")
    stored = to_stored({"w": torch.ones(2, 2)}, "int8")
    with pytest.raises(BadInput, match="one scale per output channel of w: expected 2 numbers"):
        from_stored({**stored, "w.scale": torch.ones(3)}, "here")
