"""Which blocks of an image may change: those that the network's last feature map weighs most.

    w_c = mean over the map of  d(sum of all logits) / dA_c
    S   = sum over c of  w_c * A_c,  resized to the image
    B   = 1 in the floor(keep * blocks) blocks with the largest norm of S, 0 elsewhere

``A`` is the feature map. The norm counts strongly negative regions, too. Only whole blocks are
ranked; pixels beyond them belong to none. With ``keep`` 1 nothing is masked.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from pinprick.parts.largest import mask_largest

Planes = Float[Tensor, "batch planes rows columns"]
BlockMask = Bool[Tensor, "batch 1 height width"]


def block_mask(
    features: Planes, gradient: Planes, size: tuple[int, int], block: int, keep: float
) -> BlockMask:
    """Where the blocks of the largest norm are.

    Args:
        features: The feature map.
        gradient: The gradient of the sum of all logits there.
        size: Height and width of the images.
        block: Side of a block.
        keep: Share of the blocks that may change.
    """
    weights = gradient.float().mean(dim=(2, 3), keepdim=True)
    relevance = (weights * features.float()).sum(dim=1, keepdim=True).nan_to_num(0.0, 0.0, 0.0)
    relevance = F.interpolate(relevance, size, mode="bilinear", antialias=True)
    energy = F.avg_pool2d(relevance.square(), block)  # ranks as the norm does
    kept = mask_blocks(energy, keep)
    mask = kept.repeat_interleave(block, dim=2).repeat_interleave(block, dim=3)
    return F.pad(mask, (0, size[1] - mask.shape[3], 0, size[0] - mask.shape[2]))


def mask_blocks(
    energy: Float[Tensor, "batch 1 rows columns"], keep: float
) -> Bool[Tensor, "batch 1 rows columns"]:
    """The share ``keep`` of the blocks that have the largest energy; of equal ones the first."""
    flat = energy.flatten(1)
    count = blocks_kept(flat.shape[1], keep)
    each = torch.full_like(flat[:, 0], count, dtype=torch.long)
    return mask_largest(flat, each, count, above=-1.0).view_as(energy)


def blocks_kept(blocks: int, keep: float) -> int:
    """How many blocks a share of them is, rounded down."""
    return max(1, int(blocks * keep + 1e-9))
