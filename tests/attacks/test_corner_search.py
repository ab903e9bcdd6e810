"""CornerSearch: single jumps worked out by hand, how sets are drawn, and what it asks."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import CornerSearch
from pinprick.attacks.corner_search import corner_changes, sigma_changes
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images
from pinprick.parts.sigma_map import sigma_map


def problem(images: Tensor, allowed: Tensor | None = None, model: Any = None) -> Problem:
    streams = Streams(0, torch.arange(len(images)))
    shape = (images.shape[1], images.shape[2], images.shape[3])
    model = exact_linear(4, shape) if model is None else model
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    return Problem(model, images, Goal(labels), streams, allowed=allowed)


# Jumps


def test_a_pixel_jumps_to_all_corners_of_its_colours() -> None:
    images = exact_images(2, (3, 2, 2))
    changes = corner_changes(problem(images))
    corners = {tuple(changes.colours[0, option, :, 3].tolist()) for option in range(8)}
    assert corners == {(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)}
    assert changes.useful.all()


def test_what_changes_nothing_is_of_no_use() -> None:
    images = torch.tensor([[0.0, 1.0], [0.5, 0.0]]).view(1, 1, 2, 2)
    useful = corner_changes(problem(images, model=lambda x: x.flatten(1))).useful
    assert useful.view(2, 4).tolist() == [[False, True, True, False], [True, False, True, True]]


def test_under_a_mask_no_jump_comes_twice() -> None:
    images = exact_images(1, (3, 2, 2))
    allowed = torch.ones_like(images, dtype=torch.bool)
    allowed[0, 1, 0, 0] = False  # three channels: two are free
    allowed[0, :, 1, 1] = False
    changes = corner_changes(problem(images, allowed))
    assert changes.useful.view(8, 4).sum(dim=0).tolist() == [4, 8, 8, 0]
    jumps = changes.useful[0].nonzero()
    made = changes.made(
        images.expand(len(jumps), -1, -1, -1), jumps, torch.zeros(len(jumps), dtype=torch.long)
    )
    assert len(made.flatten(1).unique(dim=0)) == len(jumps)
    assert torch.equal(made[:, ~allowed[0]], images[:, ~allowed[0]].expand(len(jumps), -1))


def test_several_jumps_make_one_image_and_the_first_at_a_pixel_counts() -> None:
    images = torch.full((1, 1, 2, 2), 0.5)
    changes = corner_changes(problem(images, model=lambda x: x.flatten(1)))
    dark, bright, pixels = 0, 1, 4
    sets = torch.tensor(
        [[dark * pixels + 0, bright * pixels + 3], [bright * pixels + 2, dark * pixels + 2]]
    )
    made = changes.made(images.expand(2, -1, -1, -1), sets, torch.zeros(2, dtype=torch.long))
    assert made.flatten(1).tolist() == [[0.0, 0.5, 0.5, 1.0], [0.5, 0.5, 1.0, 0.5]]


def test_the_sigma_map_gives_two_jumps_from_the_clean_pixel() -> None:
    images = exact_images(2, (3, 4, 4)) / 2
    low, high = sigma_changes(problem(images), 0.3).colours.unbind(dim=1)
    torch.testing.assert_close(low, (images * (1 - 0.3 * sigma_map(images))).flatten(2))
    torch.testing.assert_close(high, (images * (1 + 0.3 * sigma_map(images))).flatten(2))


# The search


def test_one_pixel_is_found_where_one_will_do() -> None:
    model = exact_linear(4, (3, 6, 5))
    images = exact_images(64, (3, 6, 5))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    one = fewest_pixels(model, images, Goal(labels)) == 1
    assert one.any()
    assert not one.all()
    result = run_attack(CornerSearch(max_pixels=1), model, images, labels)
    assert torch.equal(result.success, one)  # for one pixel all jumps are tried
    assert (result.l0_pixels[one] == 1).all()
    assert (result.forwards[~one] == 1 + 8 * 30).all()
    assert (result.forwards[one] <= 1 + 8 * 30).all()


def test_more_jumps_than_wanted_are_drawn_without_repeating() -> None:
    images = exact_images(2, (3, 6, 5))
    whole = problem(images)
    changes = corner_changes(whole)
    jumps, number = CornerSearch(singles=50)._singles(whole, changes)
    assert number.tolist() == [50, 50]
    assert all(len(row.unique()) == 50 for row in jumps)
    assert not torch.equal(jumps[0], jumps[1])
    jumps, number = CornerSearch(singles=1000)._singles(whole, changes)
    assert torch.equal(jumps[0], torch.arange(240))
    result = run_attack(
        CornerSearch(singles=50, max_pixels=1),
        exact_linear(4, (3, 6, 5)),
        images,
        whole.goal.labels,
    )
    assert (result.forwards <= 51).all()


def test_better_jumps_are_drawn_more_often() -> None:
    """The i-th best of N with probability (2 (N - i) + 1) / N^2; here N = 2, i = 1: three of four.

    Either pixel lowers the lead, the first by more, and no set of them fools.
    """
    seen: list[Tensor] = []

    def model(images: Tensor) -> Tensor:
        seen.append(images.flatten(1).clone())
        lead = 10 - 2 * images[:, 0, 0, 0] - images[:, 0, 0, 1]
        return torch.stack((lead, torch.zeros_like(lead)), dim=1)

    images = torch.zeros(1, 1, 1, 2)
    attack = CornerSearch(max_pixels=2, tries=2000, rivals=0)
    attack(problem(images, model=model))
    sets = torch.cat(seen[3:])  # after the label, the clean image and the two single jumps
    assert len(sets) == 2000
    share = {tuple(one): 0 for one in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0))}
    for one in sets.tolist():
        share[tuple(one)] += 1
    assert share[1.0, 1.0] / 2000 == pytest.approx(6 / 16, abs=0.04)
    assert share[1.0, 0.0] / 2000 == pytest.approx(9 / 16, abs=0.04)
    assert share[0.0, 1.0] / 2000 == pytest.approx(1 / 16, abs=0.02)


def test_a_rival_that_is_not_the_nearest_can_be_the_one_that_gives_way() -> None:
    """Jumps that lift class 2 leave the margin as it is one by one, but together they fool."""

    def model(images: Tensor) -> Tensor:
        flat = images.flatten(1)
        zero = torch.zeros_like(flat[:, 0])
        near = 2 + 0.1 * flat[:, 2:].sum(dim=1)  # lifted a little, never enough
        far = 1.9 * flat[:, :2].sum(dim=1)  # lifted by two pixels alone
        return torch.stack((zero + 3.5, near, far), dim=1)

    images, labels = torch.zeros(1, 1, 3, 4), torch.zeros(1, dtype=torch.long)
    few = CornerSearch(max_pixels=2, tries=20, best=2, rivals=0)
    assert not run_attack(few, Classifier(model), images, labels).success.any()
    many = CornerSearch(max_pixels=2, tries=20, best=2, rivals=2)
    result = run_attack(many, Classifier(model), images, labels)
    assert result.success.all()
    assert result.adversarial[0].flatten().nonzero().flatten().tolist() == [0, 1]


def test_the_first_number_of_pixels_that_fools_is_where_it_stops() -> None:
    model = exact_linear(4, (3, 6, 5), seed=2)
    images = sure_images(model, exact_images(8, (3, 6, 5)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = CornerSearch(tries=200)
    result = run_attack(attack, model, images, labels)
    assert result.success.all()
    for row, pixels in enumerate(result.l0_pixels.tolist()):
        only = slice(row, row + 1)
        if pixels > 1:
            less = CornerSearch(tries=200, max_pixels=pixels - 1)
            ids = torch.tensor([row])
            assert not run_attack(less, model, images[only], labels[only], ids=ids).success.any()


def test_many_channels_are_refused() -> None:
    model, images = exact_linear(4, (5, 3, 3)), exact_images(2, (5, 3, 3))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    with pytest.raises(BadInput, match="at most 4; these images have 5"):
        run_attack(CornerSearch(), model, images, labels)
