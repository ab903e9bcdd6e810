"""The line of Python that turns arrays of images into the tensor that attacks take."""

from typing import Any

import numpy as np

_CHANNELS = (1, 3, 4)  # of grey, colour, and colour with transparency


def conversion_line(images: Any) -> str:
    """An expression in ``images``, an array or a tensor, such as ``images.float() / 255``."""
    line = "torch.from_numpy(images)" if isinstance(images, np.ndarray) else "images"
    line += _order(tuple(images.shape))
    kind = str(images.dtype)
    if "float" not in kind:
        return f"{line}.float() / 255"
    return line if kind.endswith("float32") else f"{line}.float()"


def channels_last(shape: tuple[int, ...]) -> bool:
    """Whether this can only be (batch, height, width, channel)."""
    return len(shape) == 4 and shape[3] in _CHANNELS and min(shape[1:3]) > max(_CHANNELS)


def _order(shape: tuple[int, ...]) -> str:
    """What brings the sides into the order (batch, channel, height, width)."""
    if channels_last(shape):
        return ".permute(0, 3, 1, 2)"
    if len(shape) == 3 and shape[2] in _CHANNELS and shape[0] not in _CHANNELS:
        return ".permute(2, 0, 1)[None]"
    if len(shape) == 3:
        return "[None]" if shape[0] in _CHANNELS else "[:, None]"
    return "[None, None]" if len(shape) == 2 else ""
