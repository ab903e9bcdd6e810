"""Passes of a model that are recorded once per batch size and then replayed.

A small network finishes its kernels faster than Python can start them. A recording starts all of
them at once (``cuda_graph.py``). It has a fixed batch size, so a batch is padded with zeros to the
next of a few sizes: powers of two, and four steps per doubling from 32 on. Batches are padded
before their size is recorded, too. So results do not depend on when a size is recorded, or whether
there is room for it.

Each recording is compared with the model itself on two batches. Where recording fails or the two
differ, the model is queried directly from then on, and ``remark`` says why.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.backward import alike
from pinprick.errors import one_line
from pinprick.types import Images, Logits

MOST = 48  # recordings of one model
PATIENCE = 8  # requests of a size before it is recorded, which costs about as much
_FINE = 32  # batch size from which there are four steps per doubling


@runtime_checkable
class Recording(Protocol):
    """One recorded forward pass, and the backward pass that belongs to it, if any."""

    def forward(self, images: Images, /, *others: Tensor) -> Logits:
        """Logits of at most as many images as were recorded; a tensor of the caller's own."""
        ...

    def backward(self, grad: Logits, /) -> Images:
        """Gradient at the images of the latest forward pass; a tensor of the caller's own."""
        ...


Passes = Callable[..., Logits]  # of images and other tensors with one entry per image
Recorder = Callable[[Passes, tuple[Tensor, ...], bool], Recording]  # the last: with a backward pass


class NoRoom(Exception):
    """There is too little memory for another recording."""


class ReplayedModel:
    """A model whose passes are replayed; gradients flow through it as through the model.

    Attributes:
        remark: Why passes are not replayed, or not all of them; empty text if they are.
        seconds: Time spent on recording.
        recordings: The recordings by kind of pass, padded size and shape of an image.

    Args:
        model: Gives logits of images, and may take further tensors with one entry per image. Its
            weights stay in place.
        record: Makes recordings. All of them may share memory, so that a replay may overwrite what
            the backward pass of another one needs.
    """

    def __init__(self, model: Passes, record: Recorder) -> None:
        self._model, self._record = model, record
        self.remark, self.seconds = "", 0.0
        self.recordings: dict[tuple[Any, ...], Recording] = {}
        self._requests: dict[tuple[Any, ...], int] = {}
        self._direct = False
        self._latest = _Latest()

    def __call__(self, images: Images, *others: Tensor) -> Logits:
        if self._direct or not len(images):
            return self._model(images, *others)
        size = padded_size(len(images))
        backward = torch.is_grad_enabled() and images.requires_grad
        key = (backward, size, tuple(images.shape[1:]), images.dtype)
        if key not in self.recordings and self._is_due(key):
            self._add(key, (padded(images.detach(), size), *(padded(one, size) for one in others)))
        recording = self.recordings.get(key)
        if recording is None:
            given = (images, *others)
            if not self._direct:
                given = tuple(padded(one, size) for one in given)
            return self._model(*given)[: len(images)]
        if backward:
            logits: Logits = _Replayed.apply(images, others, recording, self._latest)
            return logits
        self._latest.forward = object()
        return recording.forward(images, *others)

    def _is_due(self, key: tuple[Any, ...]) -> bool:
        """Whether this is the request at which to record; none follows if that fails."""
        self._requests[key] = self._requests.get(key, 0) + 1
        return self._requests[key] == PATIENCE + 1 and len(self.recordings) < MOST

    def _add(self, key: tuple[Any, ...], given: tuple[Tensor, ...]) -> None:
        start = time.perf_counter()
        self._latest.forward = object()
        try:
            recording = self._record(self._model, given, key[0])
            if _same_passes(self._model, recording, given, key[0]):
                self.recordings[key] = recording
            else:
                self._stop("a replayed pass differs from the model's own")
        except (NoRoom, torch.OutOfMemoryError):
            self.remark = f"too little GPU memory to record passes of {key[1]} images"
        except Exception as error:  # of any kind, from a network of the user's own
            self._stop(one_line(error))
        self.seconds += time.perf_counter() - start

    def _stop(self, reason: str) -> None:
        self.remark = f"passes of this network cannot be recorded: {reason}"
        self._direct = True
        self.recordings.clear()


def padded_size(count: int) -> int:
    """The batch size that ``count`` images are padded to."""
    power = 1 << (count - 1).bit_length()
    step = max(1, power // 8) if power > _FINE else power
    return -(-count // step) * step


def padded(rows: Tensor, size: int) -> Tensor:
    """The rows with zeros after them."""
    missing = size - len(rows)
    return F.pad(rows, (0, 0) * (rows.ndim - 1) + (0, missing)) if missing else rows


def _same_passes(
    model: Passes, recording: Recording, given: tuple[Tensor, ...], backward: bool
) -> bool:
    """Whether recording and model agree on these images, in this order and another."""
    for shift in (0, 1):
        images, *others = (one.roll(shift, dims=0) for one in given)
        inputs = images.detach().requires_grad_(backward)
        with torch.set_grad_enabled(backward):
            logits = model(inputs, *others)
        if not alike(recording.forward(inputs.detach(), *others), logits.detach()):
            return False
        if backward:
            grad = torch.linspace(-1, 1, logits.numel(), device=logits.device, dtype=logits.dtype)
            grad = grad.view_as(logits)
            wanted = torch.autograd.grad((logits * grad).sum(), inputs)[0]
            if not alike(recording.backward(grad), wanted):
                return False
    return True


class _Latest:
    """Which forward pass was replayed last; a backward pass must follow its own."""

    def __init__(self) -> None:
        self.forward = object()


class _Replayed(torch.autograd.Function):
    """A replayed forward pass, whose backward pass is replayed as well."""

    @staticmethod
    def forward(
        ctx: Any,
        images: Images,
        others: tuple[Tensor, ...],
        recording: Recording,
        latest: _Latest,
    ) -> Logits:
        latest.forward = ctx.own = object()
        ctx.given, ctx.recording, ctx.latest = (images.detach().clone(), *others), recording, latest
        return recording.forward(*ctx.given)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Images, None, None, None]:
        if ctx.latest.forward is not ctx.own:  # another replay overwrote what this one left
            ctx.recording.forward(*ctx.given)
            ctx.latest.forward = ctx.own
        return ctx.recording.backward(grad), None, None, None
