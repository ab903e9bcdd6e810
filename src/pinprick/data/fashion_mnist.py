"""Fashion-MNIST: 70000 pictures of clothes, 28 x 28 in grey, in torchvision's layout.

Xiao, Rasul, Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking machine learning
algorithms. arXiv:1708.07747.
"""

from pathlib import Path

from pinprick.data.dataset import Dataset
from pinprick.data.idx import load_idx

CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def load(root: Path, split: str, *, download: bool = False) -> Dataset:
    from torchvision.datasets import FashionMNIST

    return load_idx("fashion_mnist", FashionMNIST, CLASSES, root, split, download=download)
