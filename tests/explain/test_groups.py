"""Changed pixels fall into connected groups, however they are spread over a batch."""

import pytest
import torch
from scipy import ndimage
from torch import Tensor

from pinprick.explain.noise.groups import (
    connected_groups,
    join_groups,
    number_in_order,
    single_pixels,
)


def picture(*rows: str) -> Tensor:
    return torch.tensor([[mark == "#" for mark in row] for row in rows])


def test_pixels_that_touch_belong_together_corners_included() -> None:
    groups = connected_groups(picture("#..#", ".#..", "...#")[None], radius=0)
    assert groups.count.tolist() == [3]
    assert groups.index.tolist() == [[[0, -1, -1, 1], [-1, 0, -1, -1], [-1, -1, -1, 2]]]


def test_a_radius_bridges_the_gap_between_pixels() -> None:
    line = picture("#..#...#....#")[None]
    found = [connected_groups(line, radius=radius).count.item() for radius in (0, 1, 2)]
    assert found == [4, 3, 1]


@pytest.mark.parametrize("radius", [0, 1, 3])
def test_agrees_with_scipy_on_random_pictures(radius: int) -> None:
    generator = torch.Generator().manual_seed(radius)
    changed = torch.rand(5, 23, 17, generator=generator) < torch.tensor(
        [0.0, 0.02, 0.1, 0.4, 1.0]
    ).view(-1, 1, 1)
    groups = connected_groups(changed, radius)
    for one, index, count in zip(changed, groups.index, groups.count, strict=True):
        square = torch.ones(2 * radius + 1, 2 * radius + 1)
        grown = ndimage.binary_dilation(one, square) if radius else one.numpy()
        wanted, number = ndimage.label(grown, torch.ones(3, 3))
        assert count == number
        assert ((index >= 0) == one).all()
        pairs = {(a, b) for a, b in zip(index[one].tolist(), wanted[one].tolist(), strict=True)}
        assert len(pairs) == number  # one name for one name


def test_pixels_that_touch_at_a_corner_are_apart_without_corners() -> None:
    generator = torch.Generator().manual_seed(0)
    changed = torch.rand(4, 23, 17, generator=generator) < torch.tensor([0, 0.1, 0.5, 0.9]).view(
        -1, 1, 1
    )
    found = connected_groups(changed, 0, corners=False)
    assert found.count.tolist() == [ndimage.label(one)[1] for one in changed.numpy()]
    assert (found.count[1:] > connected_groups(changed, 0).count[1:]).any()


def test_a_long_snake_is_one_group() -> None:
    snake = torch.zeros(1, 21, 21, dtype=torch.bool)
    snake[:, ::2] = True
    snake[:, 1::4, -1] = True
    snake[:, 3::4, 0] = True
    assert connected_groups(snake, radius=0).count.tolist() == [1]


def test_single_pixels_are_numbered_in_reading_order() -> None:
    groups = single_pixels(torch.stack([picture(".#", "##"), picture("..", "..")]))
    assert groups.index.tolist() == [[[-1, 0], [1, 2]], [[-1, -1], [-1, -1]]]
    assert groups.count.tolist() == [3, 0]


def test_numbers_follow_the_first_pixel_whatever_the_names() -> None:
    name = torch.tensor([[[3, 3, 0], [1, 1, 0]]])
    changed = picture(".##", "#.#")[None]
    assert number_in_order(name, changed).index.tolist() == [[[-1, 0, 1], [2, -1, 1]]]


def test_values_add_up_over_each_group() -> None:
    groups = connected_groups(picture("##.", "..#", "#..")[None], radius=0)
    values = torch.arange(9.0).view(1, 3, 3)
    assert groups.total(values).tolist() == [[6.0, 6.0]]  # 0 + 1 + 5, and 6


def test_too_many_groups_are_joined_by_where_they_lie() -> None:
    changed = torch.zeros(2, 12, 12, dtype=torch.bool)
    for row, column in ((0, 0), (0, 2), (11, 0), (11, 2), (0, 11)):
        changed[0, row, column] = True
    changed[1, 5, 5] = changed[1, 5, 8] = True  # few enough, left alone
    groups = join_groups(single_pixels(changed), changed.double(), 3)
    assert groups.count.tolist() == [3, 2]
    corners = [groups.index[0, row, column].item() for row, column in ((0, 0), (0, 11), (11, 0))]
    assert corners == [0, 1, 2]
    assert groups.index[0, 0, 2] == groups.index[0, 0, 0]
    assert groups.index[0, 11, 2] == groups.index[0, 11, 0]


def test_joining_a_batch_is_joining_each_image() -> None:
    changed = torch.rand(4, 20, 20, generator=torch.Generator().manual_seed(0)) < 0.2
    size = torch.rand(4, 20, 20, generator=torch.Generator().manual_seed(1)) * changed
    together = join_groups(single_pixels(changed), size, 6)
    assert together.count.tolist() == [6, 6, 6, 6]
    for row in range(4):
        alone = join_groups(single_pixels(changed[row : row + 1]), size[row : row + 1], 6)
        assert torch.equal(alone.index[0], together.index[row])
