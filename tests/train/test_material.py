"""Data for a training: one file with both splits, what does not fit together, and statistics."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from pinprick import BadInput, UnknownName
from pinprick.data.dataset import Dataset
from pinprick.train.material import Material, fingerprint, read_material

CLASSES = json.dumps(["cat", "dog", "owl"])


def tensors(channels: int = 3, side: int = 32) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)

    def pictures(count: int) -> Tensor:
        shape = (count, channels, side, side)
        return torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)

    return {
        "train_images": pictures(9),
        "train_labels": torch.arange(9) % 3,
        "test_images": pictures(6),
        "test_labels": torch.arange(6) % 3,
    }


def test_one_file_may_hold_both_splits(tmp_path: Path) -> None:
    held = tensors()
    save_file(held, tmp_path / "pets.safetensors", {"name": "pets", "classes": CLASSES})
    material = read_material(str(tmp_path / "pets.safetensors"))
    assert (material.name, material.train.classes) == ("pets", ("cat", "dog", "owl"))
    assert material.train.pixels is not None
    assert torch.equal(material.train.pixels, held["train_images"])
    assert torch.equal(material.test.labels, held["test_labels"])
    assert (material.train.source, material.test.source) == ("pets/train", "pets/test")


def test_without_metadata_the_file_gives_the_name(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "pets.safetensors")
    material = read_material(str(tmp_path / "pets.safetensors"))
    assert (material.name, material.train.classes) == ("pets", ("0", "1", "2"))


def save_parts(folder: Path, train: list[int], test: list[int]) -> str:
    for part, labels in (("train", train), ("test", test)):
        images = torch.zeros(len(labels), 3, 8, 8, dtype=torch.uint8)
        held = {"images": images, "labels": torch.tensor(labels)}
        save_file(held, folder / f"{part}.safetensors")
    return f"tensors:{folder}"


def test_labels_that_are_numbers_give_classes_up_to_the_highest(tmp_path: Path) -> None:
    material = read_material(save_parts(tmp_path, [0, 1, 3, 3], [0, 2]))
    assert material.train.classes == material.test.classes == ("0", "1", "2", "3")
    assert material.test.labels.tolist() == [0, 2]


def test_a_number_above_all_training_images_is_no_class(tmp_path: Path) -> None:
    message = "label 999999999 .* needs 1000000000 classes, but there are 2 training images"
    with pytest.raises(BadInput, match=message):
        read_material(save_parts(tmp_path, [0, 1], [999_999_999]))
    held = {**tensors(), "train_labels": torch.arange(9) + 999_999_991}
    save_file(held, tmp_path / "pets.safetensors")
    with pytest.raises(BadInput, match=r"label 999999999 .* but there are 9 training images"):
        read_material(str(tmp_path / "pets.safetensors"))


def test_classes_may_stand_between_commas(tmp_path: Path) -> None:
    save_file(tensors(), tmp_path / "pets.safetensors", {"classes": "cat, dog, owl"})
    assert read_material(str(tmp_path / "pets.safetensors")).test.classes == ("cat", "dog", "owl")


@pytest.mark.parametrize(
    ("change", "metadata", "message"),
    [
        ({"test_labels": None}, {}, "lacks the tensors test_labels"),
        ({"train_images": torch.rand(9, 3, 32, 32)}, {}, "train_images of .* must be 8-bit"),
        ({"test_images": torch.zeros(6, 32, 32, dtype=torch.uint8)}, {}, "must be 8-bit and of"),
        ({"test_images": torch.zeros(6, 3, 8, 8, dtype=torch.uint8)}, {}, r"\(3, 32, 32\) in"),
        ({"train_labels": torch.rand(9)}, {}, "train_labels of .* one whole number"),
        ({"train_labels": torch.full((9,), torch.nan)}, {}, "train_labels of .* one whole number"),
        ({"train_labels": torch.arange(8)}, {}, "has 9 images and 8 labels"),
        ({"train_labels": torch.arange(0)}, {}, "has 9 images and 0 labels"),
        ({"train_labels": torch.arange(9) - 1}, {}, "image 0 of .* is labelled -1"),
        ({"train_labels": torch.arange(9)}, {"classes": CLASSES}, "labelled 3, but there are 3"),
        ({}, {"classes": "[" * 100_000}, "list of classes .* is nested too deeply"),
        ({}, {"classes": '["cat"'}, "list of classes in the metadata of .* is not JSON"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    tmp_path: Path, change: dict[str, Tensor | None], metadata: dict[str, str], message: str
) -> None:
    held = {key: value for key, value in {**tensors(), **change}.items() if value is not None}
    save_file(held, tmp_path / "pets.safetensors", metadata)
    with pytest.raises(BadInput, match=message):
        read_material(str(tmp_path / "pets.safetensors"))


def test_half_a_file_and_no_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pets.safetensors"
    with pytest.raises(BadInput, match=r"there is no file .* to train on"):
        read_material(str(path))
    save_file(tensors(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadInput, match="is no safetensors file, or half of one"):
        read_material(str(path))


def test_an_unknown_set_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no dataset is called 'cifar11'; did you mean cifar10"):
        read_material("cifar11")


def test_the_card_follows_from_the_images(digits: Material) -> None:
    card = digits.card("mnist_cnn")
    assert (card.size, card.channels, len(card.classes)) == ((28, 28), 1, 10)
    assert digits.train.pixels is not None
    values = digits.train.pixels.double() / 255
    assert card.mean == pytest.approx((values.mean().item(),), abs=1e-4)
    assert card.std == pytest.approx((values.std().item(),), abs=1e-4)


def test_a_network_for_other_pictures_is_refused(digits: Material, tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match="resnet18 takes pictures with 3 channels; digits has 1 x 28"
    ):
        digits.card("resnet18")
    save_file(tensors(channels=1), tmp_path / "large.safetensors")
    with pytest.raises(
        BadInput, match="mnist_cnn takes pictures of 28 x 28; large has 1 x 32 x 32"
    ):
        read_material(str(tmp_path / "large.safetensors")).card("mnist_cnn")


def test_other_images_have_another_fingerprint(digits: Material) -> None:
    swapped = digits.train[torch.arange(1500).flip(0)]
    prints = {fingerprint(part) for part in (digits.train, digits.train[:1499], swapped)}
    assert len(prints) == 3


def test_picture_files_of_another_size_have_another_fingerprint(tmp_path: Path) -> None:
    files = tuple(tmp_path / f"{number}.png" for number in range(2))
    labels = torch.arange(2)
    data = Dataset("pets", ("cat", "dog"), labels, None, files, labels, "pets/train")
    prints = [fingerprint(data)]  # the files are not there yet
    for size in (5, 5, 6):
        for file in files:
            file.write_bytes(b"x" * size)
        prints.append(fingerprint(data))
    assert prints[1] == prints[2]
    assert len(set(prints)) == 3
