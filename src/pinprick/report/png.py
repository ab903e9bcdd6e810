"""Images as PNG files and back, exactly for 8-bit values; figures as PNG files."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image

from pinprick.errors import BadInput
from pinprick.files import atomic_write
from pinprick.types import Picture


def save_png(picture: Picture, path: str | Path) -> None:
    """Write an image in [0, 1], rounded to 8-bit values, in grey or colour."""
    pixels = (picture.detach().cpu() * 255).round().byte().permute(1, 2, 0).numpy()
    if pixels.shape[2] not in (1, 3):
        raise BadInput(f"a PNG holds 1 or 3 channels, this image has {pixels.shape[2]}")
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    with atomic_write(Path(path)) as temporary:
        image.save(temporary, format="PNG")


def read_png(path: str | Path) -> Picture:
    """The image that ``save_png`` wrote, in [0, 1]."""
    with Image.open(path) as picture:
        pixels = torch.from_numpy(np.array(picture))
    pixels = pixels.unsqueeze(2) if pixels.ndim == 2 else pixels
    return pixels.permute(2, 0, 1).float() / 255


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure, enlarged if its text needs more room."""
    with atomic_write(Path(path)) as temporary:
        figure.savefig(temporary, format="png", bbox_inches="tight", pad_inches=0.1)
