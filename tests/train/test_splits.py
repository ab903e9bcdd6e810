"""Which images are trained on and which are test images, for every way to name a set."""

from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from pinprick import BadInput, PinprickError, load_model
from pinprick.data.select import load_subset
from pinprick.train.job import train_model
from pinprick.train.material import Material, read_material
from pinprick.train.plan import build_plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten pictures per class, bright at the left or at the top, in one folder with a list."""
    home = tmp_path / "pets"
    home.mkdir()
    lines = ["file,label"]
    for name, turn in (("left", 90), ("top", 180)):
        for number in range(10):
            shade = Image.linear_gradient("L").rotate(turn).resize((32 + number, 32))
            shade.convert("RGB").save(home / f"{name}{number}.png")
            lines.append(f"{name}{number}.png,{name}")
    (home / "pets.csv").write_text("\n".join(lines))
    return home


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """A folder of tensors with two splits of three classes; the test split lacks the last."""
    home = tmp_path / "both"
    home.mkdir()
    for split, count, classes in (("train", 30, 3), ("test", 10, 2)):
        images = torch.arange(count).view(-1, 1, 1, 1).expand(count, 3, 8, 8).to(torch.uint8)
        labels = torch.arange(count) % classes
        save_file({"images": images.contiguous(), "labels": labels}, home / f"{split}.safetensors")
    return home


def numbers(part: Tensor) -> list[int]:
    return part.tolist()


def test_a_list_has_a_fifth_of_its_images_held_out(folder: Path) -> None:
    name = f"csv:{folder / 'pets.csv'}"
    material = read_material(name)
    assert (len(material.train), len(material.test)) == (16, 4)
    assert not set(material.train.files) & set(material.test.files)
    assert material.train.classes == material.test.classes == ("left", "top")
    assert material.test_words == f"{name}[split=test][random=4,seed=0]"
    assert material.remark == f"4 of 20 images are held out as test images: {material.test_words}"


def test_the_held_out_images_can_be_named_to_any_other_command(folder: Path) -> None:
    material = read_material(f"csv:{folder / 'pets.csv'}[class=left]")
    again = load_subset(material.test_words)
    assert again.files == material.test.files
    assert (len(material.train), len(material.test)) == (8, 2)


@pytest.mark.parametrize(
    ("text", "train", "test", "words"),
    [
        ("", 30, 10, "[split=test]"),
        ("[:12]", 12, 10, "[split=test]"),
        ("[split=train][random=6,seed=1]", 6, 10, "[split=test]"),
        ("[class=1]", 10, 5, "[split=test][class=1]"),
        ("[class=1][:4]", 4, 5, "[split=test][class=1]"),
        ("[split=test]", 8, 2, "[split=test][random=2,seed=0]"),
        ("[split=both]", 32, 8, "[split=both][random=8,seed=0]"),
    ],
)
def test_a_part_of_a_set_is_tested_on_its_test_split(
    both: Path, text: str, train: int, test: int, words: str
) -> None:
    name = f"tensors:{both}"
    material = read_material(name + text)
    assert (len(material.train), len(material.test)) == (train, test)
    assert material.name == name
    assert material.test_words == name + words
    assert bool(material.remark) == ("random" in words)
    names = ("0", "1", "2")[: 2 if text == "[split=test]" else 3]
    assert material.train.classes == material.test.classes == names


def test_test_images_may_be_named_and_are_then_not_trained_on(folder: Path) -> None:
    name = f"csv:{folder / 'pets.csv'}"
    material = read_material(name, test=f"{name}[17:]")
    assert numbers(material.test.indices) == [17, 18, 19]
    assert numbers(material.train.indices) == list(range(17))
    assert material.remark == f"3 of 20 images are test images, and are not trained on: {name}[17:]"
    assert material.train_words == f"{name}[split=test] without {name}[split=test][17:]"


def test_files_are_the_same_whatever_list_or_folder_names_them(folder: Path) -> None:
    (folder / "some.csv").write_text("file,label\ntop0.png,top\nleft1.png,left\n")
    material = read_material(f"csv:{folder / 'pets.csv'}", test=f"csv:{folder / 'some.csv'}")
    assert [file.name for file in material.test.files] == ["top0.png", "left1.png"]
    assert len(material.train) == 18


def test_test_images_of_another_set_have_its_classes_by_name(folder: Path) -> None:
    (folder / "tops.csv").write_text("file,label\ntop0.png,top\n")
    material = read_material(f"csv:{folder / 'pets.csv'}", test=f"csv:{folder / 'tops.csv'}")
    assert numbers(material.test.labels) == [1]
    (folder / "owls.csv").write_text("file,label\ntop0.png,owl\n")
    with pytest.raises(
        BadInput, match=r"the class 'owl' of .*owls.csv is not among those of .*pets"
    ):
        read_material(f"csv:{folder / 'pets.csv'}", test=f"csv:{folder / 'owls.csv'}")


def test_a_file_with_both_splits_may_be_tested_on_others(both: Path, tmp_path: Path) -> None:
    pixels = torch.zeros(6, 3, 8, 8, dtype=torch.uint8)
    labels = torch.arange(6) % 3
    tensors = {"train_images": pixels, "train_labels": labels}
    tensors |= {"test_images": pixels[:1].clone(), "test_labels": labels[:1].clone()}
    path = tmp_path / "one.safetensors"
    save_file(tensors, path, {"classes": '["cat", "dog", "owl"]'})
    material = read_material(str(path), test=f"tensors:{both}")
    assert (len(material.train), len(material.test)) == (6, 10)
    assert material.test.classes == ("cat", "dog", "owl")  # bare numbers there


@pytest.mark.parametrize(
    ("text", "test", "message"),
    [
        ("[split=both]", "[split=test]", r"both holds images of .*/test.*leave the test out"),
        ("[split=train]", "[split=both]", "both holds images of .*/train"),
        ("[split=test][:1]", None, "a single image cannot be held out"),
        ("[split=test]", "[split=test]", "no image is left to train on"),
    ],
)
def test_images_that_would_be_both_are_refused(
    both: Path, text: str, test: str | None, message: str
) -> None:
    name = f"tensors:{both}"
    with pytest.raises(BadInput, match=message):
        read_material(name + text, test=None if test is None else name + test)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cifar11[:10]", "no dataset is called 'cifar11'"),
        ("mnist[:", "a set is written NAME/SPLIT"),
    ],
)
def test_a_set_that_is_none_is_said(name: str, message: str) -> None:
    with pytest.raises(PinprickError, match=message):
        read_material(name)


def test_a_list_can_be_trained_on_and_the_card_says_how_it_was_tested(
    folder: Path, tmp_path: Path
) -> None:
    material: Material = read_material(f"csv:{folder / 'pets.csv'}")
    options = {"epochs": 1, "batch_size": 8, "l0_images": 0, "exam_steps": 1, "strong_images": 0}
    plan = build_plan(data=material.name, net="resnet20", recipe="standard", options=options)
    card = train_model(plan, material, tmp_path / "out")
    assert card.facts["test_data"] == f"csv:{folder / 'pets.csv'}[split=test][random=4,seed=0]"
    assert card.facts["train_data"].endswith("pets.csv[split=test] without " + material.test_words)
    assert card.facts["test_images"] == 4
    assert load_model(f"file:{tmp_path / 'out'}").classes == ("left", "top")
