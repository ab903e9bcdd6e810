"""Fashion-MNIST: 70000 pictures of clothes, 28 x 28 in grey, in torchvision's layout.

Xiao, Rasul, Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking machine learning
algorithms. arXiv:1708.07747.
"""

from pinprick.data.idx import idx_source

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
SOURCE = idx_source("fashion_mnist", "Fashion-MNIST", "FashionMNIST", CLASSES)
