"""The first 64 test images of Fashion-MNIST, which come with the package: nothing to fetch.

Fashion-MNIST is copyright of Zalando SE, under the MIT licence, which lies beside the images.
"""

from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.fetch import Progress
from pinprick.data.pictures import Unreadable
from pinprick.data.sets.mnist import CLOTHES
from pinprick.data.sets.tensors import read_tensors
from pinprick.data.source import Source
from pinprick.errors import BadInput

FILE = Path(__file__).parent / "files" / "fashion_sample.safetensors"


def load(root: Path, split: str) -> Dataset:
    if split == "train":
        raise BadInput("fashion_sample has no training split; fashion_mnist has one")
    pixels, labels, _ = read_tensors(FILE)
    # numbered as in fashion_mnist/test, whose first images they are
    return Dataset.in_memory("fashion_sample", CLOTHES, pixels, labels, "fashion_sample/test")


def get(root: Path, progress: Progress | None = None) -> None:
    """Nothing: it is there already."""


def faults(root: Path) -> list[Unreadable]:
    return [] if FILE.is_file() else [Unreadable(FILE, "there is no such file")]


SOURCE = Source(
    name="fashion_sample",
    title="Fashion-MNIST, 64 of its test images",
    counts={"test": 64},
    classes=len(CLOTHES),
    shape=(1, 28, 28),
    place="",
    load=load,
    get=get,
    faults=faults,
)
