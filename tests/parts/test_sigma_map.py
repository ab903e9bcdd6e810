"""The σ-map against numbers worked out by hand, and the lines it lets pixels move along."""

import math

import pytest
import torch
from torch import Tensor

from pinprick import Goal, Problem, Streams
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.sigma_map import sigma_lines, sigma_map


def problem(images: Tensor, allowed: Tensor | None = None) -> Problem:
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    streams = Streams(0, torch.arange(len(images)))
    model = exact_linear(2, (images.shape[1], images.shape[2], images.shape[3]))
    return Problem(model, images, goal, streams, allowed=allowed)


def test_is_the_root_of_the_smaller_deviation() -> None:
    image = torch.tensor([[0.1, 0.2, 0.3], [0.0, 0.9, 0.3], [0.5, 0.5, 0.5]]).double()
    sigma = sigma_map(image.view(1, 1, 3, 3))[0, 0]
    across = math.sqrt((0.4**2 + 0.5**2 + 0.1**2) / 3)  # 0, 0.9, 0.3 about 0.4
    mean = (0.2 + 0.9 + 0.5) / 3
    down = math.sqrt(((0.2 - mean) ** 2 + (0.9 - mean) ** 2 + (0.5 - mean) ** 2) / 3)
    assert down < across
    assert sigma[1, 1].item() == pytest.approx(math.sqrt(down))
    assert sigma[2, 1].item() == 0  # its row is flat
    corner = math.sqrt(2) / 3 * 0.1  # 0.1, 0.1 and 0.2 across; 0.1, 0.1 and 0 down
    assert sigma[0, 0].item() == pytest.approx(math.sqrt(corner))


def test_grey_pixels_move_by_the_map_and_coloured_ones_along_their_colour() -> None:
    grey, colour = exact_images(2, (1, 4, 5)) / 2 + 0.25, exact_images(2, (3, 4, 5)) / 2
    low, high = sigma_lines(problem(grey), 0.1).ends()
    torch.testing.assert_close(high - grey, 0.1 * sigma_map(grey))
    torch.testing.assert_close(grey - low, 0.1 * sigma_map(grey))
    low, high = sigma_lines(problem(colour), 0.1).ends()
    torch.testing.assert_close(high, colour * (1 + 0.1 * sigma_map(colour)))
    torch.testing.assert_close(low, colour * (1 - 0.1 * sigma_map(colour)))


def test_the_ends_of_long_lines_are_where_the_first_channel_leaves_the_box() -> None:
    images = exact_images(2, (3, 4, 5))
    low, high = sigma_lines(problem(images), 1e9).ends()
    busy = (sigma_map(images) > 0).all(dim=1)
    assert busy.any()
    torch.testing.assert_close(high.amax(dim=1)[busy], torch.ones_like(high[:, 0][busy]))
    torch.testing.assert_close(low.amin(dim=1)[busy], torch.zeros_like(low[:, 0][busy]))


def test_the_nearest_point_of_a_line_is_nearer_than_all_others() -> None:
    images, points = exact_images(2, (3, 4, 5)), exact_images(2, (3, 4, 5), seed=5) * 1.5
    lines = sigma_lines(problem(images), 0.8)

    def away(adv: Tensor) -> Tensor:
        return (points - adv).square().sum(dim=1)

    least = away(lines.nearest(points))
    for share in torch.linspace(0, 1, 41).double():
        assert (least <= away(lines._at(lines.low + share * (lines.high - lines.low))) + 1e-9).all()


def test_what_may_not_change_stays_and_the_rest_still_follows_the_line() -> None:
    images = exact_images(2, (3, 4, 5))
    allowed = exact_images(2, (3, 4, 5), seed=9) > 0.5
    lines = sigma_lines(problem(images, allowed), 0.8)
    for moved in (*lines.ends(), lines.nearest(1 - images)):
        assert torch.equal(moved[~allowed], images[~allowed])
        assert (moved[allowed] != images[allowed]).any()


def test_lines_are_cut_as_problems_are() -> None:
    whole = problem(exact_images(3, (3, 4, 5)))
    rows = torch.tensor([2, 0])
    cut, alone = sigma_lines(whole, 0.8)[rows], sigma_lines(whole[rows], 0.8)
    assert torch.equal(cut.ends()[1], alone.ends()[1])
