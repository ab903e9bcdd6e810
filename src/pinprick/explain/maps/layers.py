"""Which layer of a network to take a map from.

One image is sent through the network and every layer's output is looked at. Of those that are maps
of the image, at least 6 by 6, and on which the answer depends, the last is taken. In ResNets that
is the last stage (torchvision's ``layer4``), the usual choice, and in VGGs the last pooling (the
end of ``features``), that of the paper's figures. Networks for small pictures end with maps of 4 by
4 or less, which say nothing about single pixels, so an earlier layer is found there. A vision
transformer that reads its answer off the class token has no use for the patches after its last
attention; there it is the norm before that.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pinprick.errors import BadInput, UnknownName
from pinprick.explain.maps.question import Question, ask, choose_classes, pick
from pinprick.model import Classifier, Model
from pinprick.types import Images, Labels

FINE_ENOUGH = 6  # rows and columns
_CHAINS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)  # hold layers, and do nothing of their own
_KNOWN: WeakKeyDictionary[nn.Module, dict[tuple[tuple[int, ...], int], str]] = WeakKeyDictionary()
_IDLE = (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d, nn.Dropout, nn.Dropout2d, nn.Softmax)


@torch.inference_mode(False)  # gradients are needed, in whatever mode the caller is
def find_layer(model: Classifier | Model, images: Tensor, *, at_least: int = FINE_ENOUGH) -> str:
    """The name of the last layer that gives a map of the image, fine enough to be of use.

    Args:
        model: A ``Classifier`` of a network, or a network.
        images: Some images of the size that is to be explained; the first is looked at.
        at_least: Rows and columns that the map should have; where no layer has so many, it is
            the last of the finest.
    """
    return _find(ask("a layer", model, images, None, 1), at_least)


def pick_layer(
    question: Question, layer: str | nn.Module | None, *, at_least: int
) -> tuple[str, nn.Module]:
    """The layer that was asked for, with its name; the one found where none was."""
    wanted = _known(question, at_least) if layer is None else layer
    named = dict(question.network.named_modules(remove_duplicate=False))
    del named[""]
    if isinstance(wanted, str):
        if wanted not in named:
            raise UnknownName("layer", wanted, named)
        return wanted, named[wanted]
    for name, module in named.items():
        if module is wanted:
            return name, module
    raise BadInput(
        f"layer must be a layer of {question.model.name}, or the name of one, "
        f"got a {type(wanted).__name__} that is not in it"
    )


def _known(question: Question, at_least: int) -> str:
    """The layer that is found, looked for once for a network and a size of image."""
    known = _KNOWN.setdefault(question.network, {})
    place = (tuple(question.images.shape[1:]), at_least)
    if place not in known:
        known[place] = _find(question, at_least)
    return known[place]


def _find(question: Question, at_least: int) -> str:
    image = question.images[:1].to(question.device)
    found = list(_maps(question.model, question.network, image))
    if not found:
        raise BadInput(
            f"no layer of {question.model.name} was seen to give a map of the image; pass "
            "layer=..., one whose output is (batch, channels, height, width), or (batch, tokens, "
            "channels) with a token for each patch"
        )
    found = [one for one in found if one.tokens == found[-1].tokens]
    side = min(at_least, max(one.side for one in found))
    fine = [one for one in found if one.side >= side]
    names = {one.name for one in fine}
    cut = {name: _blocks_cut(name, names, question.network) for name in names}
    fine = [one for one in fine if one.alive] or fine
    fewest = min(cut[one.name] for one in fine)
    return [one.name for one in fine if cut[one.name] == fewest][-1]


def _blocks_cut(name: str, fine: set[str], net: nn.Module) -> int:
    """How many blocks around a layer end with something else: it is on one branch of them only."""
    above = name.split(".")[:-1]
    around = [".".join(above[:depth]) for depth in range(1, len(above) + 1)]
    return sum(
        outer not in fine and not isinstance(net.get_submodule(outer), _CHAINS) for outer in around
    )


@dataclass(frozen=True)
class _Map:
    """A layer whose output is a map of the image."""

    name: str
    side: int  # the shorter one
    tokens: bool
    alive: bool  # whether the answer depends on it


def _maps(model: Classifier, net: nn.Module, images: Images) -> Iterator[_Map]:
    """The layers that give maps, in the order in which they are done."""
    outputs: dict[str, Tensor] = {}  # a layer that is called again takes its later place
    with model.frozen(), torch.enable_grad(), ExitStack() as hooks:
        for name, module in net.named_modules():
            if name and not isinstance(module, _IDLE):
                hooks.callback(module.register_forward_hook(_noting(name, outputs, images)).remove)
        logits = model(images.detach().clone().requires_grad_())
        followed = [output for output in outputs.values() if output.requires_grad]
        slopes: tuple[Tensor | None, ...] = ()
        if followed and logits.requires_grad:
            top = logits.amax(dim=1).sum()
            slopes = torch.autograd.grad(top, followed, allow_unused=True)
    alive = {
        id(output)
        for output, slope in zip(followed, slopes, strict=bool(slopes))
        if slope is not None and _on_grid(slope, images).any()
    }
    for name, output in outputs.items():
        side = min(_on_grid(output, images).shape[2:])
        yield _Map(name, side, output.ndim == 3, id(output) in alive)


def _noting(name: str, outputs: dict[str, Tensor], images: Images) -> Any:
    def note(module: nn.Module, _given: Any, output: Any) -> None:
        first = first_tensor(output)
        if first is None or planes(first, images) is None:
            return
        inside = not any(module.children()) and "norm" not in type(module).__name__.lower()
        if first.ndim == 3 and inside:  # queries, keys and values are no place to look at
            return
        outputs.pop(name, None)
        outputs[name] = first

    return note


def _on_grid(output: Tensor, images: Images) -> Tensor:
    read = planes(output, images)
    assert read is not None
    return read


# A layer watched during one pass: what it gave, and how much a score rises with each value of it.
#
# The network goes on with a copy of the layer's output, from which the gradient is taken. So
# nothing that comes before the layer is kept in memory or passed backwards through, and a layer
# that follows and works in place does not spoil what was seen. Where a layer is called several
# times in a pass, the last call counts.


Planes = Float[Tensor, "batch planes rows columns"]


def watch(
    model: Classifier, layer: nn.Module, name: str, images: Images, classes: Labels | None
) -> tuple[Planes, Planes, Labels]:
    """What the layer gave, the gradient of each image's class score there, and the classes."""
    with model.frozen(), torch.enable_grad(), _kept(layer) as kept:
        logits = model(images)
        classes = choose_classes(logits, images, classes)
        if not kept:
            raise BadInput(
                f"the layer {name!r} was not called when the model was asked; pass another, or "
                "the network as it was before it was compiled"
            )
        if planes(kept[0], images) is None:
            raise BadInput(
                f"the layer {name!r} gives the shape {tuple(kept[0].shape)}, which is no map of "
                f"the {tuple(images.shape)} images; pass the name of one that gives (batch, "
                "channels, height, width), or a token for each patch"
            )
        if not logits.requires_grad:
            raise BadInput(
                f"what the model says does not depend on the layer {name!r}, or it passes no "
                "gradient back; pass the name of another layer"
            )
        (slope,) = torch.autograd.grad(pick(logits, classes), kept[0], materialize_grads=True)
    seen, slopes = planes(kept[0].detach(), images), planes(slope, images)
    assert seen is not None
    assert slopes is not None
    return seen, slopes, classes


@contextmanager
def _kept(layer: nn.Module) -> Iterator[list[Tensor]]:
    """The output of the layer's last call, alone in a list, once there was one."""
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _given: Any, output: Any) -> Any:
        first = first_tensor(output)
        if first is None:
            return None
        own = first.detach().clone().requires_grad_()
        kept[:] = [own]
        return own.clone() if first is output else (own.clone(), *output[1:])

    handle = layer.register_forward_hook(keep)
    try:
        yield kept
    finally:
        handle.remove()


def first_tensor(output: Any) -> Tensor | None:
    """What a layer gave, alone or before things that are no tensors; None if it is no numbers."""
    first, *rest = output if type(output) is tuple and output else (output,)
    alone = not any(isinstance(other, Tensor) for other in rest)
    return first if alone and isinstance(first, Tensor) and first.is_floating_point() else None


# The output of a layer as planes over the image, however the network lays it out.
#
# Three layouts are known: channels first, as convolutions have it; channels last, as some
# transformers with windows; and tokens, one a patch, row by row, with the class token and its like
# standing before them.


_MOST_EXTRA = 8  # tokens that belong to no patch: of the class, of a teacher, registers


def planes(output: Tensor, images: Images) -> Tensor | None:
    """``output`` as (batch, channels, rows, columns); None if it is no map of the images."""
    if len(output) != len(images) or not output.is_floating_point():
        return None
    if output.ndim == 4:
        first, last = output, output.permute(0, 3, 1, 2)
        closest = min((first, last), key=lambda read: _apart(read, images))
        within = all(a <= b for a, b in zip(closest.shape[2:], images.shape[2:], strict=True))
        return closest if within and closest[0, 0].numel() > 1 else None
    return _from_tokens(output, images) if output.ndim == 3 else None


def _apart(read: Tensor, images: Images) -> float:
    """How far the sides of a map are from being in proportion to those of the images."""
    (rows, columns), (height, width) = read.shape[2:], images.shape[2:]
    return abs(math.log(rows * width) - math.log(columns * height))


def _from_tokens(output: Tensor, images: Images) -> Tensor | None:
    """The tokens of the patches; how many stand before them shows in the sides of what is left."""
    height, width = images.shape[2:]
    grids = []
    for extra in range(min(_MOST_EXTRA, output.shape[1] - 2) + 1):
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
