"""Passes of a network in training as CUDA graphs, so that the GPU never waits for Python.

A network for small images has hundreds of kernels of a few microseconds each, and Python is too
slow to start them. A graph is recorded once per shape of a batch and then replayed. It reads and
writes weights and statistics of batch norm in place. There are two graphs: the step needs gradients
of the weights, the attack only of the images, which is a third less work.
"""

import warnings

import torch
from torch import Tensor, nn

from pinprick.model import Classifier
from pinprick.types import Images


class GraphedPasses:
    """A network's passes in training mode, for the attack and for the step.

    Args:
        net: The network, on a GPU and in training mode; its parameters must stay in place.
        like: The network as a classifier, for its preprocessing.
        double: Whether the step is on twice as many images as the attack.
    """

    def __init__(self, net: nn.Module, like: Classifier, *, double: bool = False) -> None:
        self._net, self._like, self._double = net, like, double
        self._shape: torch.Size | None = None
        self._cached: tuple[Classifier, Classifier] | None = None
        _expect_other_stream()

    def for_batch(self, images: Images) -> tuple[Classifier, Classifier]:
        """The attack's model and the step's for batches of this shape; the last two are cached."""
        if self._cached is None or images.shape != self._shape:
            self._cached = None  # frees its memory first
            stepped = torch.cat((images, images)) if self._double else images
            self._cached = self._model(images, False), self._model(stepped, True)
            self._shape = images.shape
        return self._cached

    def _model(self, images: Images, weights: bool) -> Classifier:
        graph = _record(self._net, images, weights)
        return Classifier(graph, mean=self._like.mean, std=self._like.std)


def _record(net: nn.Module, images: Images, weights: bool) -> nn.Module:
    """A graph of both passes, with gradients of the weights or else of the images."""
    buffers = [(buffer, buffer.clone()) for buffer in net.buffers()]
    wanted = [(parameter, parameter.requires_grad) for parameter in net.parameters()]
    sample = torch.zeros_like(images).requires_grad_(not weights)
    try:
        for parameter, _ in wanted:
            parameter.requires_grad_(weights)
        graph = _HalfPrecision(net)
        with warnings.catch_warnings():  # the first backward pass creates a context, with a warning
            warnings.filterwarnings("ignore", "Attempting to run cuBLAS")
            torch.cuda.make_graphed_callables(graph, (sample,))  # replaces its forward
    finally:  # recording runs the network a few times
        for parameter, before in wanted:
            parameter.requires_grad_(before)
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
    return _Replay(graph)


def _expect_other_stream() -> None:
    """Turn off the warning that gradients come from the stream of the recording."""
    warn = getattr(torch.autograd.graph, "set_warn_on_accumulate_grad_stream_mismatch", None)
    if warn is not None:  # since torch 2.10
        warn(False)


class _HalfPrecision(nn.Module):
    """A network in bfloat16; casts are not cached: a graph may not use tensors from outside."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            logits: Tensor = self.net(images)
        return logits


class _Replay(nn.Module):
    """A graph that copies its output, which the next replay would overwrite."""

    def __init__(self, graph: nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.graph(images)
        return logits.clone()
