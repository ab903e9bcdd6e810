"""Folders of class folders are read in the order of their names."""

from pathlib import Path

import pytest
from PIL import Image

from pinprick import BadInput, Classifier
from pinprick.data import load_data
from pinprick.zoo.prepare import as_it_is


def fill(folder: Path, *names: str) -> None:
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (i, 0, 0)).save(folder / name)


def test_classes_and_files_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    fill(tmp_path, "dog/2.png", "cat/b.png", "cat/a.JPG", "dog/10.png", "cat/deep/c.bmp")
    (tmp_path / "cat" / "notes.txt").write_text("not a picture by its name")
    (tmp_path / ".git").mkdir()
    data = load_data(f"folder:{tmp_path}")
    assert data.classes == ("cat", "dog")
    names = [file.name for file in data.files]
    assert names == ["a.JPG", "b.png", "c.bmp", "10.png", "2.png"]
    assert data.labels.tolist() == [0, 0, 0, 1, 1]
    assert data.source == data.name == f"folder:{tmp_path}"
    model = Classifier(lambda images: images, prepare=as_it_is)
    assert data.images(model).shape == (5, 3, 4, 4)


def test_folders_named_by_numbers_are_those_classes(tmp_path: Path) -> None:
    fill(tmp_path, "10/a.png", "2/b.png", "007/c.png", "2/d.png")
    data = load_data(f"folder:{tmp_path}")
    assert data.labels.tolist() == [2, 2, 7, 10]
    assert [file.name for file in data.files] == ["b.png", "d.png", "c.png", "a.png"]
    assert data.classes == ()


def test_splits_by_number_need_not_hold_the_same_classes(tmp_path: Path) -> None:
    fill(tmp_path, "train/0/a.png", "train/1/b.png", "test/01/c.png")
    assert load_data(f"folder:{tmp_path}", split="both").labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("1/a.png", "01/b.png"), "two folders for class 1: 01 and 1"),
        (("-1/a.png", "1/b.png"), "'-1' is no class number"),
        (("1.0/a.png", "2.0/b.png"), r"'1\.0' is no class number"),
        ((f"{'9' * 40}/a.png",), "'999.*' is no class number"),
    ],
)
def test_numbers_that_are_no_classes_are_refused(
    tmp_path: Path, names: tuple[str, ...], message: str
) -> None:
    fill(tmp_path, *names)
    with pytest.raises(BadInput, match=message):
        load_data(f"folder:{tmp_path}")


@pytest.mark.parametrize("name", ["test", "val"])
def test_splits_are_folders_of_their_names(tmp_path: Path, name: str) -> None:
    fill(tmp_path, "train/cat/a.png", "train/dog/b.png", f"{name}/cat/c.png", f"{name}/dog/d.png")
    files = {
        split: [file.name for file in load_data(f"folder:{tmp_path}", split=split).files]
        for split in ("train", "test", "both")
    }
    assert files["train"] == ["a.png", "b.png"]
    assert files["test"] == ["c.png", "d.png"]
    assert files["both"] == [*files["train"], *files["test"]]
    assert load_data(f"folder:{tmp_path}").source == f"folder:{tmp_path}/test"


def test_splits_must_hold_the_same_classes(tmp_path: Path) -> None:
    fill(tmp_path, "train/cat/a.png", "train/dog/b.png", "test/cat/c.png")
    with pytest.raises(BadInput, match="must hold the same classes; dog is in only one of them"):
        load_data(f"folder:{tmp_path}", split="both")


@pytest.mark.parametrize(
    ("names", "split", "message"),
    [
        ((), "test", "holds no class folders"),
        (("cat/a.png",), "train", "has no training split; put class folders into"),
    ],
)
def test_what_is_missing_is_said(
    tmp_path: Path, names: tuple[str, ...], split: str, message: str
) -> None:
    fill(tmp_path, *names)
    with pytest.raises(BadInput, match=message):
        load_data(f"folder:{tmp_path}", split=split)


def test_a_class_without_pictures_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "cat/a.png")
    (tmp_path / "dog").mkdir()
    with pytest.raises(BadInput, match=r"there is no picture in .*dog"):
        load_data(f"folder:{tmp_path}")
    with pytest.raises(BadInput, match=r"gone: there is no such folder"):
        load_data(f"folder:{tmp_path / 'gone'}")


def test_a_broken_picture_is_named_when_it_is_read(tmp_path: Path) -> None:
    fill(tmp_path, "cat/a.png", "cat/b.png")
    whole = (tmp_path / "cat" / "b.png").read_bytes()
    (tmp_path / "cat" / "b.png").write_bytes(whole[:50])
    model = Classifier(lambda images: images, prepare=as_it_is)
    with pytest.raises(BadInput, match=r"cat/b\.png: the picture is broken"):
        load_data(f"folder:{tmp_path}").images(model)
