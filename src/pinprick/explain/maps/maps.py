"""What an explanation gives: maps of where the evidence is, and what each value adds to it."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.parts.largest import open_largest
from pinprick.types import Images, Labels, Mask

SMALL = 64  # pixels per side up to which an image is small

PixelMaps = Float[Tensor, "batch height width"]
PixelMasks = Bool[Tensor, "batch height width"]


@dataclass(frozen=True)
class Maps:
    """One map for each image, as large as the image; no value is below zero.

    Values are as the method gives them, so that those of one class and model can be compared;
    ``scaled`` and ``shares`` are the two usual ways to normalise.

    Attributes:
        values: The maps, brought to the size of the images by bilinear interpolation.
        coarse: The same as the layer saw them.
        classes: The class that each map is for.
        layer: Name of the layer they were taken from.
        method: "Grad-CAM" or "LayerCAM".
    """

    values: PixelMaps
    coarse: Float[Tensor, "batch rows columns"]
    classes: Labels
    layer: str
    method: str

    def __len__(self) -> int:
        return len(self.values)

    @property
    def empty(self) -> Mask:
        """Maps that are zero everywhere and say nothing; to be kept out of averages."""
        return ~(self.coarse > 0).flatten(1).any(dim=1)

    @property
    def scaled(self) -> PixelMaps:
        """In [0, 1], the largest value of each map at 1; an empty map stays zero."""
        return _divided(self.values, self.values.flatten(1).amax(dim=1))

    @property
    def shares(self) -> PixelMaps:
        """Each map adding up to 1 over its pixels; an empty map stays zero."""
        return _divided(self.values, self.values.flatten(1).sum(dim=1))

    def top(self, share: float = 0.2) -> PixelMasks:
        """The pixels with the largest values, as many as ``share`` of the image, none at zero."""
        if not 0 < share <= 1:
            raise BadInput(f"share must be above 0 and at most 1, got {share}")
        flat = self.values.flatten(1)
        count = math.ceil(share * flat.shape[1])
        each = torch.full_like(flat[:, 0], count, dtype=torch.long)
        return open_largest(flat, each, count).view_as(self.values)


@dataclass(frozen=True)
class Attribution:
    """A signed number for each element (channel value) of each image.

    Attributes:
        values: The numbers.
        classes: The class that each image's are for.
    """

    values: Images
    classes: Labels

    def __len__(self) -> int:
        return len(self.values)

    @property
    def empty(self) -> Mask:
        """Images whose numbers are all zero, which say nothing; to be kept out of averages."""
        return ~(self.values != 0).flatten(1).any(dim=1)

    @property
    def per_pixel(self) -> PixelMaps:
        """The sum over the channels of each pixel."""
        return self.values.sum(dim=1)


def _divided(values: PixelMaps, by: Tensor) -> PixelMaps:
    return values / torch.where(by > 0, by, 1).view(-1, 1, 1)
