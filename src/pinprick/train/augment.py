"""Views of the images of a batch, made on the device in one gather.

Shifts, mirrors and crops only say where each value is taken from, so they are index arithmetic on
the 8-bit pixels. On a GPU the result lies in memory with its channels last, as convolutions there
like it. Random numbers belong to an image, so a view does not depend on the rest of the batch.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.random import Streams
from pinprick.types import Images

Pixels = UInt8[Tensor, "n channel height width"]


@dataclass(frozen=True)
class Augment:
    """How far pictures are shifted, whether mirrored, and how much of them is covered.

    Attributes:
        crop: Pixels of shift at most, in each direction; the border is mirrored.
        flip: Whether pictures are mirrored.
        cutout: Side of the square that is covered; 0 for none.
        cover: What it is covered with, where pixel values run from 0 to 1.
    """

    crop: int = 0
    flip: bool = False
    cutout: int = 0
    cover: float = 0.5

    def check(self, height: int, width: int) -> None:
        """Raise ``BadInput`` unless such views can be had of pictures of this size."""
        least = min(height, width)
        if self.crop >= least or self.cutout > least:
            raise BadInput(
                f"pictures of {height} x {width} are too small for crop {self.crop} "
                f"and cutout {self.cutout}"
            )

    def views(
        self,
        pixels: Pixels,
        rows: Int[Tensor, " batch"],
        rng: Streams,
        mirrored: Bool[Tensor, " batch"],
    ) -> Images:
        """One view of each of the rows of ``pixels``, in [0, 1]; ``mirrored`` is used with flip."""
        height, width = pixels.shape[2:]
        y = torch.arange(height, device=rows.device).expand(len(rows), height)
        x = torch.arange(width, device=rows.device).expand(len(rows), width)
        if self.crop:
            shift = rng.integers(2 * self.crop + 1, 2, step=0, use="crop") - self.crop
            y, x = _reflect(y + shift[:, :1], height), _reflect(x + shift[:, 1:], width)
        if self.flip:
            x = torch.where(mirrored.unsqueeze(1), width - 1 - x, x)
        taken = pixels[rows[:, None, None], :, y[:, :, None], x[:, None, :]]
        images = taken.permute(0, 3, 1, 2).float() / 255
        if images.is_cuda:
            images = images.contiguous(memory_format=torch.channels_last)
        if self.cutout:
            images = images.masked_fill(self._hole(rng, height, width), self.cover)
        return images

    def _hole(self, rng: Streams, height: int, width: int) -> Tensor:
        """Where the square is, all of it inside the picture."""
        inside = []
        for side, use in ((height, "cutout y"), (width, "cutout x")):
            first = rng.integers(side - self.cutout + 1, 1, step=0, use=use)
            place = torch.arange(side, device=first.device)
            inside.append((place >= first) & (place < first + self.cutout))
        return (inside[0][:, :, None] & inside[1][:, None, :]).unsqueeze(1)


def _reflect(place: Tensor, side: int) -> Tensor:
    """Places beyond the border, mirrored at it."""
    return (side - 1) - ((side - 1) - place.abs()).abs()
