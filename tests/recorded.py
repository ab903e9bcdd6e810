"""Recordings without a GPU: they share memory, and replay what they were made from."""

import torch
from torch import Tensor

from pinprick.replay import Passes
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

    def __call__(
        self, model: Passes, given: tuple[Tensor, ...], backward: bool
    ) -> "_FakeRecording":
        if self.fails is not None:
            raise self.fails
        self.made.append((len(given[0]), backward))
        return _FakeRecording(self, model, len(given[0]))


class _FakeRecording:
    def __init__(self, recorder: FakeRecorder, model: Passes, size: int) -> None:
        self._recorder, self._model, self._size = recorder, model, size

    def forward(self, images: Images, *others: Tensor) -> Logits:
        self._recorder.replays += 1
        padded = [self._padded(one) for one in (images, *others)]
        self._recorder.shared["images"] = padded[0].requires_grad_()
        with torch.enable_grad():
            logits = self._model(*padded) + self._recorder.wrong
        self._recorder.shared["logits"] = logits
        return logits.detach()[: len(images)]

    def _padded(self, rows: Tensor) -> Tensor:
        whole = rows.new_zeros((self._size, *rows.shape[1:]))
        whole[: len(rows)] = rows.detach()
        return whole

    def backward(self, grad: Logits) -> Images:
        whole = self._padded(grad)
        shared = self._recorder.shared
        images, logits = shared["images"], shared["logits"]
        assert len(images) == self._size, "another recording was replayed in between"
        (gradient,) = torch.autograd.grad(logits, images, whole, retain_graph=True)
        return gradient[: len(grad)]
