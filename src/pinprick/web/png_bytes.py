"""Images as the bytes of PNG files, for the browser."""

from torch import Tensor

from pinprick.pages.encode_png import encode_png

_SMALL, _FAST = 6, 0  # levels of zlib: for a file, and for a browser on this machine


def to_bytes(values: Tensor) -> Tensor:
    """Values in [0, 1] as 8-bit values of the same shape, on the CPU."""
    return (values.detach() * 255).round().byte().cpu()


def png_bytes(pixels: Tensor, *, small: bool = False) -> bytes:
    """The PNG of 8-bit values (channel, height, width), in grey or colour."""
    return encode_png(pixels.permute(1, 2, 0).numpy(), level=_SMALL if small else _FAST)
