"""Recordings without a GPU: they share memory, and replay what they were made from."""

import torch
from torch import Tensor

from pinprick.model import Model
from pinprick.types import Images, Logits


class FakeRecorder:
    """Makes recordings that query the model with as many images as were recorded.

    Attributes:
        made: Size of each recording, and whether it has a backward pass.
        replays: Number of forward replays.
        fails: An error to raise in place of recording.
        wrong: What recordings add to the logits.
    """

    def __init__(self, fails: Exception | None = None, wrong: float = 0.0) -> None:
        self.made: list[tuple[int, bool]] = []
        self.replays = 0
        self.fails, self.wrong = fails, wrong
        self.shared: dict[str, Tensor] = {}  # overwritten by each replay, as by a CUDA graph

    def __call__(self, model: Model, images: Images, backward: bool) -> "_FakeRecording":
        if self.fails is not None:
            raise self.fails
        self.made.append((len(images), backward))
        return _FakeRecording(self, model, len(images))


class _FakeRecording:
    def __init__(self, recorder: FakeRecorder, model: Model, size: int) -> None:
        self._recorder, self._model, self._size = recorder, model, size

    def forward(self, images: Images) -> Logits:
        self._recorder.replays += 1
        padded = images.new_zeros((self._size, *images.shape[1:]))
        padded[: len(images)] = images.detach()
        self._recorder.shared["images"] = padded.requires_grad_()
        with torch.enable_grad():
            logits = self._model(padded) + self._recorder.wrong
        self._recorder.shared["logits"] = logits
        return logits.detach()[: len(images)]

    def backward(self, grad: Logits) -> Images:
        whole = grad.new_zeros((self._size, *grad.shape[1:]))
        whole[: len(grad)] = grad
        shared = self._recorder.shared
        images, logits = shared["images"], shared["logits"]
        assert len(images) == self._size, "another recording was replayed in between"
        (gradient,) = torch.autograd.grad(logits, images, whole, retain_graph=True)
        return gradient[: len(grad)]
