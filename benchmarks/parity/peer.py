"""Attacks of other libraries and of papers' authors, run as attacks of this package.

The referee then counts passes and elements for both sides, on the same images. Nothing of theirs
is shipped. Folders of their code lie under the folder that ``PINPRICK_PEERS`` names, each under the
name of its repository: ``git clone https://github.com/fra31/sparse-rs``.

What such code does to its surroundings ends with the call: ``Network`` stands between it and the
model, so that it can neither change the model's mode nor its weights. Its output is dropped, its
random numbers start at the seed of the image, ``.cuda()`` does nothing on a CPU, and settings of
cuDNN and of the environment are restored.
"""

import io
import os
import random
import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock, patch

import numpy as np
import torch
from torch import Tensor, nn

from pinprick import Attack, Problem
from pinprick.errors import BadInput

FOLDER = "PINPRICK_PEERS"


class Peer(Attack):
    """An attack whose work is done by somebody else's code."""

    def __call__(self, problem: Problem) -> Tensor:
        with borrowed(problem):
            adv = self.run(problem)
        # Theirs may leave the box by rounding, and may work in double precision.
        return adv.detach().to(problem.images).clamp(0, 1)

    @abstractmethod
    def run(self, problem: Problem) -> Tensor:
        """Their adversarial images."""


class Network(nn.Module):
    """The model as a network for other people's code; each image of a pass is counted.

    Args:
        problem: The images under attack.
        ask: Gives the logits of some images; by default it asks the model about the images of the
            problem, or about those of them that the given images resemble most.
    """

    def __init__(self, problem: Problem, ask: Callable[[Tensor], Tensor] | None = None) -> None:
        super().__init__()
        self.eval()
        self.device_mark = nn.Parameter(torch.empty(0, device=problem.images.device))
        self._problem = [problem]  # in a list: not a part of the network
        self._ask = ask or self._ask_model

    def forward(self, images: Tensor) -> Tensor:
        # A copy, since some write into the logits they get.
        return self._ask(images.to(self._problem[0].images)).clone()

    def predict_label(self, images: Tensor) -> Tensor:
        """The class of each image, under the name that some authors use."""
        return self(images).argmax(dim=1)

    def _ask_model(self, images: Tensor) -> Tensor:
        problem = self._problem[0]
        if len(images) == len(problem):
            return problem.logits(images)
        return problem[nearest_rows(images, problem.images)].logits(images)


def nearest_rows(images: Tensor, clean: Tensor) -> Tensor:
    """Which clean image each of a few images, or of several copies, resembles most."""
    with torch.no_grad():
        return torch.cdist(images.flatten(1), clean.flatten(1), p=1).argmin(dim=1)


def one_by_one(problem: Problem, attack: Callable[[Network, Problem], Tensor]) -> Tensor:
    """Their adversarial images, where their code takes one image at a time."""
    rows = torch.arange(len(problem), device=problem.images.device)
    parts = [problem[row] for row in rows.split(1)]
    found = []
    for part in parts:
        _seed(part)
        found.append(attack(Network(part), part))
    return torch.cat(found)


def side_by_side(problem: Problem, attack: Callable[[Network, Problem], Tensor]) -> Tensor:
    """The same for code without gradients, with one forward pass for all images together.

    Every image has a thread, which waits for its logits. One thread runs at a time and has numpy's
    random numbers to itself, so that an image gets the same result in any batch.
    """
    rows = torch.arange(len(problem), device=problem.images.device)
    runs = [_Run(problem[row], attack) for row in rows.split(1)]
    try:
        for run in runs:
            run.resume()
        while asking := [(row, run) for row, run in enumerate(runs) if run.asked is not None]:
            counts = [len(run.asked) for _, run in asking if run.asked is not None]
            which = torch.tensor([row for row, _ in asking], device=rows.device)
            which = which.repeat_interleave(torch.tensor(counts, device=rows.device))
            images = torch.cat([run.asked for _, run in asking if run.asked is not None])
            with torch.no_grad():
                logits = problem[which].logits(images)
            for (_, run), part in zip(asking, logits.split(counts), strict=True):
                run.answer = part
                run.resume()
    finally:
        for run in runs:
            run.stop()
    return torch.cat([run.found for run in runs if run.found is not None])


class _Run:
    """Their code on one image, in a thread that runs only between two calls of the model."""

    def __init__(self, problem: Problem, attack: Callable[[Network, Problem], Tensor]) -> None:
        self.asked: Tensor | None = None
        self.answer: Tensor | None = None
        self.found: Tensor | None = None
        self._error: BaseException | None = None
        self._go, self._paused, self._stopped = (threading.Event() for _ in range(3))
        state = np.random.get_state()
        _seed(problem)
        self._state = np.random.get_state()
        np.random.set_state(state)
        self._thread = threading.Thread(target=self._work, args=(problem, attack), daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Run until the next question, or to the end."""
        np.random.set_state(self._state)
        self.asked = None
        self._go.set()
        self._paused.wait()
        self._paused.clear()
        self._state = np.random.get_state()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._stopped.set()
        self._go.set()
        self._thread.join()

    def _work(self, problem: Problem, attack: Callable[[Network, Problem], Tensor]) -> None:
        self._wait()
        try:
            if not self._stopped.is_set():
                self.found = attack(Network(problem, self._question), problem)
        except BaseException as error:
            self._error = error
        self._paused.set()

    def _question(self, images: Tensor) -> Tensor:
        self.asked = images.detach()
        self._paused.set()
        self._wait()
        if self._stopped.is_set():
            raise KeyboardInterrupt
        assert self.answer is not None
        return self.answer

    def _wait(self) -> None:
        self._go.wait()
        self._go.clear()


@contextmanager
def borrowed(problem: Problem) -> Iterator[None]:
    """Their code may print, draw random numbers and call ``.cuda()``; all of it ends here."""
    state, numpy_state, cudnn = random.getstate(), np.random.get_state(), torch.backends.cudnn
    modes = cudnn.benchmark, cudnn.deterministic
    cuda = [problem.images.device] if problem.images.is_cuda else []
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=cuda))
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(patch.dict(os.environ))
        if not cuda:
            for kind in (Tensor, nn.Module):
                stack.enter_context(patch.object(kind, "cuda", lambda one, *_, **__: one))
        _seed(problem)
        try:
            yield
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)
            cudnn.benchmark, cudnn.deterministic = modes


def aim(problem: Problem) -> tuple[Tensor, bool]:
    """The targets and True, or the labels and False: what most of their code asks for."""
    targets = problem.goal.targets
    return (problem.goal.labels, False) if targets is None else (targets, True)


def seed_of(problem: Problem) -> int:
    """The seed of the first image."""
    return int(problem.rng.integers(2**31 - 1, 1, step=0, use="seed of a peer")[0, 0])


def _seed(problem: Problem) -> None:
    seed = seed_of(problem)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def peer_folder(name: str) -> Path:
    """The folder of a repository; ``BadInput`` with the way to get it."""
    folder = Path(os.environ.get(FOLDER, "")) / name
    if FOLDER not in os.environ or not folder.is_dir():
        raise BadInput(f"there is no {name}; set {FOLDER} to a folder that holds its repository")
    return folder


def _empty_module(name: str) -> MagicMock:
    """A module that has every name; others find out by its spec whether it is installed."""
    module = MagicMock()
    module.__spec__ = ModuleSpec(name, None)
    return module


@cache
def load_peer(folder: str, module: str, unused: tuple[str, ...] = ()) -> ModuleType:
    """A module of a repository.

    Several repositories have a ``utils.py``, so the modules of each are forgotten after the import.

    Args:
        folder: The folder of the repository, with folders inside it: ``sPGD/autoattack``.
        module: The name of the module.
        unused: Modules that it imports and does not need here; empty ones where not installed.
    """
    root = peer_folder(folder)
    before = set(sys.modules)
    empty = [name for name in unused if not _is_installed(name)]
    sys.modules.update({name: _empty_module(name) for name in empty})
    try:
        with (
            patch.object(sys, "path", [str(root), *sys.path]),
            patch.object(sys, "argv", [module]),
        ):
            return import_module(module)
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if name in empty or (isinstance(file, str) and Path(file).is_relative_to(root)):
                del sys.modules[name]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
