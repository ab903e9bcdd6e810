"""The results of this folder: maps of where a class is seen, and one number per element."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.parts.largest import mask_largest
from pinprick.types import Images, Labels, Mask

SMALL = 64  # most pixels per side of a small image

PixelMaps = Float[Tensor, "batch height width"]
PixelMasks = Bool[Tensor, "batch height width"]


@dataclass(frozen=True)
class Maps:
    """One map per image, as large as the image; no value is negative.

    Values are not normalised, so that maps of one class and model can be compared. ``scaled`` and
    ``shares`` are the two usual ways to normalise.

    Attributes:
        values: The maps, enlarged to the images by bilinear interpolation.
        coarse: The maps at the resolution of the layer.
        classes: The class of each map.
        layer: Name of the layer.
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
        """Maps that are zero everywhere; leave them out of averages."""
        return ~(self.coarse > 0).flatten(1).any(dim=1)

    @property
    def scaled(self) -> PixelMaps:
        """Maps divided by their largest value; an empty map stays zero."""
        return _divided(self.values, self.values.flatten(1).amax(dim=1))

    @property
    def shares(self) -> PixelMaps:
        """Maps divided by their sum over all pixels; an empty map stays zero."""
        return _divided(self.values, self.values.flatten(1).sum(dim=1))

    def top(self, share: float = 0.2) -> PixelMasks:
        """The ``share`` of the pixels with the largest values, without zeros."""
        if not 0 < share <= 1:
            raise BadInput(f"share must be above 0 and at most 1, got {share}")
        flat = self.values.flatten(1)
        count = math.ceil(share * flat.shape[1])
        each = torch.full_like(flat[:, 0], count, dtype=torch.long)
        return mask_largest(flat, each, count).view_as(self.values)


@dataclass(frozen=True)
class Attribution:
    """One signed number per element of each image.

    Attributes:
        values: The numbers.
        classes: The class of each image's numbers.
    """

    values: Images
    classes: Labels

    def __len__(self) -> int:
        return len(self.values)

    @property
    def empty(self) -> Mask:
        """Images whose numbers are all zero; leave them out of averages."""
        return ~(self.values != 0).flatten(1).any(dim=1)

    @property
    def per_pixel(self) -> PixelMaps:
        """The sum over the channels of each pixel."""
        return self.values.sum(dim=1)


def _divided(values: PixelMaps, by: Tensor) -> PixelMaps:
    return values / torch.where(by > 0, by, 1).view(-1, 1, 1)
