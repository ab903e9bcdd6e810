"""The steps that a trim takes with the values of changed units."""

import math

import pytest
import torch
from drive_search import ELEMENTS, each_pass
from torch import Tensor

from parts.long_results import (
    as_found,
    problem_of,
)
from parts.trims import SLOPES, Told, differing, grey, trim_of
from pinprick import Classifier, Goal
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.oracle import exact_images
from pinprick.parts.units import Units


def stepping(
    found: list[float], *, clean: float = 0.25, length: int = 10**6, eight_bit: bool = False
) -> Told:
    """A trim whose values take steps of 0.1 at first."""
    adv = torch.tensor(found).view(1, 1, 1, -1)
    images = torch.full_like(adv, clean)
    return Told(adv, images, length=length, eight_bit=eight_bit, stride=0.1)


def values_of(adv: Tensor) -> list[float]:
    values: list[float] = adv.flatten().tolist()
    return values


def test_changed_values_step_against_the_gradient_while_others_are_removed() -> None:
    """The third is of least use and goes. The fourth has no gradient, the fifth is clean."""
    trim = stepping([0.5, 0.5, 0.75, 0.5, 0.25, 0.96, 0.05])
    trim.search._limit[:] = 1
    adv = trim.tell(-100, torch.tensor([-1, -50, 1e-3, 0, -70, -80, 90]), met=True)
    assert trim.removed() == [2]
    assert values_of(adv) == pytest.approx([0.6, 0.6, 0.25, 0.5, 0.25, 1, 0])


def test_steps_begin_at_the_best_image_and_are_kept_where_it_fools() -> None:
    trim = stepping([0.5] * 4)
    first = trim.tell(-100, -torch.tensor([1.0, 2, 3, 4]), met=True)
    assert values_of(first) == pytest.approx([0.25, 0.25, 0.6, 0.6])
    vain = trim.tell(100, -torch.tensor([1.0, 2, 3, 4]))
    assert values_of(vain) == pytest.approx([0.25, 0.6, 0.6, 0.6])  # 0.5 and a step, not 0.7
    kept = trim.tell(-100, -torch.tensor([1.0, 2, 3, 4]), met=True)
    assert values_of(trim.search.found.images) == values_of(vain)
    assert trim.search.found.cost.tolist() == [3]
    assert values_of(kept) == pytest.approx([0.25, 0.25, 0.25, 0.7])  # twice as many go


def test_steps_follow_the_running_mean_of_the_gradients() -> None:
    """The second gradient points the other way: less than the first in one value alone."""
    trim = stepping([0.5, 0.5, 0.5])
    trim.tell(-100, -torch.tensor([5.0, 5, 5]), met=True)
    adv = trim.tell(100, torch.tensor([1.0, 6, 4]))
    assert trim.removed() == [1]  # the mean is -2, 0.5, -0.5
    assert values_of(adv) == pytest.approx([0.6, 0.25, 0.6])
    adv = trim.tell(100, torch.tensor([1.0, 6, 4]))
    assert trim.removed() == [2]  # now -1, 7/3, 1; the second stays changed and turns back
    assert values_of(adv) == pytest.approx([0.6, 0.4, 0.25])


@pytest.mark.parametrize(
    ("taken", "size"), [(0, 0.1), (25, 0.075), (50, 0.05), (90, 0.01), (100, 0), (130, 0)]
)
def test_steps_grow_shorter_along_a_trim(taken: int, size: float) -> None:
    """Of 100 passes, and beyond them."""
    trim = stepping([0.5, 0.75], length=100)
    trim.search.taken = torch.tensor([taken])
    trim.slot = trim.search.slot(trim.problem, ELEMENTS, 10, taken)
    adv = trim.tell(-100, torch.tensor([-1.0, 20]), met=True)
    assert values_of(adv) == pytest.approx([0.5 + size, 0.25])


def test_each_image_has_steps_of_its_own_size() -> None:
    """The first one has no passes left, the second half of them."""
    images = torch.full((3, 1, 1, 2), 0.25)
    problem = problem_of(
        Classifier(lambda batch: batch.flatten(1)[:, :2]), images, Goal(torch.zeros(3).long())
    )
    search = trim_of(problem, as_found(images + 0.25, images, ELEMENTS), 100, stride=0.1)
    search.taken = torch.tensor([100, 50, 0])
    slot = search.slot(problem, ELEMENTS, 10, 0)
    grad = -torch.tensor([2.0, 1.0]).expand(3, 2).reshape(3, 1, 1, 2)
    slot(Answer(torch.full((3,), -9.0), torch.tensor([True] * 3), search.found.cost, grad), 0)
    assert search.adv[:, 0, 0, 0].tolist() == pytest.approx([0.5, 0.55, 0.6])
    assert search.adv[:, 0, 0, 1].tolist() == [0.25] * 3


def test_without_a_stride_values_stay_as_they_are() -> None:
    adv = torch.tensor([0.5, 0.75, 1.0, 0.125]).view(1, 1, 1, 4)
    trim = Told(adv, torch.full_like(adv, 0.25))
    for margin in (-100.0, 100.0, 100.0, -100.0, 100.0):
        after = trim.tell(margin, -torch.tensor([1.0, 2, 3, 4]), met=margin < 0)
        assert not trim.swaps
        stays = after != trim.images
        assert stays.any()
        assert torch.equal(after[stays], adv[stays])


def test_a_value_that_would_leave_the_box_stops_at_its_edge() -> None:
    trim = stepping([0.95, 0.05, 0.5])
    trim.search._limit[:] = 1
    adv = trim.tell(-100, torch.tensor([-9.0, 9.0, 8.0]), met=True)
    assert trim.removed() == [2]
    assert values_of(adv) == [1, 0, 0.25]


def test_a_pixel_steps_in_all_channels_that_may_change() -> None:
    """Two changed pixels and a clean one; the last channel of the first may not change."""
    images = torch.full((1, 3, 1, 3), 0.25)
    adv, allowed = images.clone(), torch.ones(1, 3, 1, 3, dtype=torch.bool)
    adv[0, 0, 0, 0] = 0.75  # the other channels of this pixel are clean
    adv[0, :, 0, 1] = 0.5
    allowed[0, 2, 0, 0] = False
    trim = Told(adv, images, Units("pixels"), allowed=allowed, stride=0.1)
    grad = torch.tensor([[-9.0, -1, -5], [9, -1, -5], [9, -1, -5]]).view(1, 3, 1, 3)
    after = trim.tell(-100, grad, met=True)
    assert trim.removed() == [1]
    expected = torch.tensor([[0.85, 0.25, 0.25], [0.15, 0.25, 0.25], [0.25, 0.25, 0.25]])
    torch.testing.assert_close(after.view(3, 3), expected)


def test_values_that_may_not_change_take_no_steps() -> None:
    images = exact_images(1, (3, 6, 6), seed=3).float()
    allowed = exact_images(1, (3, 6, 6), seed=5) > 0.5
    adv = torch.where(allowed, 1 - images, images)
    for units in (ELEMENTS, Units("pixels")):
        trim = Told(adv, images, units, allowed=allowed, stride=0.1)
        for _ in range(30):
            after = trim.tell(-1, torch.linspace(-1, 1, 108), met=True)
            assert torch.equal(after[~allowed], images[~allowed])
        assert trim.search.found.cost.tolist() == [1]


@pytest.mark.parametrize("eight_bit", [False, True])
def test_stepped_values_keep_to_the_grid(eight_bit: bool) -> None:
    """0.1 is 25.5 levels of 255."""
    trim = stepping([127 / 255, 200 / 255], clean=51 / 255, eight_bit=eight_bit)
    adv = trim.tell(-100, torch.tensor([-9.0, -1.0]), met=True)
    level = values_of(adv * 255)
    assert level == pytest.approx([152 if eight_bit else 152.5, 51], abs=1e-3)
    assert torch.equal((adv * 255).round() / 255, adv) == eight_bit


def test_a_step_back_to_the_level_of_the_clean_value_leaves_the_unit_unchanged() -> None:
    """By 0.098 of the box, 24.99 levels of 255."""
    trim = stepping([76 / 255, 200 / 255, 240 / 255], clean=51 / 255, length=100, eight_bit=True)
    trim.search.taken, trim.search._limit[:] = torch.tensor([2]), 1
    trim.slot = trim.search.slot(trim.problem, ELEMENTS, 10, 2)
    adv = trim.tell(-100, torch.tensor([9.0, -9, 9]), met=True)
    assert torch.equal(adv[..., [0, 2]], trim.images[..., [0, 2]])
    assert differing(trim, trim.images) == 1
    trim.tell(-100, torch.tensor([9.0, -9, 9]), met=True)
    assert trim.search.found.cost.tolist() == [1]


def test_while_units_are_swapped_all_changed_ones_step() -> None:
    """What is swapped in may be at a corner that the gradient leads away from."""
    trim, seen = grey(20, stride=0.1), set[tuple[bool, float]]()
    best = trim.search.found.images
    rising = (SLOPES < 0).view_as(best)  # the first 20, which are black, too
    for _ in range(60):
        adv = trim.search.adv
        old = (best != trim.images) & (adv != trim.images)
        torch.testing.assert_close(adv[old], torch.full_like(adv[old], 0.1))
        fresh = (best == trim.images) & (adv != trim.images)
        assert (int(old.sum()), int(fresh.sum())) == (18, 1)
        seen.add((bool(rising[fresh]), round(adv[fresh].item(), 3)))
        trim.tell(math.nan, SLOPES)
    assert seen == {(True, 1.0), (True, 0.1), (False, 0.0), (False, 0.9)}


def test_a_trim_with_steps_removes_units_that_are_needed_without_them() -> None:
    """The values must sum to 2.6: all six of 0.5, or four that took two steps."""

    def model(images: Tensor) -> Tensor:
        total = images.flatten(1).sum(dim=1) - 2.6
        return torch.stack((-total, total), dim=1)

    images = torch.zeros(1, 1, 1, 6)
    problem = problem_of(Classifier(model), images, Goal(torch.tensor([0])))
    needed = []
    for stride in (0.0, 0.1):
        found = as_found(images + 0.5, images, ELEMENTS)
        search = trim_of(problem, found, 40, stride=stride)
        while search._removing.all():  # no swaps yet
            list(each_pass(problem, search, ELEMENTS, 1, int(search.taken)))
        needed.append(found.cost.item())
    assert needed == [6, 4]
