"""A model built from its card and filled with weights, which must fit in every name and shape.

The network is first built on the meta device, where weights take no memory. So a card that does not
fit its weights is refused early, however large the network that it names.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pinprick.errors import BadInput, MissingExtra, UnknownName, first_sentence
from pinprick.model import Access, Classifier
from pinprick.zoo.card import ModelCard
from pinprick.zoo.prepare import cover_and_crop
from pinprick.zoo.safe_loading import name_list
from pinprick.zoo.weights import State, from_stored

_WRAPPERS = ("module.", "_orig_mod.")  # of DataParallel and of torch.compile
_DRAWS = (torch.Tensor.normal_, torch.Tensor.uniform_)
_FEW_ELEMENTS = 3 * 64 * 64  # images this small go through any network at once
_MAX_ELEMENTS = 3 * 1024 * 1024  # of an image on which a network is tried on the CPU

OTHER_NETS = (
    "a network of your own goes in by a function that loads it and returns a Classifier: "
    'load_model("file.py:function"), in the shell --model file.py:function'
)


def load_from_card(card: ModelCard, state: State, *, where: str, name: str) -> Classifier:
    """The model that ``card`` describes, with the weights that were found at ``where``."""
    check_net(card.net)
    state = from_stored(state, where)
    what = f"{card.net} with {len(card.classes)} classes"
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, only to be replaced
        on_meta = build_on_meta(lambda: build(card))
        if on_meta is not None:
            _matching_weights(on_meta, state, what, where)
        net = build(card).eval()
    net.load_state_dict(_matching_weights(net, state, what, where), strict=False)
    check_forward(net, on_meta, card)
    return wrap_net(net, card, name)


def wrap_net(
    net: Callable[[Tensor], Tensor], card: ModelCard, name: str, *, access: Access | None = None
) -> Classifier:
    """The network with the preprocessing and the classes of its card.

    A network that votes gives gradients, but no feature maps: its layers see one draw at a time.
    """
    if access is None and card.ablation is not None:
        access = "gradients"
    return Classifier(
        net,
        mean=card.mean,
        std=card.std,
        classes=card.classes,
        size=card.size,
        prepare=cover_and_crop(card.size, card.resize, card.interpolation, card.channels),
        access=access,
        name=name,
    )


def check_net(net: str) -> None:
    """Raise unless ``net`` of a card names an architecture that can be built here."""
    source, colon, name = net.partition(":")
    if not colon:
        from pinprick.zoo.nets import NETS

        if net not in NETS:
            raise UnknownName("network", net, NETS)
    elif source == "torchvision":
        from pinprick.zoo.torchvision import names

        if name not in names():
            raise UnknownName("classifier of torchvision", name, names())
    elif source == "timm":
        try:
            import timm
        except ModuleNotFoundError:
            raise MissingExtra(f"the network {net}", "timm", "timm") from None
        if not timm.is_model(name):
            raise UnknownName("model of timm", name, timm.list_models())
    else:
        raise BadInput(
            f"a card names a network of pinprick, torchvision:NAME or timm:NAME, got {net!r}; "
            f"{OTHER_NETS}"
        )


def build(card: ModelCard) -> nn.Module:
    """The architecture that the card names, with fresh weights; one that votes if it says so."""
    net = _build_plain(card)
    if card.ablation is None:
        return net
    from pinprick.zoo.voting import VotingNetwork, with_channel_pairs

    return VotingNetwork(
        with_channel_pairs(net, card.net), (card.channels, *card.size), card.ablation
    )


def _build_plain(card: ModelCard) -> nn.Module:
    check_net(card.net)
    source, colon, name = card.net.partition(":")
    count = len(card.classes)
    if not colon:
        from pinprick.zoo.nets import NETS, build_net

        own = NETS[card.net].channels
        if own != card.channels:
            raise BadInput(f"{card.net} has channels={own}, but its card says {card.channels}")
        return build_net(card.net, classes=count)
    if source == "torchvision":
        from torchvision import models

        options = {"weights": None, "num_classes": count}
        if name in ("googlenet", "inception_v3"):  # slow, with a warning
            options["init_weights"] = False
        return _module(models.get_model(name, **options))
    import timm

    return _module(timm.create_model(name, num_classes=count, in_chans=card.channels))


def _matching_weights(net: nn.Module, state: State, what: str, where: str) -> State:
    """The weights under the network's own names; ``BadInput`` unless all names and shapes fit."""
    wanted = net.state_dict()
    if not state.keys() <= wanted.keys():
        state = _unwrapped(state)
    missing = [name for name in wanted if name not in state and not _is_counter(name)]
    unexpected = [name for name in state if name not in wanted]
    faults = [f"the file lacks {name_list(missing)}"] if missing else []
    faults += [f"the network has no {name_list(unexpected)}"] if unexpected else []
    if faults:
        raise BadInput(f"{where} does not fit {what}: {'; '.join(faults)}")
    for name, tensor in ((name, state[name]) for name in wanted if name in state):
        if tensor.shape != wanted[name].shape:
            raise BadInput(
                f"{where} does not fit {what}: "
                f"{name} is {_shape(tensor)} in the file and {_shape(wanted[name])} in the network"
            )
        if tensor.is_floating_point() != wanted[name].is_floating_point():
            raise BadInput(f"{where} does not fit {what}: {name} is stored as {tensor.dtype}")
    return state


def _unwrapped(state: State) -> State:
    """The weights without the prefixes that wrappers around a network leave on every name."""
    while wrapper := next(
        (one for one in _WRAPPERS if all(n.startswith(one) for n in state)), None
    ):
        state = {name.removeprefix(wrapper): tensor for name, tensor in state.items()}
        if not state or "" in state:
            break
    return state


def _is_counter(name: str) -> bool:
    """Whether ``name`` counts batches, which old checkpoints lack and evaluation ignores."""
    return name.endswith("num_batches_tracked")


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a single number"


class _MetaWeights(TorchFunctionMode):
    """Make weights on the meta device; other tensors, which networks compute with, are real."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty:  # every layer makes its weights with it
            kwargs["device"] = "meta"
        if func in _DRAWS and args[0].is_meta:  # has no values; torch would load its compiler
            return args[0]
        return func(*args, **kwargs)


def build_on_meta(make: Callable[[], nn.Module]) -> nn.Module | None:
    """The network that ``make`` gives, on the meta device; None where it cannot be built there."""
    try:
        with warnings.catch_warnings(action="ignore"), _MetaWeights():
            return make().to("meta").eval()
    except Exception:  # it reads its weights while it is built
        return None


def check_forward(net: nn.Module, on_meta: nn.Module | None, card: ModelCard) -> None:
    """Raise ``BadInput`` unless the network gives a score per class for an image of the card.

    For large images the network ``on_meta`` is tried first, which needs no memory. Where that
    fails, and for small images, the network itself is tried. The first pass on the meta device
    takes over a second, which torch needs to load its compiler.
    """
    shape = (1, card.channels, *card.size)
    wanted, elements = (1, len(card.classes)), shape[1] * shape[2] * shape[3]
    found: tuple[int, ...] | str = wanted
    if on_meta is not None and elements > _FEW_ELEMENTS:
        found = _output_shape(on_meta, shape, "meta")
    if (
        on_meta is None or elements <= _FEW_ELEMENTS or found != wanted
    ) and elements <= _MAX_ELEMENTS:
        found = _output_shape(net, shape, "cpu")
    if found != wanted:
        size = " x ".join(map(str, shape[1:]))
        given = found if isinstance(found, str) else f"its output has the shape {found}"
        raise BadInput(f"{card.net} does not take images of {size}, as its card says ({given})")


def _output_shape(net: nn.Module, shape: tuple[int, ...], device: str) -> tuple[int, ...] | str:
    """The shape of the network's output, or why it gives none."""
    try:
        with warnings.catch_warnings(action="ignore"), torch.no_grad():
            return tuple(net(torch.zeros(shape, device=device)).shape)
    except Exception as error:  # a network may raise anything
        return first_sentence(error)


def _module(net: object) -> nn.Module:
    assert isinstance(net, nn.Module)
    return net
