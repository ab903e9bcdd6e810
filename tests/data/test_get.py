"""Known sets are fetched from a server on loopback, and mended where they are damaged."""

import gzip
import hashlib
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from data.conftest import Cifar, write_idx_set
from data.server import Shop, open_shop
from pinprick.data import load_data
from pinprick.data.registry import find_source


@pytest.fixture
def shop() -> Iterator[Shop]:
    with open_shop() as shop:
        yield shop


@pytest.fixture
def mnist_shop(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A mirror of a small MNIST, whose checksums torchvision takes for the published ones."""
    from torchvision.datasets import MNIST

    write_idx_set(tmp_path / "made")
    resources = []
    for name, _ in MNIST.resources:
        packed = gzip.compress((tmp_path / "made" / Path(name).stem).read_bytes())
        shop.files[f"/{name}"] = packed
        resources.append((name, hashlib.md5(packed).hexdigest()))
    monkeypatch.setattr(MNIST, "resources", resources)
    monkeypatch.setattr(MNIST, "mirrors", [f"{shop.address}/gone/", f"{shop.address}/"])
    return shop


def test_mnist_is_fetched_unpacked_and_read(mnist_shop: Shop, tmp_path: Path) -> None:
    data = load_data("mnist", root=tmp_path / "root", split="both", download=True)
    assert len(data) == 12
    raw = tmp_path / "root" / "MNIST" / "raw"
    assert not list(raw.glob("*.part"))
    before = len(mnist_shop.asked)
    load_data("mnist", root=tmp_path / "root", download=True)
    assert len(mnist_shop.asked) == before  # nothing is fetched twice


@pytest.mark.parametrize("damage", ["cut short", "another byte", "gone", "empty"])
def test_a_damaged_idx_file_is_found_and_mended(
    mnist_shop: Shop, tmp_path: Path, damage: str
) -> None:
    root = tmp_path / "root"
    clean = load_data("mnist", root=root, download=True)
    file = root / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    whole = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        other = {"cut short": whole[:-1], "another byte": whole[:-1] + b"?", "empty": b""}
        file.write_bytes(other[damage])
    (fault,) = find_source("mnist").faults(root)
    assert fault.path == file
    data = load_data("mnist", root=root, download=True)
    assert torch.equal(data.images(), clean.images())
    assert find_source("mnist").faults(root) == []


def test_idx_files_without_their_archives_will_do(mnist_shop: Shop, tmp_path: Path) -> None:
    write_idx_set(tmp_path / "root" / "MNIST" / "raw")
    load_data("mnist", root=tmp_path / "root", download=True)
    assert mnist_shop.asked == []


@pytest.fixture
def cifar_shop(shop: Shop, cifar: Cifar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    from torchvision.datasets import CIFAR10

    cifar("CIFAR10")
    made = tmp_path / CIFAR10.filename
    with tarfile.open(made, "w:gz") as tar:
        tar.add(tmp_path / CIFAR10.base_folder, CIFAR10.base_folder)
    shop.files["/c.tar.gz"] = made.read_bytes()
    monkeypatch.setattr(CIFAR10, "url", f"{shop.address}/c.tar.gz")
    monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(made.read_bytes()).hexdigest())
    return shop


def test_cifar_is_fetched_through_drops(cifar_shop: Shop, tmp_path: Path) -> None:
    cifar_shop.drops = [1000, 10_000]
    seen: list[int] = []
    source = find_source("cifar10")
    source.get(tmp_path / "root", lambda _, done, total: seen.append(done))
    assert cifar_shop.sent == len(cifar_shop.files["/c.tar.gz"]) == seen[-1]
    assert len(load_data("cifar10", root=tmp_path / "root", split="train")) == 20


@pytest.mark.parametrize("name", ["data_batch_3", "batches.meta"])
def test_a_damaged_pickle_is_named_and_unpacked_again(
    cifar_shop: Shop, tmp_path: Path, name: str
) -> None:
    root = tmp_path / "root"
    source = find_source("cifar10")
    source.get(root, None)
    (root / "cifar-10-batches-py" / name).write_bytes(b"half")
    (fault,) = source.faults(root)
    assert (fault.path.name, fault.reason) == (name, "its checksum is not the published one")
    asked = len(cifar_shop.asked)
    assert len(load_data("cifar10", root=root, download=True)) == 4
    assert len(cifar_shop.asked) == asked  # the archive was there still
