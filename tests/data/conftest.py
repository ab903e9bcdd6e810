"""Small sets in the layouts that torchvision reads."""

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Bytes = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def digits(count: int, *shape: int, seed: int = 0) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def idx(array: Bytes) -> bytes:
    """The array in the format of MNIST's files."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes((0, 0, 8, array.ndim)) + sizes + array.tobytes()


def write_idx_set(folder: Path, *, train: int = 7, test: int = 5) -> dict[str, Bytes]:
    """The four files of MNIST with so few images; what is in them comes back."""
    folder.mkdir(parents=True)
    made = {}
    for stem, count in (("train", train), ("t10k", test)):
        made[f"{stem}-images"] = digits(count, 28, 28, seed=count)
        made[f"{stem}-labels"] = np.arange(count, dtype=np.uint8) % 10
        (folder / f"{stem}-images-idx3-ubyte").write_bytes(idx(made[f"{stem}-images"]))
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(idx(made[f"{stem}-labels"]))
    return made


@pytest.fixture
def mnist(tmp_path: Path) -> dict[str, Bytes]:
    return write_idx_set(tmp_path / "MNIST" / "raw")


Cifar = Callable[[str], dict[str, Bytes]]


@pytest.fixture
def cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cifar:
    """Writes a small CIFAR whose checksums torchvision takes for the published ones."""

    def write(name: str) -> dict[str, Bytes]:
        from torchvision import datasets

        kind = getattr(datasets, name)
        folder = tmp_path / kind.base_folder
        folder.mkdir()
        key = "labels" if name == "CIFAR10" else "fine_labels"
        classes = 10 if name == "CIFAR10" else 100
        made = {}

        def save(file: str, entry: object) -> str:
            (folder / file).write_bytes(pickle.dumps(entry))
            return hashlib.md5((folder / file).read_bytes()).hexdigest()

        for attribute in ("train_list", "test_list"):
            listed = []
            for seed, (file, _) in enumerate(getattr(kind, attribute)):
                made[file] = digits(4, 3072, seed=seed + 10 * len(file))
                labels = [(3 * i + seed) % classes for i in range(4)]
                listed.append([file, save(file, {"data": made[file], key: labels})])
            monkeypatch.setattr(kind, attribute, listed)
        words = [f"some_thing {i}" for i in range(classes)]
        checksum = save(kind.meta["filename"], {kind.meta["key"]: words})
        monkeypatch.setattr(kind, "meta", {**kind.meta, "md5": checksum})
        return made

    return write
