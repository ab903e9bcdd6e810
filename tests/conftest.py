"""Models whose right answers are known, and images to go with them."""

import hashlib
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from browser import chromium, open_page
from hypothesis import HealthCheck, settings
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from pinprick import Classifier, least_likely
from pinprick.oracle import exact_images, exact_linear

# Playwright starts once per process, so that all files share one browser.
__all__ = ["chromium", "exact_images", "exact_linear", "open_page"]

settings.register_profile(  # the same examples everywhere, however slow the machine
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")


# Whole commands and pages: shape checks take twice as long there, and units have them elsewhere.
WITHOUT_SHAPES = {"bench", "cli", "jobs", "pages", "report", "web"}


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name in WITHOUT_SHAPES:
            item.add_marker("plain")


@pytest.fixture
def linear() -> Classifier:
    return exact_linear(4, (3, 6, 5))


@pytest.fixture
def images() -> Tensor:
    return exact_images(6, (3, 6, 5))


@pytest.fixture
def labels(linear: Classifier, images: Tensor) -> Tensor:
    """What the linear model says of the images, so that every one is right to begin with."""
    with torch.no_grad():
        return linear(images).argmax(dim=1)


@pytest.fixture
def targets(linear: Classifier, images: Tensor, labels: Tensor) -> Tensor:
    """What the linear model believes in least."""
    with torch.no_grad():
        return least_likely(linear(images), labels)


@pytest.fixture
def curved() -> Classifier:
    """A network that is not linear and takes colour images of any size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        features = nn.Conv2d(3, 8, 3, padding=1)
        head = nn.Linear(32, 4)
    features.weight.data *= 8
    head.weight.data *= 20
    net = nn.Sequential(features, nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), head)
    return Classifier(net.double(), name="curved")


@pytest.fixture
def curved_labels(curved: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return curved(images).argmax(dim=1)


class _Work(TorchDispatchMode):
    """Adds up how many values all tensor operations give."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.values = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        self.values += given.numel() if isinstance(given, Tensor) else 0
        return given


MakeTensors = Callable[[], dict[str, Tensor]]


@pytest.fixture(scope="session")
def once(pytestconfig: pytest.Config) -> Callable[[MakeTensors], dict[str, Tensor]]:
    """What a function makes, from pytest's cache where its file was the same before."""

    def fetch(make: MakeTensors) -> dict[str, Tensor]:
        if not hasattr(pytestconfig, "cache"):  # as with -p no:cacheprovider
            return make()
        source = inspect.getsource(sys.modules[make.__module__])
        key = hashlib.sha256(f"{torch.__version__} {source}".encode()).hexdigest()[:16]
        path = pytestconfig.cache.mkdir("tensors") / f"{make.__name__}-{key}.safetensors"
        if not path.exists():
            part = path.with_suffix(f".{os.getpid()}")  # another worker may be at it, too
            save_file(make(), part)
            part.replace(path)
        return load_file(path)

    return fetch


@pytest.fixture
def work_of() -> Callable[[Callable[[], object]], int]:
    """How many values the tensor operations of a call give: its work, whatever the machine."""

    def measure(call: Callable[[], object]) -> int:
        work = _Work()
        with work:
            call()
        return work.values

    return measure
