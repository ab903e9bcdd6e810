"""Where images come from; one file a source."""

from pathlib import Path

from pinprick.data import cifar10, cifar100, fashion_mnist, mnist, tensors
from pinprick.data.dataset import Dataset
from pinprick.data.root import data_root
from pinprick.errors import UnknownName

SETS = {
    "mnist": mnist.load,
    "fashion_mnist": fashion_mnist.load,
    "cifar10": cifar10.load,
    "cifar100": cifar100.load,
}
_FORMS = ("tensors:PATH",)


def load_data(
    name: str, *, root: str | Path | None = None, split: str = "test", download: bool = False
) -> Dataset:
    """The set called ``name``: labelled images in [0, 1] in an order that never changes.

    Args:
        name: ``mnist``, ``fashion_mnist``, ``cifar10``, ``cifar100``, or ``tensors:PATH``.
        root: The folder that sets are kept in; by default the one that the environment variable
            PINPRICK_DATA names, or one in the user's cache.
        split: ``train``, ``test``, or ``both``, where test follows train.
        download: Whether to fetch what is not there.
    """
    kind, colon, path = name.partition(":")
    if name in SETS:
        return SETS[name](data_root(root), split, download=download)
    if kind == "tensors" and colon:
        return tensors.load(Path(path).expanduser(), split)
    raise UnknownName("dataset", name, [*SETS, *_FORMS])
