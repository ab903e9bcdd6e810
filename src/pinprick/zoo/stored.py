"""Weights as they are stored: float32, float16, or int8 with one scale per output channel.

An 8-bit weight is ``q * scale`` with a whole number q from -127 to 127. Its tensor is stored as
int8 under its own name and the scales under ``NAME.scale``. Only weights of convolutions and linear
layers are stored so; norms, biases and buffers stay float32.

    scale = max |w| / 127 of the channel, rounded up to 11 significant bits
    q     = round(w / scale)

With 11 bits every product q * scale is exact in float32. So loading gives the same numbers on every
machine, and storing a loaded network again gives the same tensors.
"""

from typing import Literal, cast, get_args

import torch
from torch import Tensor

from pinprick.errors import BadInput, UnknownName
from pinprick.zoo.safe import plain_name

State = dict[str, Tensor]
Store = Literal["float32", "float16", "int8"]
STORES: tuple[str, ...] = get_args(Store)

_SCALE = ".scale"
_LARGEST = 127
_BITS = 11  # significant bits of a scale; 8 more still fit float32
_SMALLEST = 1e-30  # a channel below it is stored as zeros


def as_store(name: str) -> Store:
    """The way to store weights that is called ``name``."""
    if name not in STORES:
        raise UnknownName("way to store weights", name, STORES)
    return cast(Store, name)


def to_stored(state: State, store: Store) -> State:
    """The tensors as they are written: on the CPU, contiguous, in memory of their own."""
    as_store(store)
    stored: State = {}
    for name, tensor in state.items():
        plain = tensor.detach().to("cpu", copy=True).contiguous()
        if store == "float16" and plain.is_floating_point():
            stored[name] = _to_half(name, plain)
        elif store == "int8" and plain.is_floating_point() and plain.dim() >= 2:
            stored[name], stored[name + _SCALE] = _to_int8(name, plain.float())
        else:
            stored[name] = plain
    return stored


def from_stored(state: State, where: str) -> State:
    """The weights that ``state`` stands for; only 8-bit ones change."""
    scaled = {
        name
        for name, tensor in state.items()
        if tensor.dtype == torch.int8 and name + _SCALE in state
    }
    loaded: State = {}
    for name, tensor in state.items():
        if name in scaled:
            loaded[name] = _from_int8(name, tensor, state[name + _SCALE], where)
        elif name.removesuffix(_SCALE) not in scaled:
            loaded[name] = tensor
    return loaded


def _to_half(name: str, plain: Tensor) -> Tensor:
    half = plain.half()
    if not torch.equal(half.isfinite(), plain.isfinite()):
        raise BadInput(f"{name} has values too large for 16 bits; save it without half")
    return half


def _to_int8(name: str, plain: Tensor) -> tuple[Tensor, Tensor]:
    if not plain.isfinite().all():
        raise BadInput(f"{name} has values that are NaN or infinite; save it as float32")
    largest = plain.flatten(1).abs().amax(dim=1)
    mantissa, exponent = torch.frexp(largest.double() / _LARGEST)
    scale = torch.ldexp((mantissa * 2**_BITS).ceil(), exponent - _BITS).float()
    scale = scale.where(largest > _SMALLEST, torch.ones_like(scale))
    rows = scale.view(-1, *[1] * (plain.dim() - 1))
    return (plain / rows).round().to(torch.int8), scale


def _from_int8(name: str, tensor: Tensor, scale: Tensor, where: str) -> Tensor:
    if tensor.dim() < 2 or scale.shape != tensor.shape[:1] or not scale.is_floating_point():
        raise BadInput(
            f"{where} does not hold one scale per output channel of {plain_name(name)}: "
            f"expected {tensor.shape[0] if tensor.dim() else 1} numbers, "
            f"got {tuple(scale.shape)} of {scale.dtype}"
        )
    return tensor.float() * scale.float().view(-1, *[1] * (tensor.dim() - 1))
