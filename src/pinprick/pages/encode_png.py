"""8-bit values as the bytes of a PNG file."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def encode_png(pixels: NDArray[np.uint8], *, level: int) -> bytes:
    """The PNG of values (height, width, channel), in grey or colour; ``level`` is that of zlib."""
    values = pixels[:, :, 0] if pixels.shape[2] == 1 else np.ascontiguousarray(pixels)
    file = io.BytesIO()
    Image.fromarray(values).save(file, format="PNG", compress_level=level)
    return file.getvalue()
