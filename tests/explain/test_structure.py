"""Clusters, windows and the overlap with the saliency map, against what they are defined as."""

import math

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal
from pinprick.explain.noise.structure import measure_structure, saliency_map, saliency_overlap
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.units import count_windows
from pinprick.problem import Problem
from pinprick.random import Streams


def problem_of(model: Classifier, images: Tensor, labels: Tensor) -> Problem:
    return Problem(model, images, Goal(labels), Streams(0, torch.arange(len(images))))


def windows_one_by_one(changed: Tensor, side: int) -> int:
    height, width = changed.shape
    return sum(
        bool(changed[top : top + side, left : left + side].any())
        for top in range(height - side + 1)
        for left in range(width - side + 1)
    )


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 1.0])
def test_windows_are_those_that_hold_a_changed_pixel(share: float) -> None:
    changed = torch.rand(3, 20, 13, generator=torch.Generator().manual_seed(0)) < share
    wanted = [windows_one_by_one(one, 8) for one in changed]
    assert count_windows(changed, 8).tolist() == wanted


def test_a_window_is_no_larger_than_the_image() -> None:
    changed = torch.zeros(2, 5, 9, dtype=torch.bool)
    changed[1, 0, 0] = True
    assert count_windows(changed, 8).tolist() == [0, 1]


def test_the_overlap_is_that_of_the_authors_percentile() -> None:
    """Of 20 values other than zero, the 19th in order is the percentile, and one is above it."""
    values = torch.tensor([0.0, 0.0, *range(1, 21)]).double()[
        torch.randperm(22, generator=torch.Generator().manual_seed(1))
    ]
    delta = torch.zeros(3, 1, 2, 11).double()
    delta[0].view(-1)[values.argmax()] = 0.5
    delta[1].view(-1)[values.argmin()] = 0.5
    delta[2].view(-1)[values.argmax()], delta[2].view(-1)[values.argmin()] = 0.3, 0.4
    maps = values.view(1, 1, 2, 11).expand_as(delta)
    assert saliency_overlap(maps, delta).tolist() == pytest.approx([1, 0, 0.6])


def test_a_map_that_is_zero_everywhere_says_nothing() -> None:
    assert saliency_overlap(torch.zeros(1, 3, 4, 4), torch.ones(1, 3, 4, 4)).isnan().all()


def test_a_change_that_is_equal_everywhere_overlaps_by_chance() -> None:
    maps = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    assert saliency_overlap(maps, torch.ones_like(maps)).item() == pytest.approx(0.316, abs=1e-3)


def test_the_map_of_a_linear_model_is_the_product_of_its_weights() -> None:
    model = exact_linear(4, (3, 6, 5))
    images = exact_images(2, (3, 6, 5))
    labels, rivals = torch.tensor([0, 1]), torch.tensor([2, 3])
    weight = model.net[1].weight  # type: ignore[index]
    wanted = (weight[rivals] * weight[labels].abs()).view_as(images)
    problem = problem_of(model, images, labels)
    torch.testing.assert_close(saliency_map(problem, rivals), wanted.double())
    assert problem.tally.forwards.tolist() == [1, 1]
    assert problem.tally.backwards.tolist() == [2, 2]


def test_without_saliency_no_query_is_made() -> None:
    model, images = exact_linear(4, (3, 6, 5)), exact_images(2, (3, 6, 5))
    adversarial = images.clone()
    adversarial[1, :, 0, 0], adversarial[1, 0, 1, 1] = 1 - images[1, :, 0, 0], 0.123
    problem = problem_of(model, images, torch.tensor([0, 1]))
    found = measure_structure(problem, adversarial, torch.tensor([2, 3]), saliency=False, block=8)
    assert found.clusters.tolist() == [0, 2]
    assert found.windows.tolist() == [0, 1]
    assert all(math.isnan(value) for value in found.saliency_overlap.tolist())
    assert problem.tally.forwards.sum() == 0
