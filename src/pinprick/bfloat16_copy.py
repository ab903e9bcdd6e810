"""A copy of a network that computes in bfloat16, for the passes of a search.

It is a fraction of the work on a GPU: convolutions run in bfloat16 with channels last, and batch
normalisations become part of the convolutions before them. The last linear layer stays in float32,
because logits in bfloat16 have three digits. The network itself is not changed.
"""

import copy

import torch
from torch import Tensor, nn

from pinprick.backward import alike
from pinprick.model import Classifier
from pinprick.types import Images

CONVERTED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)  # autocast runs these in bfloat16


def bfloat16_copy(model: Classifier, images: Images) -> Classifier:
    """The same model in bfloat16, in evaluation mode; logits are in float32.

    Args:
        model: A network on a device.
        images: A few images to compare the copy with the network on.
    """
    assert isinstance(model.net, nn.Module)
    net = _without_batch_norms(model, images)
    net.requires_grad_(False)
    layers = [module for module in net.modules() if isinstance(module, CONVERTED)]
    last = next((one for one in reversed(layers) if isinstance(one, nn.Linear)), None)
    for layer in layers:
        if layer is last:
            layer.forward = _InFloat32(layer)  # type: ignore[assignment]
        else:
            layer.to(torch.bfloat16)
    net.to(memory_format=torch.channels_last)
    return Classifier(_Bfloat16(net), mean=model.mean, std=model.std, name=model.name)


def _without_batch_norms(model: Classifier, images: Images) -> nn.Module:
    """A copy of the network, with batch norms in the convolutions before them where that works."""
    assert isinstance(model.net, nn.Module)
    whole = copy.deepcopy(model.net).eval()
    try:
        from torch.fx.experimental.optimization import fuse

        fused: nn.Module = fuse(whole)
        inputs = model.normalise(images)
        with torch.no_grad():
            same = alike(fused(inputs), whole(inputs))
    except Exception:  # of any kind: a network that torch.fx cannot read
        return whole
    return fused if same else whole


class _InFloat32:
    """The forward pass of a linear layer, in float32 whatever surrounds it."""

    def __init__(self, layer: nn.Linear) -> None:
        self._layer = layer

    def __call__(self, values: Tensor) -> Tensor:
        layer = self._layer
        with torch.autocast(values.device.type, enabled=False):
            return nn.functional.linear(values.float(), layer.weight, layer.bias)


class _Bfloat16(nn.Module):
    """A network under autocast; casts are not cached: a graph may not use tensors from outside."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, torch.bfloat16, cache_enabled=False):
            logits: Tensor = self.net(images)
        return logits.float()
