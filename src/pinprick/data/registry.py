"""All sets by name, and how they are loaded. To add one: write its file, then add its line here."""

import os
import sys
from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.sets import cifar, csv_file, folder, imagenet, mnist, tensors
from pinprick.data.source import Source
from pinprick.errors import UnknownName

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        mnist.MNIST,
        mnist.FASHION_MNIST,
        mnist.FASHION_SAMPLE,
        cifar.CIFAR10,
        cifar.CIFAR100,
        imagenet.SOURCE,
    )
}
FORMS = ("folder:PATH", "csv:PATH", "tensors:PATH")
_LOAD_PATH = {"folder": folder.load, "csv": csv_file.load, "tensors": tensors.load}


def load_data(
    name: str, *, root: str | Path | None = None, split: str = "test", download: bool = False
) -> Dataset:
    """The dataset ``name``: labelled images in [0, 1], always in the same order.

    Args:
        name: ``mnist``, ``fashion_mnist``, ``cifar10``, ``cifar100``, ``imagenet``,
            ``fashion_sample``, ``folder:PATH``, ``csv:PATH`` or ``tensors:PATH``.
        root: The folder that sets are kept in; by default the one that the environment variable
            PINPRICK_DATA names, or one in the user's cache.
        split: ``train``, ``test``, or ``both``, where test follows train.
        download: Whether to fetch what is missing.
    """
    form, colon, path = name.partition(":")
    if colon and form in _LOAD_PATH:
        return _LOAD_PATH[form](Path(path).expanduser(), split)
    source = find_source(name)
    if download:
        source.get(data_root(root), None)
    return source.load(data_root(root), split)


def find_source(name: str) -> Source:
    if name not in SOURCES:
        raise UnknownName("dataset", name, [*SOURCES, *FORMS])
    return SOURCES[name]


def data_root(given: str | Path | None = None) -> Path:
    """The folder given, the one that PINPRICK_DATA names, or one in the user's cache."""
    if given is not None:
        return Path(given).expanduser()
    if named := os.environ.get("PINPRICK_DATA"):
        return Path(named).expanduser()
    return _user_cache() / "pinprick" / "data"


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
