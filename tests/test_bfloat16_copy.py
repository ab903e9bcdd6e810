"""A network's copy in bfloat16: near to it, and the network unchanged."""

import copy

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier
from pinprick.bfloat16_copy import bfloat16_copy


class _Branches(nn.Module):
    """A network whose path depends on its input, which torch.fx cannot read."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images if images.sum() > 0 else -images)
        return logits


def with_batch_norm() -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)
    )
    net(torch.rand(5, 3, 6, 6))
    return net.eval()


@pytest.mark.parametrize("branches", [False, True])
def test_the_copy_is_near_and_the_network_unchanged(branches: bool) -> None:
    net = _Branches(with_batch_norm()) if branches else with_batch_norm()
    before, images = copy.deepcopy(net.state_dict()), torch.rand(4, 3, 6, 6)
    model = Classifier(net, mean=(0.5,) * 3, std=(0.2,) * 3)
    copied = bfloat16_copy(model, images)
    with torch.no_grad():
        logits, wanted = copied(images), model(images)
    assert logits.dtype == torch.float32
    assert 0 < (logits - wanted).abs().max() < 0.02 * wanted.abs().max()
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name]), name
    modules = list(copied.net.modules())  # type: ignore[attr-defined]
    assert any(isinstance(module, nn.BatchNorm2d) for module in modules) == branches
    convolution = next(module for module in modules if isinstance(module, nn.Conv2d))
    assert convolution.weight.dtype == torch.bfloat16


def test_gradients_flow_through_the_copy() -> None:
    model = Classifier(with_batch_norm())
    images = torch.rand(4, 3, 6, 6)
    slopes = []
    for one in (model, bfloat16_copy(model, images)):
        inputs = images.clone().requires_grad_()
        slopes.append(torch.autograd.grad(one(inputs).square().sum(), inputs)[0].flatten(1))
    assert torch.cosine_similarity(slopes[0], slopes[1]).min() > 0.99
