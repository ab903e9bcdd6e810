"""Plans and data for tests of the benchmark."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from pinprick.bench.cache import Cache
from pinprick.data.registry import load_data

WritePlan = Callable[[str], Path]


@pytest.fixture
def write_plan(tmp_path: Path) -> WritePlan:
    def write(text: str) -> Path:
        path = tmp_path / "plan.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def cache() -> Cache:
    """Models and images for all tests, loaded once."""
    return Cache()


@pytest.fixture(scope="session")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four images with bare numbers as labels, for every model with ten classes."""
    path = tmp_path_factory.mktemp("data") / "numbered.safetensors"
    sample = load_data("fashion_sample")
    assert sample.pixels is not None
    save_file(
        {"images": sample.pixels[:4].contiguous(), "labels": torch.tensor([9, 2, 1, 1])}, path
    )
    return f"tensors:{path}"


@pytest.fixture(scope="module")
def only_ray() -> Iterator[None]:
    """No other process of these tests has a Ray cluster: two are too much for a small machine."""
    fcntl = pytest.importorskip("fcntl")
    path = Path(tempfile.gettempdir()) / f"pinprick-tests-ray-{os.getuid()}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
