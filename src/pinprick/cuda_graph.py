"""Passes of a model, and other steps, as CUDA graphs.

A forward pass and its backward pass are two graphs, with images and logits in place.

The loss stays outside: its gradient at the logits is copied into the second graph, so any loss
works. All graphs of a model share one pool of memory, which is as large as the largest of them
needs. So the graphs overwrite one another's values, and each result is copied out at once.

Other threads may use the device during a recording, such as one that loads data.
"""

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache

import torch
from torch import Tensor

from pinprick.replay import NoRoom, Passes
from pinprick.types import Images, Logits

_SHARE = 0.5  # of the free memory, which a recording may take
_OTHERS_MAY = "thread_local"  # what a recording forbids, it forbids its own thread alone


class CudaGraphs:
    """Records passes as CUDA graphs in one pool of memory.

    Attributes:
        memory: Bytes of GPU memory that the pool took.
    """

    def __init__(self) -> None:
        self.memory = 0
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, model: Passes, given: tuple[Tensor, ...], backward: bool) -> "GraphedPass":
        with torch.cuda.device(given[0].device):
            before = torch.cuda.memory_reserved()
            graphed = GraphedPass(model, given, backward, self._pool)
            self.memory += max(0, torch.cuda.memory_reserved() - before)
        return graphed


class GraphedPass:
    """The graphs of one batch size.

    Args:
        model: Queried a few times, and once more while it is recorded.
        given: A batch of the size to record: images, and what else the model takes.
        backward: Whether to record a backward pass.
        pool: The pool of memory.
    """

    def __init__(
        self, model: Passes, given: tuple[Tensor, ...], backward: bool, pool: object
    ) -> None:
        self._given = tuple(one.detach().clone() for one in given)
        images = self._given[0].requires_grad_(backward)
        self._filled = len(images)
        here, side = torch.cuda.current_stream(), _side_stream(images.device)
        side.wait_stream(here)
        with torch.cuda.stream(side), torch.set_grad_enabled(backward), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Attempting to run cuBLAS")  # it creates its context
            warnings.filterwarnings("ignore", "Synchronization debug mode")  # it is a prototype
            for check in (nullcontext(), _waiting_refused()):  # libraries load kernels in the first
                with check:
                    logits = _warm_up(model, self._given)
                    if backward:  # with the kernels of the recording, all of them loaded
                        torch.autograd.grad((logits * torch.zeros_like(logits)).sum(), images)
                    del logits
            torch.cuda.synchronize()
            self._forward, logits = _captured(lambda: model(*self._given), pool)
            if backward:
                self._grad = torch.zeros_like(logits)
                self._backward, self._gradient = _captured(
                    lambda: _gradient(logits, images, self._grad), pool
                )
            self._logits = logits.detach()
        here.wait_stream(side)

    def forward(self, images: Images, *others: Tensor) -> Logits:
        count = len(images)
        with torch.no_grad():
            for own, new in zip(self._given, (images, *others), strict=True):
                own[:count].copy_(new)
                if count < self._filled:
                    own[count : self._filled].zero_()
        self._filled = count
        self._forward.replay()
        return self._logits[:count].clone()

    def backward(self, grad: Logits) -> Images:
        count = len(grad)
        self._grad[:count].copy_(grad)
        if count < len(self._grad):
            self._grad[count:].zero_()
        self._backward.replay()
        return self._gradient[:count].clone(memory_format=torch.contiguous_format)


@contextmanager
def cuda_steps(device: torch.device) -> Iterator["CudaSteps | None"]:
    """Records steps on a GPU, and gives their memory back at the end; None on a CPU."""
    if device.type != "cuda":
        yield None
        return
    steps = CudaSteps(device)
    try:
        yield steps
    finally:
        steps.release()


class CudaSteps:
    """Records steps as CUDA graphs, one after the other in one pool of memory.

    Attributes:
        remark: Why recording failed; empty text unless it did.
    """

    def __init__(self, device: torch.device) -> None:
        self.remark = ""
        self._device, self._pool = device, torch.cuda.graph_pool_handle()
        self._first: torch.cuda.CUDAGraph | None = None  # keeps the pool between two recordings

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        with torch.cuda.device(self._device):
            if self._first is None:
                self._first = self._recorded(lambda: None)
            return self._recorded(work).replay

    def release(self) -> None:
        """Give back the memory of all recordings; none may be replayed any more."""
        if self._first is not None:
            self._first = None
            torch.cuda.empty_cache()

    def _recorded(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        def made() -> Tensor:
            work()
            return torch.zeros(1, device=self._device)

        here, side = torch.cuda.current_stream(), _side_stream(self._device)
        side.wait_stream(here)
        with torch.cuda.stream(side):
            graph, _ = _captured(made, self._pool)
        here.wait_stream(side)
        return graph


def _gradient(logits: Logits, images: Images, grad: Logits) -> Images:
    """The gradient; nothing is freed, so that several backward passes may follow a forward pass.

    The first use of ``grad_outputs`` would import sympy, which takes seconds.
    """
    return torch.autograd.grad((logits * grad).sum(), images, retain_graph=True)[0]


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream to record on, always the same: cuBLAS keeps memory for each that it has seen."""
    return torch.cuda.Stream(device)


def _warm_up(model: Passes, given: tuple[Tensor, ...]) -> Logits:
    """The logits; raises ``NoRoom`` if what a backward pass needs of them hardly fits twice."""
    before = torch.cuda.memory_allocated()
    logits = model(*given)
    held = torch.cuda.memory_allocated() - before
    unused = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    if held > _SHARE * (torch.cuda.mem_get_info()[0] + unused):
        raise NoRoom
    return logits


@contextmanager
def _waiting_refused() -> Iterator[None]:
    """An error for most networks that wait for the device, before a recording fails by them.

    The error is for all threads of the process. So there is none where other threads live.
    """
    if threading.active_count() > 1:
        yield
        return
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _captured(work: Callable[[], Tensor], pool: object) -> tuple[torch.cuda.CUDAGraph, Tensor]:
    """The graph of some work, and the tensor that each replay fills.

    ``torch.cuda.graph`` would also empty the cache of memory, which all other tensors then miss.
    """
    graph, collects = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()  # what is collected in between may call the device, which ends the recording
    try:
        graph.capture_begin(  # type: ignore[no-untyped-call, unused-ignore]
            pool=pool,  # type: ignore[unused-ignore, arg-type]
            capture_error_mode=_OTHERS_MAY,
        )
        try:
            made = work()
        except BaseException:
            with suppress(RuntimeError):
                graph.capture_end()
            _release_random_numbers()
            raise
        graph.capture_end()
    finally:
        if collects:
            gc.enable()
    return graph, made


def _release_random_numbers() -> None:
    """Record something: until then torch draws no random numbers after a recording that failed."""
    graph, value = torch.cuda.CUDAGraph(), torch.zeros(1, device="cuda")
    with suppress(RuntimeError):
        graph.capture_begin(capture_error_mode=_OTHERS_MAY)
        value.add_(1)
        graph.capture_end()
