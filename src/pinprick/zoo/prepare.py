"""Pictures made ready for a model: resized and cropped as 8-bit pixels, and only then in [0, 1].

So a prepared picture lies on the 8-bit grid, and a PNG of it holds exactly what the model saw.
"""

from collections.abc import Callable

import numpy as np
import torch
from PIL.Image import Image, Resampling

from pinprick.data.convert import as_rgb
from pinprick.types import Picture


def as_it_is(picture: Image) -> Picture:
    """The picture in RGB at its own size."""
    return in_unit_box(as_rgb(picture)[0])


def short_side_and_crop(
    short_side: int, crop: int, resample: Resampling = Resampling.BICUBIC
) -> Callable[[Image], Picture]:
    """What brings the short side to ``short_side`` and cuts a square ``crop`` from the middle."""

    def prepare(picture: Image) -> Picture:
        picture = as_rgb(picture)[0]
        scale = short_side / min(picture.size)
        width, height = (max(short_side, round(side * scale)) for side in picture.size)
        left, top = (width - crop) // 2, (height - crop) // 2
        resized = picture.resize((width, height), resample)
        return in_unit_box(resized.crop((left, top, left + crop, top + crop)))

    return prepare


def in_unit_box(picture: Image) -> Picture:
    """8-bit pixels as float32 numbers in [0, 1], channels first."""
    pixels = torch.from_numpy(np.array(picture, dtype=np.uint8))
    return pixels.view(picture.height, picture.width, -1).permute(2, 0, 1).float() / 255
