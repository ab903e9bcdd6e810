"""How many CPU threads suit a network: one or torch's default, whichever takes less time.

Threads share out every operation and wait for one another. In a small network they wait longer
than they work, most of all where other programs use the cores as well. So a few passes are timed
with one thread and with the default. Sums depend on the number of threads in their last digits:
runs agree bit for bit only with the same number, which ``count`` fixes.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from pinprick.errors import BadInput
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.types import Images

_SET_BY_USER = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_GAIN = 1.25  # times as fast as one thread, for the default to be chosen
_BATCH = 0.03  # seconds of one pass, up to which more images are put into it
_MOST = 256  # images in a timed pass
_SPENT = 0.1  # seconds of timed passes per number of threads, at least one pass
_PASSES = 5  # most of them
_HOPELESS = 4  # times as long as with one thread, after which a slow first pass decides


@dataclass(frozen=True)
class Threads:
    """The number of CPU threads that was chosen.

    Attributes:
        count: The number.
        instead_of: The number before.
        one: Seconds of a pass with one thread; None if nothing was measured.
        default: Seconds of a pass with the number before; None if nothing was measured.
    """

    count: int
    instead_of: int
    one: float | None = None
    default: float | None = None

    def __str__(self) -> str:
        """For instance "1 CPU thread instead of 2: a pass takes 2.1 ms instead of 9.8 ms"."""
        number = f"{self.count} CPU thread{'s' if self.count != 1 else ''}"
        if self.count != self.instead_of:
            number = f"{number} instead of {self.instead_of}"
        if self.one is None or self.default is None:
            return number
        times = {1: self.one, self.instead_of: self.default}
        other = self.instead_of if self.count == 1 else 1
        taken, refused = (_in_words(times[n]) for n in (self.count, other))
        return f"{number}: a pass takes {taken} instead of {refused}"


def _in_words(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


@contextmanager
def fast_threads(
    model: Classifier | Model,
    images: Images,
    *,
    count: int | None = None,
    batch_size: int | None = None,
) -> Iterator[Threads]:
    """Use the fastest number of CPU threads for a model, and restore the former one at the end.

    Args:
        model: The model.
        images: Images in [0, 1] to time it on.
        count: The number of threads; None to measure.
        batch_size: Images per batch, if known; the passes are timed with no more.
    """
    chosen = choose_threads(as_classifier(model), images, count=count, batch_size=batch_size)
    with limited_threads(chosen.count):
        yield chosen


def choose_threads(
    model: Classifier, images: Images, *, count: int | None = None, batch_size: int | None = None
) -> Threads:
    """The number of threads for a model; arguments as for ``fast_threads``.

    Nothing is measured, and the number stays, where it was set by ``OMP_NUM_THREADS``,
    ``MKL_NUM_THREADS`` or ``torch.set_num_threads``, on a GPU, and for models that are no network.
    """
    now = torch.get_num_threads()
    if count is not None:
        if count < 1:
            raise BadInput(f"the number of threads must be at least 1, got {count}")
        return Threads(count, now)
    on_cpu = isinstance(model.net, nn.Module) and (model.device or images.device).type == "cpu"
    is_network = on_cpu and model.sent is None  # a remote model is sent nothing for this
    if now == 1 or not is_network or not len(images) or _set_by_user(now):
        return Threads(now, now)
    images = images[: min(batch_size or _MOST, _MOST)].cpu()
    one, fitting = _time_with_one(model, images)
    default = _time_with_default(model, images[:fitting], now, one)
    return Threads(now if _GAIN * default <= one else 1, now, one, default)


@contextmanager
def restored_threads() -> Iterator[None]:
    """As many CPU threads at the end as at the start; also a decorator."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Work with so many CPU threads; as many as before at the end."""
    with restored_threads():
        if torch.get_num_threads() != count:
            torch.set_num_threads(count)
        yield


def _set_by_user(now: int) -> bool:
    """Whether the number of threads is another than torch takes by itself."""
    if any(os.environ.get(name) for name in _SET_BY_USER):
        return True
    cores = available_cores()
    return now not in (cores, cores // 2)  # torch leaves out the second thread of a core


def available_cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _time_with_one(model: Classifier, images: Images) -> tuple[float, int]:
    """Seconds of a pass with one thread, and the number of images in it."""
    with limited_threads(1), model.frozen():
        _time_pass(model, images[:1])
        alone = _time_pass(model, images[:1])
        fitting = max(1, int(_BATCH / alone))
        return _mean_seconds(model, images[:fitting]), fitting


def _time_with_default(model: Classifier, images: Images, threads: int, one: float) -> float:
    with limited_threads(threads), model.frozen():
        first = _time_pass(model, images)
        if first > _SPENT and first > _HOPELESS * one:
            return first
        return _mean_seconds(model, images)


def _mean_seconds(model: Classifier, images: Images) -> float:
    taken: list[float] = []
    while len(taken) < _PASSES and sum(taken) < _SPENT:
        taken.append(_time_pass(model, images))
    return sum(taken) / len(taken)


def _time_pass(model: Classifier, images: Images) -> float:
    """Seconds of a forward pass, and of a backward pass if the model gives gradients."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
        inputs = images.detach().clone()
        start = time.perf_counter()
        with torch.set_grad_enabled(gives(model.access, "gradients")):
            logits = model(inputs.requires_grad_(gives(model.access, "gradients")))
            if logits.requires_grad:
                torch.autograd.grad(logits.sum(), inputs)
        return time.perf_counter() - start
