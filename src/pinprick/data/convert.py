"""Any picture as 8-bit RGB: turned upright, on white where it is transparent, in full range."""

import numpy as np
from PIL import Image, ImageOps

from pinprick.errors import BadInput

_WHITE = (255, 255, 255, 255)
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # whole numbers of more than 8 bits


def as_rgb(picture: Image.Image) -> tuple[Image.Image, str]:
    """The picture in 8-bit RGB, and a remark where something had to be decided; empty otherwise."""
    picture = ImageOps.exif_transpose(picture)
    if picture.mode in _DEEP:
        return _from_16bit(picture).convert("RGB"), ""
    if picture.mode == "F":
        return _from_float(picture).convert("RGB"), ""
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        if layer.getchannel("A").getextrema() != (255, 255):
            white = Image.new("RGBA", layer.size, _WHITE)
            return Image.alpha_composite(white, layer).convert("RGB"), "transparent, put on white"
        return layer.convert("RGB"), ""
    try:
        return picture.convert("RGB"), ""
    except ValueError:
        raise BadInput(f"pictures of mode {picture.mode} cannot be made RGB") from None


def _from_16bit(picture: Image.Image) -> Image.Image:
    """0 to 65535 becomes 0 to 255, rounded; simply converting would cut off instead."""
    values = np.asarray(picture).astype(np.float64)
    low, high = values.min(), values.max()
    if low < 0 or high > 65535:
        raise BadInput(f"a 16-bit picture runs from 0 to 65535, this one from {low:g} to {high:g}")
    return Image.fromarray((values / 257).round().astype(np.uint8))


def _from_float(picture: Image.Image) -> Image.Image:
    values = np.asarray(picture).astype(np.float64)
    low, high = values.min(), values.max()
    if not (low >= 0 and high <= 1):  # NaN is refused here too
        raise BadInput(
            f"a floating-point picture must lie in [0, 1], this one runs from {low:g} to {high:g}"
        )
    return Image.fromarray((values * 255).round().astype(np.uint8))
