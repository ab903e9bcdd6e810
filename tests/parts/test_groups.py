"""The shrinkage of groups against a loop over them and against what it minimises."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick.parts.units import shrink_groups


def group_by_group(change: Tensor, by: float, side: int) -> Tensor:
    """The shrinkage with a loop over the groups."""
    shrunk = torch.zeros_like(change)
    for top in range(0, change.shape[2], side):
        for left in range(0, change.shape[3], side):
            part = change[:, :, top : top + side, left : left + side]
            norm = part.square().sum().sqrt().item()
            if norm > by:
                shrunk[:, :, top : top + side, left : left + side] = part * (1 - by / norm)
    return shrunk


@pytest.mark.parametrize("side", [1, 2, 3, 9])
def test_shrinks_the_norm_of_every_group_or_leaves_nothing(side: int) -> None:
    change = torch.randn(3, 2, 6, 5, generator=torch.Generator().manual_seed(0)).double()
    change[1, :, :2, :2] = 0
    for by in (0.0, 1.0, 2.5, 100.0):
        shrunk = shrink_groups(change, by, side)
        looped = torch.cat([group_by_group(image[None], by, side) for image in change])
        torch.testing.assert_close(shrunk, looped)


def test_the_shrinkage_is_the_proximal_step_of_the_groups() -> None:
    change = torch.randn(1, 2, 4, 4, generator=torch.Generator().manual_seed(1)).double()

    def objective(point: Tensor) -> float:
        blocks = F.unfold(point, kernel_size=2, stride=2)
        return float(1.5 * blocks.norm(dim=1).sum() + (point - change).square().sum() / 2)

    best = shrink_groups(change, 1.5, 2)
    for seed in range(50):
        away = torch.randn(change.shape, generator=torch.Generator().manual_seed(seed)).double()
        for length in (1e-3, 0.1, 1.0):
            assert objective(best) <= objective(best + length * away)
