"""ImageNet, ILSVRC 2012, in torchvision's layout: ``train`` and ``val``, one folder per class.

Russakovsky et al.: ImageNet large scale visual recognition challenge. arXiv:1409.0575.

Its owners give it to people who register, so it cannot be fetched: put their archives into the
root, and ``get`` unpacks them. The validation images are the test split here, because the labels of
the real test split are not public. Classes have the names that every ImageNet network of the zoo
has.
"""

import shutil
from pathlib import Path

import torch

from pinprick.data.classes import imagenet_classes, synset_numbers
from pinprick.data.dataset import Dataset, NoSplit, split_parts
from pinprick.data.fetch import Progress
from pinprick.data.pictures import Unreadable
from pinprick.data.sets.folder import list_pictures
from pinprick.data.source import Source
from pinprick.errors import BadInput, one_line

_COUNTS = {"train": 1_281_167, "test": 50_000}
_FOLDERS = {"train": "train", "test": "val"}


def load(root: Path, split: str) -> Dataset:
    numbers = synset_numbers()
    files: list[Path] = []
    labels: list[int] = []
    for part in split_parts(split):
        folder = find_folder(root) / _FOLDERS[part]
        if not folder.is_dir():
            raise NoSplit(f"imagenet/{part} is not in {root}; {_how_to_get(root, part)}")
        found, folders = list_pictures(folder)
        _check_folders(folder, set(folders), numbers)
        files += found
        labels += [numbers[name] for name in folders]
    return Dataset(
        name="imagenet",
        classes=imagenet_classes(),
        labels=torch.tensor(labels),
        pixels=None,
        files=tuple(files),
        indices=torch.arange(len(labels)),
        source=f"imagenet/{split}",
    )


def _check_folders(folder: Path, names: set[str], synsets: dict[str, int]) -> None:
    """Raise ``BadInput`` unless the class folders are all synsets of ImageNet."""
    if odd := sorted(names - synsets.keys()):
        raise BadInput(
            f"the class folder {odd[0]!r} in {folder} is no synset of ImageNet, as n01440764 is; "
            f"folders with other names are read as folder:{folder}"
        )
    if len(names) != len(synsets):
        raise BadInput(
            f"{folder} holds {len(names)} class folders and not {len(synsets)}; "
            f"a part of ImageNet is read as folder:{folder}"
        )


def find_folder(root: Path) -> Path:
    """The folder ``imagenet`` in the root, or the root itself where it is torchvision's own."""
    from torchvision.datasets.imagenet import ARCHIVE_META

    marks = [*_FOLDERS.values(), *(name for name, _ in ARCHIVE_META.values())]
    return root if any((root / mark).exists() for mark in marks) else root / "imagenet"


def get(root: Path, progress: Progress | None = None) -> None:
    """Unpack the archives that are there, each split to a temporary folder that is renamed."""
    from torchvision.datasets import imagenet as known

    base = find_folder(root)
    archives = {part: base / known.ARCHIVE_META[_FOLDERS[part]][0] for part in _FOLDERS}
    missing = [part for part in _FOLDERS if not (base / _FOLDERS[part]).is_dir()]
    todo = [part for part in missing if archives[part].exists()]
    if len(missing) == len(_FOLDERS) and not todo:
        raise BadInput(f"imagenet cannot be fetched; {_how_to_get(root, 'test')}")
    for part in todo:
        temporary = f".{_FOLDERS[part]}.part"
        shutil.rmtree(base / temporary, ignore_errors=True)
        try:
            if part == "train":
                known.parse_train_archive(base, folder=temporary)
            else:
                if not (base / known.META_FILE).exists():
                    known.parse_devkit_archive(base)
                known.parse_val_archive(base, folder=temporary)
        except RuntimeError as error:  # a checksum, or the devkit is missing
            raise BadInput(one_line(error)) from None
        (base / temporary).replace(base / _FOLDERS[part])


def faults(root: Path) -> list[Unreadable]:
    """Splits that are there but not complete."""
    found = []
    for part, count in _COUNTS.items():
        folder = find_folder(root) / _FOLDERS[part]
        if folder.is_dir():
            files, names = list_pictures(folder)
            if len(files) != count:
                found.append(Unreadable(folder, f"it holds {len(files)} pictures and not {count}"))
            try:
                _check_folders(folder, set(names), synset_numbers())
            except BadInput as error:
                found.append(Unreadable(folder, str(error)))
    return found


def _how_to_get(root: Path, part: str) -> str:
    from torchvision.datasets.imagenet import ARCHIVE_META

    needed = [ARCHIVE_META[_FOLDERS[part]][0]] + [ARCHIVE_META["devkit"][0]] * (part == "test")
    return (
        f"put {' and '.join(needed)} from image-net.org into {find_folder(root)} and run: "
        f"pinprick data get imagenet --root {root}"
    )


SOURCE = Source(
    name="imagenet",
    title="ImageNet",
    counts=_COUNTS,
    classes=1000,
    shape=None,
    place="imagenet",
    load=load,
    get=get,
    faults=faults,
)
