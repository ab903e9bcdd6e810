"""Plans and data for tests of the benchmark."""

from collections.abc import Callable
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
