"""MNIST: 70000 handwritten digits, 28 x 28 in grey, in torchvision's layout.

LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition. 1998.
"""

from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.idx import load_idx

CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def load(root: Path, split: str, *, download: bool = False) -> Dataset:
    from torchvision.datasets import MNIST

    return load_idx("mnist", MNIST, CLASSES, root, split, download=download)
