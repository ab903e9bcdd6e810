"""Pictures prepared for a model: resized and cropped as 8-bit pixels, then scaled to [0, 1].

So a prepared picture lies on the 8-bit grid, and a PNG of it holds exactly what the model got.
"""

from collections.abc import Callable

import torch
from PIL.Image import Image, Resampling
from torch import Tensor

from pinprick.data.pictures import as_rgb
from pinprick.model import in_unit_box
from pinprick.types import Images, Logits, Picture


def as_it_is(picture: Image) -> Picture:
    """The picture in RGB at its own size."""
    return in_unit_box(as_rgb(picture)[0])


def to_channels(channels: int) -> Callable[[Image], Picture]:
    """A function that leaves a picture at its own size, and makes it grey for one channel."""

    def prepare(picture: Image) -> Picture:
        return in_unit_box(as_rgb(picture)[0].convert("L" if channels == 1 else "RGB"))

    return prepare


def short_side_and_crop(
    short_side: int, crop: int, resample: Resampling = Resampling.BICUBIC
) -> Callable[[Image], Picture]:
    """A function that resizes the short side to ``short_side`` and crops the middle square."""

    def prepare(picture: Image) -> Picture:
        picture = as_rgb(picture)[0]
        scale = short_side / min(picture.size)
        width, height = (max(short_side, round(side * scale)) for side in picture.size)
        left, top = (width - crop) // 2, (height - crop) // 2
        resized = picture.resize((width, height), resample)
        return in_unit_box(resized.crop((left, top, left + crop, top + crop)))

    return prepare


def cover_and_crop(
    size: tuple[int, int],
    short_side: int | None = None,
    interpolation: str = "bilinear",
    channels: int = 3,
) -> Callable[[Image], Picture]:
    """A function that resizes a picture and crops ``size`` (height and width) from its middle.

    The short side becomes ``short_side``, and the long one is rounded down, as in torchvision.
    Without it, the picture becomes just large enough for the crop.
    """
    resample = Resampling[interpolation.upper()]
    height, width = size

    def prepare(picture: Image) -> Picture:
        picture = as_rgb(picture)[0].convert("L" if channels == 1 else "RGB")
        short, long = min(picture.size), max(picture.size)
        if short_side is None:
            scale = max(width / picture.width, height / picture.height)
            sides = [round(picture.width * scale), round(picture.height * scale)]
        else:
            sides = [
                short_side if side == short else int(short_side * long / short)
                for side in picture.size
            ]
        wide, high = max(sides[0], width), max(sides[1], height)
        if (wide, high) != picture.size:
            picture = picture.resize((wide, high), resample)
        left, top = round((wide - width) / 2), round((high - height) / 2)
        return in_unit_box(picture.crop((left, top, left + width, top + height)))

    return prepare


def in_batches(call: Callable[[Tensor], Tensor], images: Images, count: int) -> Logits:
    """What ``call`` gives for all images, in batches of exactly ``count``; the last is padded.

    For models that were exported for one batch size.
    """
    answers = []
    for part in images.split(count):
        filler = images.new_zeros(count - len(part), *images.shape[1:])
        answers.append(call(torch.cat([part, filler]))[: len(part)])
    return torch.cat(answers)
