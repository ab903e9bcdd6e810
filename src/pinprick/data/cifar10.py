"""CIFAR-10: 60000 pictures of ten things, 32 x 32 in colour, in torchvision's layout.

Krizhevsky: Learning multiple layers of features from tiny images. 2009.
"""

from pinprick.data.cifar import cifar_source

SOURCE = cifar_source("cifar10", "CIFAR-10", "CIFAR10", "cifar-10-batches-py", 10)
