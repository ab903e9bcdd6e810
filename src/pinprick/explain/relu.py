"""ReLUs whose backward pass lets positive gradients through alone, wherever the network has them.

Springenberg, Dosovitskiy, Brox, Riedmiller: Striving for simplicity: The all convolutional net.
ICLR workshop 2015.

    forward   b = ReLU(a)
    backward  g_a = g_b  where a > 0 and g_b > 0, else 0

ReLU6 is open where 0 < a < 6. The calls themselves are caught, so it makes no difference whether a
ReLU is a module or a function, works in place, or is shared by many places in the network, and
no module is touched.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

OTHERS = {  # what else bends, and has no guided form
    "celu": "CELU",
    "elu": "ELU",
    "gelu": "GELU",
    "hardswish": "Hardswish",
    "leaky_relu": "LeakyReLU",
    "mish": "Mish",
    "prelu": "PReLU",
    "rrelu": "RReLU",
    "selu": "SELU",
    "silu": "SiLU",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}


class GuidedReLUs(TorchFunctionMode):
    """While this is entered, the backward pass of every ReLU that is called is the guided one.

    Attributes:
        count: How many calls of a ReLU were caught.
        others: Which activations without a guided form were called.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.others: set[str] = set()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        called = getattr(func, "__name__", "").removesuffix(".default")
        name = called.removesuffix("_")
        if name in OTHERS:
            self.others.add(OTHERS[name])
        if name in _KINDS:
            given, ceiling, inplace = _KINDS[name](*args, **kwargs)
            if ceiling is not None:
                self.count += 1
                return _Guided.apply(given, ceiling, inplace or called.endswith("_"))
            self.others.add("Hardtanh")
        return func(*args, **kwargs)


_Call = tuple[Tensor, float | None, bool]  # its input, where it ends (None: no ReLU), in place?


def _relu(input: Tensor, inplace: bool = False) -> _Call:
    return input, torch.inf, inplace


def _relu6(input: Tensor, inplace: bool = False) -> _Call:
    return input, 6.0, inplace


def _hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> _Call:
    return input, max_val if min_val == 0 else None, inplace


_KINDS: dict[str, Callable[..., _Call]] = {"relu": _relu, "relu6": _relu6, "hardtanh": _hardtanh}


class _Guided(torch.autograd.Function):
    """A ReLU up to ``ceiling``, with the guided backward pass."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, ceiling: float, inplace: bool) -> Tensor:
        ctx.save_for_backward((given > 0) & (given < ceiling))
        if inplace:
            ctx.mark_dirty(given)
            return given.clamp_(0, ceiling)
        return given.clamp(0, ceiling)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (passes,) = ctx.saved_tensors
        return grad.clamp(min=0) * passes, None, None
