"""Outputs of every layout come out as the same planes."""

import pytest
import torch
from torch import Tensor

from pinprick.feature_layer import planes


def numbered(*shape: int) -> Tensor:
    return torch.arange(torch.tensor(shape).prod().item()).float().view(shape)


@pytest.mark.parametrize("size", [(32, 32), (32, 64), (30, 50)])
def test_channels_may_stand_first_or_last(size: tuple[int, int]) -> None:
    images = torch.zeros(2, 3, *size)
    first = numbered(2, 24, size[0] // 4, size[1] // 4)
    for given in (first, first.permute(0, 2, 3, 1)):
        read = planes(given, images)
        assert read is not None
        assert torch.equal(read, first)


@pytest.mark.parametrize("extra", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("size", [(32, 32), (32, 64), (20, 28)])
def test_tokens_are_laid_out_row_by_row(extra: int, size: tuple[int, int]) -> None:
    images = torch.zeros(2, 3, *size)
    grid = numbered(2, 7, size[0] // 4, size[1] // 4)
    tokens = torch.cat([torch.full((2, extra, 7), -1.0), grid.flatten(2).transpose(1, 2)], dim=1)
    read = planes(tokens, images)
    assert read is not None
    assert torch.equal(read, grid)


@pytest.mark.parametrize(
    "shape",
    [
        (2, 10),
        (3, 4, 8, 8),
        (2, 4, 1, 1),
        (2, 1, 1, 4),
        (2, 4, 64, 64),
        (2, 34, 7),
        (2, 4, 4, 4, 4),
    ],
    ids=str,
)
def test_what_is_no_map_of_the_images_is_none(shape: tuple[int, ...]) -> None:
    assert planes(torch.zeros(shape), torch.zeros(2, 3, 32, 32)) is None


def test_numbers_of_tokens_are_no_map() -> None:
    assert planes(torch.zeros(2, 4, 8, 8, dtype=torch.long), torch.zeros(2, 3, 32, 32)) is None
