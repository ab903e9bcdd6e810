"""``folder:PATH``: a folder with one folder per class, or with such folders per split.

Classes are numbered in the order of the folders' names, and images in the order of their files. If
all folders are named by numbers, these are the class numbers. Where PATH holds ``train`` and
``test`` (or ``val``), these are its splits; otherwise all of it is the test split.
"""

from operator import itemgetter
from pathlib import Path

import torch

from pinprick.data.classes import is_number, whole_number
from pinprick.data.dataset import Dataset, NoSplit, split_parts
from pinprick.errors import BadInput


def load(path: Path, split: str) -> Dataset:
    name = f"folder:{path}"
    parts, source = split_parts(split), name
    if not path.is_dir():
        raise BadInput(f"{path}: there is no such folder")
    folders = [path]
    if splits := find_splits(path):
        folders, source = [splits[part] for part in parts], f"{name}/{split}"
    elif split == "train":
        raise NoSplit(
            f"{path} has no training split; put class folders into {path / 'train'} and "
            f"{path / 'test'}"
        )
    parts_found = [list_pictures(folder) for folder in folders]
    names = [name for _, theirs in parts_found for name in theirs]
    classes: tuple[str, ...] = ()
    if all(whole_number(name) is not None for name in set(names)):
        labels = torch.tensor([int(name) for name in names])
    else:
        classes = tuple(dict.fromkeys(parts_found[0][1]))
        for folder, (_, theirs) in zip(folders, parts_found, strict=True):
            if odd := set(theirs) ^ set(classes):
                raise BadInput(
                    f"{folders[0]} and {folder} must hold the same classes; "
                    f"{', '.join(sorted(odd)[:5])} is in only one of them"
                )
        numbers = {name: number for number, name in enumerate(classes)}
        labels = torch.tensor([numbers[name] for name in names])
    return Dataset(
        name=name,
        classes=classes,
        labels=labels,
        pixels=None,
        files=tuple(file for files, _ in parts_found for file in files),
        indices=torch.arange(len(labels)),
        source=source,
    )


def find_splits(path: Path) -> dict[str, Path]:
    """The folders of both splits; empty unless both exist."""
    test = next((path / name for name in ("test", "val") if (path / name).is_dir()), None)
    train = path / "train"
    return {"train": train, "test": test} if test is not None and train.is_dir() else {}


def list_pictures(folder: Path) -> tuple[list[Path], list[str]]:
    """The pictures in the class folders of ``folder``, and which class folder each is in."""
    from torchvision.datasets.folder import IMG_EXTENSIONS, make_dataset

    folders = [each.name for each in folder.iterdir() if each.is_dir()]
    names = _in_order([name for name in folders if not name.startswith(".")], folder)
    if not names:
        raise BadInput(
            f"{folder} holds no class folders; it needs one per class, with pictures in it"
        )
    numbers = {name: number for number, name in enumerate(names)}
    samples = make_dataset(folder, numbers, IMG_EXTENSIONS, allow_empty=True)
    if empty := sorted(set(numbers.values()) - {number for _, number in samples}):
        raise BadInput(f"there is no picture in {folder / names[empty[0]]}")
    samples.sort(key=itemgetter(1))  # torchvision sorts folders as text
    return [Path(file) for file, _ in samples], [names[number] for _, number in samples]


def _in_order(names: list[str], folder: Path) -> list[str]:
    """Class folders sorted by name, or by number if all of them are numbers."""
    if not all(map(is_number, names)):
        return sorted(names)
    found: dict[int, str] = {}
    for name in sorted(names):
        number = whole_number(name)
        if number is None:
            raise BadInput(
                f"{folder / name}: {name!r} is no class number; they are whole and count from 0"
            )
        if number in found:
            raise BadInput(
                f"{folder} holds two folders for class {number}: {found[number]} and {name}"
            )
        found[number] = name
    return [found[number] for number in sorted(found)]
