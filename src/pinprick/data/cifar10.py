"""CIFAR-10: 60000 pictures of ten things, 32 x 32 in colour, in torchvision's layout.

Krizhevsky: Learning multiple layers of features from tiny images. 2009.
"""

from pathlib import Path

from pinprick.data.cifar import load_cifar
from pinprick.data.dataset import Dataset


def load(root: Path, split: str, *, download: bool = False) -> Dataset:
    from torchvision.datasets import CIFAR10

    return load_cifar("cifar10", CIFAR10, root, split, download=download)
