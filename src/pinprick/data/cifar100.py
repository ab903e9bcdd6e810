"""CIFAR-100: 60000 pictures of a hundred things, 32 x 32 in colour, in torchvision's layout.

Krizhevsky: Learning multiple layers of features from tiny images. 2009.
"""

from pinprick.data.cifar import cifar_source

SOURCE = cifar_source("cifar100", "CIFAR-100", "CIFAR100", "cifar-100-python", 100)
