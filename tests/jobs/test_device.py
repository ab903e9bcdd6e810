"""Where models are loaded to, and how their weights lie there."""

from pathlib import Path

import pytest
import torch
from torch import nn

from pinprick import Classifier
from pinprick.jobs.device import load_on_device
from pinprick.zoo import load_model, shipped

FUNCTION = """
from torch import nn

def make():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))
    return net.eval()
"""


def in_channels_last(model: Classifier) -> bool:
    """Whether the weights of every convolution are in channels last."""
    assert isinstance(model.net, nn.Module)
    kernels = [one for one in model.net.parameters() if one.dim() == 4]
    assert max(one.shape[1] for one in kernels) > 1  # with one channel both ways are the same
    return all(one.is_contiguous(memory_format=torch.channels_last) for one in kernels)


@pytest.mark.parametrize("name", [one for one in shipped.names() if not shipped.card(one).ablation])
def test_weights_lie_in_channels_last_on_a_cpu_and_the_answers_stay(name: str) -> None:
    loaded, plain = load_on_device(f"pinprick:{name}", "cpu"), load_model(f"pinprick:{name}")
    assert in_channels_last(loaded)
    assert not in_channels_last(plain)
    card = shipped.card(name)
    draws = torch.Generator().manual_seed(0)
    images = torch.rand(4, card.channels, *card.size, generator=draws).requires_grad_()
    found, wanted = loaded(images), plain(images)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    (change,) = torch.autograd.grad(found.square().sum(), images)
    (same,) = torch.autograd.grad(wanted.square().sum(), images)
    torch.testing.assert_close(change, same, rtol=1e-3, atol=1e-4 * float(same.abs().max()))


def test_a_network_of_a_function_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text(FUNCTION)
    monkeypatch.syspath_prepend(tmp_path)
    assert not in_channels_last(load_on_device("of_mine:make", "cpu"))


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace:FutureWarning")
def test_a_program_that_views_its_maps_stays_as_it_is(tmp_path: Path) -> None:
    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            maps: torch.Tensor = self.second(self.first(images))
            return maps.view(-1, 64)

    images = torch.rand(2, 3, 8, 8)
    net = Views().eval()
    with torch.no_grad():
        wanted = net(images)
        torch.jit.trace(net, images).save(tmp_path / "views.ts")
    loaded = load_on_device(f"file:{tmp_path / 'views.ts'}", "cpu", trust=True)
    torch.testing.assert_close(loaded(images), wanted)


def test_a_loaded_model_stays_as_it_is(colours: Classifier) -> None:
    assert load_on_device(colours, "cpu") is colours
