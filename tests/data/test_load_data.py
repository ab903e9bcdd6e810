"""The known sets are read from torchvision's own layouts, in their own order."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from data.conftest import Bytes, Cifar, write_idx_set
from pinprick import BadInput, UnknownName
from pinprick.data import load_data

GREY = torch.zeros(2, 1, 2, 2, dtype=torch.uint8)


def test_mnist_is_read_in_its_own_order(tmp_path: Path, mnist: dict[str, Bytes]) -> None:
    data = load_data("mnist", root=tmp_path)
    assert (data.name, data.source, len(data)) == ("mnist", "mnist/test", 5)
    assert data.pixels is not None
    assert torch.equal(data.pixels, torch.from_numpy(mnist["t10k-images"]).unsqueeze(1))
    assert data.labels.tolist() == [0, 1, 2, 3, 4]
    assert data.classes[3] == "three"
    assert len(load_data("mnist", root=tmp_path, split="train")) == 7


def test_both_splits_are_train_and_then_test(tmp_path: Path, mnist: dict[str, Bytes]) -> None:
    both = load_data("mnist", root=tmp_path, split="both")
    test = load_data("mnist", root=tmp_path, split="test")
    assert (both.source, len(both)) == ("mnist/both", 12)
    assert both.indices.tolist() == list(range(12))
    assert torch.equal(both[7:].images(), test.images())


def test_a_stale_cache_beside_the_raw_files_is_not_read(
    tmp_path: Path, mnist: dict[str, Bytes]
) -> None:
    """Old versions of torchvision left ``processed``, and later ones read it first."""
    (tmp_path / "MNIST" / "processed").mkdir()
    stale = (torch.zeros(3, 28, 28, dtype=torch.uint8), torch.full((3,), 7))
    for name in ("training.pt", "test.pt"):
        torch.save(stale, tmp_path / "MNIST" / "processed" / name)
    data = load_data("mnist", root=tmp_path)
    assert data.labels.tolist() == [0, 1, 2, 3, 4]
    assert data.pixels is not None
    assert torch.equal(data.pixels, torch.from_numpy(mnist["t10k-images"]).unsqueeze(1))


def test_labels_of_one_split_do_not_make_up_for_those_of_the_other(
    tmp_path: Path, mnist: dict[str, Bytes]
) -> None:
    folder = tmp_path / "MNIST" / "raw"
    train, test = folder / "train-labels-idx1-ubyte", folder / "t10k-labels-idx1-ubyte"
    swapped = test.read_bytes(), train.read_bytes()
    train.write_bytes(swapped[0])
    test.write_bytes(swapped[1])
    with pytest.raises(BadInput, match="mnist/train has 7 images and 5 labels"):
        load_data("mnist", root=tmp_path, split="both")


def test_fashion_mnist_has_a_folder_of_its_own(tmp_path: Path) -> None:
    write_idx_set(tmp_path / "FashionMNIST" / "raw")
    data = load_data("fashion_mnist", root=tmp_path)
    assert data.classes[9] == "ankle boot"
    assert len(data) == 5


@pytest.mark.parametrize(
    ("name", "kind", "count"), [("cifar10", "CIFAR10", 20), ("cifar100", "CIFAR100", 4)]
)
def test_cifar_is_read_in_its_own_order(
    tmp_path: Path, cifar: Cifar, name: str, kind: str, count: int
) -> None:
    made = cifar(kind)
    train = load_data(name, root=tmp_path, split="train")
    assert len(train) == count
    first = next(iter(made.values()))
    assert train.pixels is not None
    assert torch.equal(train.pixels[:4], torch.from_numpy(first).view(4, 3, 32, 32))
    assert train.labels[:4].tolist() == [0, 3, 6, 9]
    assert train.classes[4] == "some thing 4"
    assert load_data(name, root=tmp_path).source == f"{name}/test"


def test_a_pickle_with_another_checksum_is_never_opened(tmp_path: Path, cifar: Cifar) -> None:
    cifar("CIFAR10")
    file = tmp_path / "cifar-10-batches-py" / "test_batch"
    file.write_bytes(b"cos\nsystem\n(S'touch " + str(tmp_path / "run").encode() + b"'\ntR.")
    with pytest.raises(BadInput, match=r"cifar10 is not complete.* get it with: pinprick data get"):
        load_data("cifar10", root=tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "cifar10", "cifar100"])
def test_a_set_that_is_not_there_says_how_to_get_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=f"pinprick data get {name} --root"):
        load_data(name, root=tmp_path)


@pytest.mark.parametrize("keep", [0, 3, 16, 2000])
def test_half_an_idx_file_is_one_clear_line(
    tmp_path: Path, mnist: dict[str, Bytes], keep: int
) -> None:
    file = tmp_path / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(BadInput, match=r"mnist/test is not complete .*t10k-images-idx3-ubyte: it "):
        load_data("mnist", root=tmp_path)


def test_missing_labels_are_found(tmp_path: Path, mnist: dict[str, Bytes]) -> None:
    folder = tmp_path / "MNIST" / "raw"
    labels = (folder / "train-labels-idx1-ubyte").read_bytes()
    (folder / "t10k-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(BadInput, match="mnist/test has 5 images and 7 labels"):
        load_data("mnist", root=tmp_path)


def test_tensors_of_ones_own(tmp_path: Path) -> None:
    images = torch.arange(24, dtype=torch.uint8).view(2, 3, 2, 2)
    words = {"classes": json.dumps(["cat", "dog", "hen"])}
    for part, labels in (("train", [0, 1]), ("test", [2, 1])):
        tensors = {"images": images, "labels": torch.tensor(labels)}
        save_file(tensors, tmp_path / f"{part}.safetensors", words)
    data = load_data(f"tensors:{tmp_path}", split="both")
    assert data.labels.tolist() == [0, 1, 2, 1]
    assert data.classes == ("cat", "dog", "hen")
    one = load_data(f"tensors:{tmp_path / 'test.safetensors'}")
    assert torch.equal(one.images() * 255, images.float())
    with pytest.raises(BadInput, match="one file without a training split"):
        load_data(f"tensors:{tmp_path / 'test.safetensors'}", split="train")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"images": torch.zeros(1, 1, 2, 2, dtype=torch.uint8)}, "no tensor called labels"),
        ({"images": torch.zeros(1, 1, 2, 2), "labels": torch.zeros(1).long()}, "must be 8-bit"),
        ({"images": GREY, "labels": torch.zeros(2)}, "whole number for each image"),
        ({"images": GREY, "labels": torch.full((2,), torch.nan)}, "whole number for each image"),
        ({"images": GREY, "labels": torch.zeros(2) * 1j}, "whole number for each image"),
        ({"images": GREY, "labels": torch.zeros(2, 1).long()}, "whole number for each image"),
        ({"images": GREY, "labels": torch.tensor([0, -1])}, "image 1 of .* is labelled -1"),
        ({"images": GREY, "labels": torch.tensor([0])}, "has 2 images and 1 labels"),
        (
            {"images": GREY, "labels": torch.tensor([0, 2**63], dtype=torch.uint64)},
            "image 1 of .* is labelled -",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    tmp_path: Path, tensors: dict[str, torch.Tensor], message: str
) -> None:
    save_file(tensors, tmp_path / "a.safetensors")
    with pytest.raises(BadInput, match=message):
        load_data(f"tensors:{tmp_path / 'a.safetensors'}")


@pytest.mark.parametrize("text", ["5", "null", '"abc"', '{"a": 1}', "[1, 2]", "[", "[" * 9999])
def test_names_of_classes_are_a_list_of_text(tmp_path: Path, text: str) -> None:
    tensors = {"images": GREY, "labels": torch.tensor([0, 1])}
    save_file(tensors, tmp_path / "a.safetensors", {"classes": text})
    with pytest.raises(
        BadInput, match=r"classes in the metadata of .* must be a JSON list of names"
    ):
        load_data(f"tensors:{tmp_path / 'a.safetensors'}")


@pytest.mark.parametrize(
    ("images", "labels", "words", "message"),
    [
        (GREY, [0, 1], ["dog", "cat"], "train and test .* name other classes"),
        (GREY.expand(2, 3, 2, 2), [0, 1], ["cat", "dog"], r"\(1, 2, 2\) .* and \(3, 2, 2\)"),
        (GREY[:1], [0, 1], ["cat", "dog"], "train.* has 2 images and 1 labels"),
    ],
)
def test_two_files_of_tensors_must_fit_together(
    tmp_path: Path, images: torch.Tensor, labels: list[int], words: list[str], message: str
) -> None:
    for part, pixels, names in (("train", GREY, ["cat", "dog"]), ("test", images, words)):
        numbers = labels if part == "test" or len(images) == 2 else [0]
        tensors = {"images": pixels.contiguous(), "labels": torch.tensor(numbers)}
        facts = {"classes": json.dumps(names)}
        save_file(tensors, tmp_path / f"{part}.safetensors", facts)
    with pytest.raises(BadInput, match=message):
        load_data(f"tensors:{tmp_path}", split="both")


def test_half_a_safetensors_file_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"images": torch.zeros(9, 1, 8, 8, dtype=torch.uint8)}, path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BadInput, match="no safetensors file, or half of one"):
        load_data(f"tensors:{path}")
    with pytest.raises(BadInput, match="there is no such file"):
        load_data(f"tensors:{tmp_path / 'b.safetensors'}")


def test_unknown_names_and_splits_offer_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no dataset is called 'cifar'; did you mean cifar10"):
        load_data("cifar")
    with pytest.raises(UnknownName, match="no split is called 'val'; known: both, test, train"):
        load_data("mnist", root=tmp_path, split="val")


def test_the_default_root_is_settled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pinprick.data.registry import data_root

    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("PINPRICK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root() == tmp_path / "pinprick" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root() == Path.home() / ".cache" / "pinprick" / "data"
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_root() == Path.home() / "Library" / "Caches" / "pinprick" / "data"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert data_root() == tmp_path / "pinprick" / "data"
    monkeypatch.setenv("PINPRICK_DATA", "~/sets")
    assert data_root() == Path.home() / "sets"
    assert data_root(tmp_path) == tmp_path
