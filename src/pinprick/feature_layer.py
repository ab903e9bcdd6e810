"""Find the layer of a network to compute a map from, and read its output as planes.

One image goes through the network, and the output of every layer is recorded. Candidates are maps
of the image, at least 6 by 6, on which the logits depend. The last candidate is chosen. In ResNets
that is the last stage (torchvision's ``layer4``), the usual choice. In VGGs it is the last pooling
(the end of ``features``), as in the figures of Grad-CAM. Networks for small images end with maps of
4 by 4 or less, which are too coarse for single pixels, so an earlier layer is found. A vision
transformer that classifies by the class token ignores the patches after its last attention; there
it is the norm before that.

Three layouts of planes are known: channels first, as in convolutions; channels last, as in some
window transformers; and tokens, one per patch, row by row, after the class token and its like.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput, UnknownName
from pinprick.model import Classifier
from pinprick.types import Images

FINE_ENOUGH = 6  # rows and columns
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)  # compute nothing themselves
_MOST_EXTRA_TOKENS = 8  # tokens without a patch: class, distillation, registers
_NEVER_CHOSEN = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d, nn.Dropout, nn.Dropout2d, nn.Softmax)


@torch.inference_mode(False)  # gradients are needed, also when the caller is in inference mode
def find_feature_layer(
    model: Classifier, net: nn.Module, images: Images, at_least: int = FINE_ENOUGH
) -> str:
    """The name of the last layer that gives a map of the image with enough rows and columns.

    Args:
        model: The model.
        net: Its network.
        images: Images of the size in question; the first one goes through the network.
        at_least: Rows and columns that the map should have. If no layer has as many, the last of
            the finest layers is chosen.
    """
    image = images[:1].to(model.device or images.device)
    found = list(_candidates(model, net, image))
    if not found:
        raise BadInput(
            f"no layer of {model.name} gives a map of the image; pass layer=..., the name "
            "of one whose output is (batch, channels, height, width), or (batch, tokens, channels) "
            "with one token per patch"
        )
    found = [one for one in found if one.tokens == found[-1].tokens]
    side = min(at_least, max(one.side for one in found))
    fine = [one for one in found if one.side >= side]
    names = {one.name for one in fine}
    split = {name: _blocks_split(name, names, net) for name in names}
    fine = [one for one in fine if one.used] or fine
    fewest = min(split[one.name] for one in fine)
    return [one.name for one in fine if split[one.name] == fewest][-1]


def _blocks_split(name: str, fine: set[str], net: nn.Module) -> int:
    """How many blocks around a layer end with another one: it is on only one of their branches."""
    above = name.split(".")[:-1]
    around = [".".join(above[:depth]) for depth in range(1, len(above) + 1)]
    return sum(
        outer not in fine and not isinstance(net.get_submodule(outer), _CONTAINERS)
        for outer in around
    )


@dataclass(frozen=True)
class _Candidate:
    """A layer whose output is a map of the image."""

    name: str
    side: int  # rows or columns, whichever are fewer
    tokens: bool
    used: bool  # whether the logits depend on it


def _candidates(model: Classifier, net: nn.Module, images: Images) -> Iterator[_Candidate]:
    """The layers that give maps, in the order of their last calls."""
    outputs: dict[str, Tensor] = {}
    with model.frozen(), torch.enable_grad(), ExitStack() as hooks:
        for name, module in net.named_modules():
            if name and not isinstance(module, _NEVER_CHOSEN):
                hooks.callback(
                    module.register_forward_hook(_recorder(name, outputs, images)).remove
                )
        logits = model(images.detach().clone().requires_grad_())
        tracked = [output for output in outputs.values() if output.requires_grad]
        gradients: tuple[Tensor | None, ...] = (None,) * len(tracked)
        if tracked and logits.requires_grad:
            top = logits.amax(dim=1).sum()
            gradients = torch.autograd.grad(top, tracked, allow_unused=True)
    used = {
        id(output)
        for output, gradient in zip(tracked, gradients, strict=True)
        if gradient is not None and _planes(gradient, images).any()
    }
    for name, output in outputs.items():
        side = min(_planes(output, images).shape[2:])
        yield _Candidate(name, side, output.ndim == 3, id(output) in used)


def _recorder(name: str, outputs: dict[str, Tensor], images: Images) -> Any:
    def record(module: nn.Module, _given: Any, output: Any) -> None:
        first = first_tensor(output)
        if first is None or planes(first, images) is None:
            return
        inside = not any(module.children()) and "norm" not in type(module).__name__.lower()
        if first.ndim == 3 and inside:  # inside attention: queries, keys and values
            return
        outputs.pop(name, None)  # the last call counts, also for the order
        outputs[name] = first

    return record


def _planes(output: Tensor, images: Images) -> Tensor:
    read = planes(output, images)
    assert read is not None
    return read


@contextmanager
def layer_outputs(model: Any, layer: str, *, cut: bool = False) -> Iterator[list[Tensor]]:
    """Record the output of a layer, (batch, planes, rows, columns), at each call in the block.

    Args:
        model: A ``Classifier`` of a network.
        layer: Name of the layer in its network, or in the network that a wrapper holds.
        cut: Whether gradients end at the output, which then is a leaf.
    """
    outputs: list[Tensor] = []

    def record(_module: nn.Module, _given: Any, output: Any) -> Tensor:
        first = output if isinstance(output, Tensor) else None
        if first is None or first.ndim != 4:
            raise BadInput(f"the layer {layer} of {model.name} gives no feature map")
        outputs.append(first.detach().requires_grad_() if cut else first)
        return outputs[-1].clone()  # so that no later layer changes it in place

    hook = _find_module(model, layer).register_forward_hook(record)
    try:
        yield outputs
    finally:
        hook.remove()


def _find_module(model: Any, layer: str) -> nn.Module:
    named: dict[str, nn.Module] = dict(model.net.named_modules(remove_duplicate=False))
    ends = [name for name in named if f".{name}".endswith(f".{layer}")]
    if not layer or not ends:
        raise UnknownName(f"layer of {model.name}", layer, named)
    return named[min(ends, key=len)]


def first_tensor(output: Any) -> Tensor | None:
    """A layer's output if it is one tensor of floats, alone or first in a tuple; else None."""
    first, *rest = output if type(output) is tuple and output else (output,)
    single = not any(isinstance(other, Tensor) for other in rest)
    return first if single and isinstance(first, Tensor) and first.is_floating_point() else None


def planes(output: Tensor, images: Images) -> Tensor | None:
    """The ``output`` as (batch, channels, rows, columns); None if it is no map of the images."""
    if len(output) != len(images) or not output.is_floating_point():
        return None
    if output.ndim == 4:
        first, last = output, output.permute(0, 3, 1, 2)
        closest = min((first, last), key=lambda read: _distortion(read, images))
        within = all(a <= b for a, b in zip(closest.shape[2:], images.shape[2:], strict=True))
        return closest if within and closest[0, 0].numel() > 1 else None
    return _from_tokens(output, images) if output.ndim == 3 else None


def _distortion(read: Tensor, images: Images) -> float:
    """How far the aspect ratio of a map is from that of the images."""
    (rows, columns), (height, width) = read.shape[2:], images.shape[2:]
    return abs(math.log(rows * width) - math.log(columns * height))


def _from_tokens(output: Tensor, images: Images) -> Tensor | None:
    """The patch tokens as planes; the number of extra tokens is the one that fits best."""
    height, width = images.shape[2:]
    grids = []
    for extra in range(min(_MOST_EXTRA_TOKENS, output.shape[1] - 2) + 1):
        patches = output.shape[1] - extra
        rows = max(1, round(math.sqrt(patches * height / width)))
        columns = patches // rows
        off = abs(rows * width - columns * height)
        if rows * columns == patches and off < max(height, width) and rows <= height:
            grids.append((off, extra, rows, columns))
    if not grids:
        return None
    _, extra, rows, columns = min(grids)
    return output[:, extra:].transpose(1, 2).reshape(len(output), -1, rows, columns)
