"""MNIST: 70000 handwritten digits, 28 x 28 in grey, in torchvision's layout.

LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition. 1998.
"""

from pinprick.data.idx import idx_source

CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SOURCE = idx_source("mnist", "MNIST", "MNIST", CLASSES)
