"""Where images come from; one file a source."""

from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.source import data_root


def load_data(
    name: str, *, root: str | Path | None = None, split: str = "test", download: bool = False
) -> Dataset:
    """The set called ``name``: labelled images in [0, 1] in an order that never changes.

    Args:
        name: ``mnist``, ``fashion_mnist``, ``cifar10``, ``cifar100``, ``imagenet``,
            ``fashion_sample``, ``folder:PATH``, ``csv:PATH`` or ``tensors:PATH``.
        root: The folder that sets are kept in; by default the one that the environment variable
            PINPRICK_DATA names, or one in the user's cache.
        split: ``train``, ``test``, or ``both``, where test follows train.
        download: Whether to fetch what is not there.
    """
    from pinprick.data.registry import find_source
    from pinprick.data.sets import csv_file, folder, tensors

    kind, colon, path = name.partition(":")
    own = {"folder": folder.load, "csv": csv_file.load, "tensors": tensors.load}
    if colon and kind in own:
        return own[kind](Path(path).expanduser(), split)
    source = find_source(name)
    if download:
        source.get(data_root(root), None)
    return source.load(data_root(root), split)
