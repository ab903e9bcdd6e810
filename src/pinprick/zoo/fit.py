"""A network built as its card says, filled with weights that must fit it to the last name."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput, MissingExtra, UnknownName
from pinprick.model import Access, Classifier
from pinprick.zoo.card import ModelCard
from pinprick.zoo.prepare import cover_and_crop
from pinprick.zoo.safe_loading import check_takes, listed, outline
from pinprick.zoo.weights import State, from_stored

_WRAPPERS = ("module.", "_orig_mod.")  # of DataParallel and of torch.compile


def classifier_from(card: ModelCard, state: State, *, where: str, name: str) -> Classifier:
    """The model that ``card`` describes, with weights that were found at ``where``."""
    check_net(card.net)
    state = from_stored(state, where)
    what = f"{card.net} with {len(card.classes)} classes"
    with torch.random.fork_rng(devices=[]):  # fresh weights are drawn, only to be replaced
        sketch = outline(lambda: build(card))
        if sketch is not None:
            fitting(sketch, state, what, where)
        net = build(card)
    fill(net.eval(), state, what, where)
    check_takes(net, sketch, card)
    return as_card_says(net, card, name)


def as_card_says(
    net: Callable[[Tensor], Tensor], card: ModelCard, name: str, *, access: Access | None = None
) -> Classifier:
    """The network with the preprocessing and the classes of its card."""
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
    """Raise unless ``net``, as a card has it, names an architecture that is there."""
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
            f"a card names a network of pinprick, torchvision:NAME or timm:NAME, got {net!r}"
        )


def build(card: ModelCard) -> nn.Module:
    """The architecture that the card names, with fresh weights."""
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
        if name in ("googlenet", "inception_v3"):  # slow, and they warn of it
            options["init_weights"] = False
        return _module(models.get_model(name, **options))
    import timm

    return _module(timm.create_model(name, num_classes=count, in_chans=card.channels))


def fill(net: nn.Module, state: State, what: str, where: str) -> None:
    """Put the weights into the network, or say which of them do not fit."""
    net.load_state_dict(fitting(net, state, what, where), strict=False)


def fitting(net: nn.Module, state: State, what: str, where: str) -> State:
    """The weights under the names that the network has for them, if they fit in every shape."""
    wanted = net.state_dict()
    if not state.keys() <= wanted.keys():
        state = _unwrapped(state)
    missing = [name for name in wanted if name not in state and not _is_counter(name)]
    unexpected = [name for name in state if name not in wanted]
    faults = [f"the file lacks {listed(missing)}"] if missing else []
    faults += [f"the network has no {listed(unexpected)}"] if unexpected else []
    if faults:
        raise BadInput(f"{where} does not fit {what}: {'; '.join(faults)}")
    for name, tensor in ((name, state[name]) for name in wanted if name in state):
        if tensor.shape != wanted[name].shape:
            raise BadInput(
                f"{where} does not fit {what}: "
                f"{name} is {_shape(tensor)} in the file and {_shape(wanted[name])} in the network"
            )
        if tensor.is_floating_point() != wanted[name].is_floating_point():
            raise BadInput(f"{where} does not fit {what}: {name} is kept as {tensor.dtype}")
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
    """Whether ``name`` counts batches, which old checkpoints do not have and evaluation ignores."""
    return name.endswith("num_batches_tracked")


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a single number"


def _module(net: object) -> nn.Module:
    assert isinstance(net, nn.Module)
    return net
