"""A model whose passes are compiled by ``torch.compile``, for the passes of a search.

Compiling fuses the operations between convolutions. It takes seconds to a minute, once for passes
with a gradient and once for passes without, and holds for all batch sizes. It happens at the first
pass. Where it fails, or gives worse logits, the model is queried as it is, and ``remark`` says why.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from types import FunctionType
from typing import Any

import torch

from pinprick.errors import one_line
from pinprick.model import Classifier, Model
from pinprick.types import Images, Logits

_WORSE = 2.0  # times the error of the model's own logits that those of compiled passes may have
_ROUNDING = 0.01  # relative error that they may have besides
_NUMBERS = count()


class CompiledModel:
    """Gives the logits of a model, up to rounding.

    Attributes:
        remark: Why passes are not compiled; empty text if they are.
        seconds: Time spent on compiling.

    Args:
        model: The model to compile.
        exact: The model that it stands for; its logits are compared with both.
        backend: What ``torch.compile`` hands its graphs to.
    """

    def __init__(
        self, model: Classifier, exact: Model, backend: str | Callable[..., Any] = "inductor"
    ) -> None:
        self._model, self._exact = model, exact
        self.remark, self.seconds = "", 0.0
        self._ready: set[bool] = set()  # with a gradient, and without
        self._compiled: Callable[[Images], Logits] = torch.compile(_own(model.net), backend=backend)

    def __call__(self, images: Images) -> Logits:
        if self.remark:
            return self._model(images)
        kind = torch.is_grad_enabled() and images.requires_grad
        if kind not in self._ready:
            self._compile(images, kind)
            return self(images)
        return self._pass(images)

    def _pass(self, images: Images) -> Logits:
        values = self._model.normalise(images)
        if not (torch.is_grad_enabled() and values.requires_grad):
            return self._compiled(_of_any_number(values))
        logits: Logits = _Repeatable.apply(values, self._compiled)
        return logits

    def _compile(self, images: Images, with_gradient: bool) -> None:
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # advice of the compiler, and what torch deprecates
                logits = self._pass(images)
                if with_gradient:
                    torch.autograd.grad((logits * torch.zeros_like(logits)).sum(), images)
            if self._is_worse(images.detach(), logits.detach()):
                self.remark = "a compiled pass differs from the network's own"
        except Exception as error:  # of any kind, from the network or from a compiler
            self.remark = f"passes of this network cannot be compiled: {one_line(error)}"
        self._ready.add(with_gradient)
        self.seconds += time.perf_counter() - start

    @torch.no_grad()
    def _is_worse(self, images: Images, logits: Logits) -> bool:
        wanted = self._exact(images).to(logits.dtype)
        own, compiled = ((one - wanted).norm() for one in (self._model(images), logits))
        return not compiled <= _WORSE * own + _ROUNDING * wanted.norm()


class _Repeatable(torch.autograd.Function):
    """A compiled pass after which several backward passes may follow; torch expects one."""

    @staticmethod
    def forward(ctx: Any, values: Images, compiled: Callable[[Images], Logits]) -> Logits:
        with torch.enable_grad(), _kept():
            ctx.values = _of_any_number(values.detach()).requires_grad_()
            ctx.logits = compiled(ctx.values)
        logits: Logits = ctx.logits.detach()
        return logits

    @staticmethod
    def backward(ctx: Any, grad: Logits) -> tuple[Images, None]:
        with _kept():
            return torch.autograd.grad(ctx.logits, ctx.values, grad, retain_graph=True)[0], None


def _kept() -> AbstractContextManager[Any]:
    """Inside, what a compiled backward pass needs is not overwritten by it."""
    kept: AbstractContextManager[Any] = torch._functorch.config.patch(donated_buffer=False)
    return kept


def _of_any_number(values: Images) -> Images:
    """The values, marked so that what is compiled for them holds for other numbers of images."""
    torch._dynamo.maybe_mark_dynamic(values, 0)  # type: ignore[no-untyped-call, unused-ignore]
    return values


def _own(net: Callable[[Images], Logits]) -> Callable[[Images], Logits]:
    """The network as a function with code of its own.

    ``torch.compile`` keeps what it compiled with a function's code, and at most eight versions of
    each. So several networks do not share these, and nothing stays when the network is gone.
    """
    logits: Any = lambda values: net(values)  # noqa: E731
    code = logits.__code__.replace(co_name=f"logits_{next(_NUMBERS)}")
    own: Callable[[Images], Logits] = FunctionType(
        code, globals(), code.co_name, None, logits.__closure__
    )
    return own
