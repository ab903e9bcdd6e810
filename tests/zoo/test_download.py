"""While another package fetches weights: nothing stays random, and no wait is endless."""

import socket
import urllib.request
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from pinprick import BadInput
from pinprick.zoo.safe_loading import fetching


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that takes connections and says nothing."""
    monkeypatch.setattr("pinprick.zoo.safe_loading._TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_a_server_that_says_nothing_is_given_up(silent: str) -> None:
    with (
        pytest.raises(BadInput, match=r"weights of a:b could not be fetched \(timed out\)"),
        fetching("a:b"),
    ):
        urllib.request.urlopen(silent)
    assert socket.getdefaulttimeout() is None


def test_so_it_is_where_the_package_requests_asks(silent: str) -> None:
    requests = pytest.importorskip("requests")
    before = requests.adapters.HTTPAdapter.send
    with pytest.raises(BadInput, match=r"could not be fetched .*[Tt]imed out"), fetching("a:b"):
        requests.get(silent)
    assert requests.adapters.HTTPAdapter.send is before


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2))


@pytest.mark.parametrize("lost", ["0.weight", "1.running_var", "3.bias"])
@pytest.mark.parametrize("strict", [True, False])
def test_weights_that_a_file_lacks_are_not_left_random(lost: str, strict: bool) -> None:
    state = layers().state_dict()
    del state[lost]
    message = f"weights of a:b do not fit the network: .*{lost}"
    with pytest.raises(BadInput, match=message) as error, fetching("a:b"):
        layers().load_state_dict(state, strict=strict)
    assert "\n" not in str(error.value)
    layers().load_state_dict(state, strict=False)  # as before


def test_a_package_may_leave_out_counters_and_pass_over_what_is_too_much() -> None:
    state = {**layers().state_dict(), "extra": torch.zeros(1)}
    del state["1.num_batches_tracked"]
    with fetching("a:b") as filled:
        net = layers()
        result = net.load_state_dict(state, strict=False)
    assert result.unexpected_keys == ["extra"]
    filled.check(net)
    with pytest.raises(BadInput, match=r"the file lacks 0.weight, 0.bias, 1.weight and 3 more"):
        filled.check(layers())


def test_random_numbers_of_the_caller_stay_as_they_are() -> None:
    before = torch.get_rng_state()
    with fetching("a:b"):
        layers()
    assert torch.equal(torch.get_rng_state(), before)
