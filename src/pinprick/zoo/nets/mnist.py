"""Two small networks for 28x28 pictures in grey.

``mnist_cnn`` is that of Wong, Rice, Kolter: Fast is better than free. ICLR 2020.
``mnist_cnn_large`` is that of Madry et al.: Towards deep learning models resistant to adversarial
attacks. ICLR 2018.

Differs from the papers: weights start as torch draws them.
"""

from torch import nn


def mnist_cnn(classes: int) -> nn.Sequential:
    """Two strided convolutions of 16 and 32 channels, 100 hidden units."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 100),
        nn.ReLU(),
        nn.Linear(100, classes),
    )


def mnist_cnn_large(classes: int) -> nn.Sequential:
    """Two 5x5 convolutions of 32 and 64 channels with pooling, 1024 hidden units."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 1024),
        nn.ReLU(),
        nn.Linear(1024, classes),
    )
