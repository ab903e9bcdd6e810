"""``folder:PATH``: a folder of class folders, or one with such folders for each split.

Class folders count in the order of their names, and so do the files in them. Where PATH holds
``train`` and ``test`` (or ``val``), these are its splits; otherwise all of it is the test split.
"""

from pathlib import Path

import torch

from pinprick.data.dataset import Dataset
from pinprick.data.split import parts_of
from pinprick.errors import BadInput


def load(path: Path, split: str) -> Dataset:
    name = f"folder:{path}"
    parts, source = parts_of(split), name
    if not path.is_dir():
        raise BadInput(f"{path}: there is no such folder")
    folders = [path]
    if splits := find_splits(path):
        folders, source = [splits[part] for part in parts], f"{name}/{split}"
    elif split == "train":
        raise BadInput(
            f"{path} has no training split; put class folders into {path / 'train'} and "
            f"{path / 'test'}"
        )
    listings = [list_pictures(folder) for folder in folders]
    for folder, (classes, _, _) in zip(folders, listings, strict=True):
        if odd := set(classes) ^ set(listings[0][0]):
            raise BadInput(
                f"{folders[0]} and {folder} must hold the same classes; "
                f"{', '.join(sorted(odd)[:5])} is in one of them alone"
            )
    labels = torch.tensor([label for _, _, labels in listings for label in labels])
    return Dataset(
        name=name,
        classes=listings[0][0],
        labels=labels,
        pixels=None,
        files=tuple(file for _, files, _ in listings for file in files),
        indices=torch.arange(len(labels)),
        source=source,
    )


def find_splits(path: Path) -> dict[str, Path]:
    """The folders of both splits; nothing unless both are there."""
    test = next((path / name for name in ("test", "val") if (path / name).is_dir()), None)
    train = path / "train"
    return {"train": train, "test": test} if test is not None and train.is_dir() else {}


def list_pictures(folder: Path) -> tuple[tuple[str, ...], list[Path], list[int]]:
    """Names of the class folders, the pictures in them, and the class of each."""
    from torchvision.datasets.folder import IMG_EXTENSIONS, make_dataset

    folders = [each.name for each in folder.iterdir() if each.is_dir()]
    classes = sorted(name for name in folders if not name.startswith("."))
    if not classes:
        raise BadInput(f"{folder} holds no class folders, one for each class with pictures in it")
    numbers = {name: number for number, name in enumerate(classes)}
    samples = make_dataset(folder, numbers, IMG_EXTENSIONS, allow_empty=True)
    if empty := sorted(set(numbers.values()) - {label for _, label in samples}):
        raise BadInput(f"there is no picture in {folder / classes[empty[0]]}")
    return tuple(classes), [Path(file) for file, _ in samples], [label for _, label in samples]
