"""The swaps of a trim that is told what the model says, and how it counts gradients.

Most are of a grey image of which some units are black, once each was told to be needed.
"""

import math
from typing import Literal

import pytest
import torch
from drive_search import ELEMENTS
from torch import Tensor

from parts.trims import SLOPES, Told, at_first, black, differing, grey, settle
from pinprick import Streams
from pinprick.oracle import exact_images
from pinprick.parts.units import Units


def test_after_a_swap_that_fools_all_units_are_tried_again() -> None:
    trim, grad = black(4, 0, 1, 2), -torch.ones(4)
    trim.tell(-100, grad, met=True)
    for unit in range(3):
        assert trim.removed() == [unit]
        assert not trim.swaps
        trim.tell(100, grad)
    assert trim.swaps
    trim.tell(100, grad)
    assert trim.swaps
    trim.search.adv = torch.tensor([1.0, 0, 0, 1]).view_as(trim.images)  # if that is the swap
    trim.tell(-100, grad, met=True)
    assert trim.search.found.cost.tolist() == [2]
    assert trim.removed() == [0]
    assert not trim.swaps


def test_gradients_count_by_their_size() -> None:
    """200, 400, 600, 800 and 1, 0, 0, 0: the first is of least use still, at 100.5."""
    trim = black(4, 0, 1, 2, 3)
    trim.tell(-(10**4), -torch.tensor([200.0, 400, 600, 800]), met=True)
    assert trim.removed() == [0, 1]
    trim.tell(10**4, -torch.tensor([1.0, 0, 0, 0]))
    assert trim.removed() == [0]
    trim.tell(10**4, -torch.tensor([1.0, 0, 0, 0]))
    assert trim.removed() == [1]  # 133, 200, 267


def test_gradients_count_the_same_until_the_memory_is_full() -> None:
    trim = black(8, *range(8))
    for step in range(7):
        grad = torch.zeros(8)
        grad[step] = 3
        trim.tell(-1, grad)
        if step == 4:
            torch.testing.assert_close(trim.search._mean.flatten(), 3 * at_first(8, [0.2] * 5))
    weights = at_first(8, [0.128] * 5 + [0.16, 0.2])
    torch.testing.assert_close(trim.search._mean.flatten(), 3 * weights)


def test_a_swap_that_raises_the_margin_is_undone() -> None:
    trim = grey(20)
    assert differing(trim, trim.images) == 19
    assert differing(trim, trim.search.found.images) == 3  # two out, one in
    current = trim.search.adv
    trim.tell(5, SLOPES)
    margins = [(6.0, False), (5.0, True), (4.0, True), (4.5, False), (math.nan, False), (4.0, True)]
    for margin, kept in margins:
        candidate = trim.search.adv
        assert differing(trim, trim.images) == 19
        assert differing(trim, current) == 2  # one out, one in
        trim.tell(margin, SLOPES)
        current = candidate if kept else current
    assert differing(trim, current) == 2


def test_a_candidate_of_another_count_is_not_swapped_further() -> None:
    trim = grey(20)
    first = trim.search.adv
    trim.tell(5, SLOPES)
    trim.search.adv = trim.images
    trim.tell(-5, SLOPES)
    assert differing(trim, first) == 2


def test_what_was_removed_in_vain_may_be_swapped_further() -> None:
    """It has one unit fewer than the best, and the lowest margin of all such."""
    images = torch.full((1, 1, 10, 10), 0.5)
    adv = images.clone()
    adv[:, :, :2] = 0
    trim = Told(adv, images)
    trim.tell(-1, SLOPES, met=True)
    lowest = images
    while not trim.swaps:
        removed, candidate = trim.removed(), trim.search.adv
        lowest = candidate if removed == [7] else lowest
        trim.tell(2.0 if removed == [7] else 3.0, SLOPES)
    assert differing(trim, lowest) == 2


def test_after_a_shorter_image_any_margin_will_do() -> None:
    trim = grey(20)
    trim.tell(5, SLOPES)
    shorter = trim.search.adv
    trim.tell(-1, SLOPES, met=True)
    assert trim.search.found.cost.tolist() == [19]
    settle(trim)
    for _ in range(9):
        assert differing(trim, trim.images) == 18
        assert differing(trim, shorter) == 3
        trim.tell(math.nan, SLOPES)
    second = trim.search.adv
    trim.tell(9, SLOPES)
    assert differing(trim, second) == 2


@pytest.mark.parametrize(("taken", "out"), [(1, 4), (50, 2), (90, 1), (100, 1), (120, 1)])
def test_a_tenth_of_the_units_is_swapped_and_ever_fewer(taken: int, out: int) -> None:
    """Of 45 units; in 100 passes, and beyond them."""
    trim = grey(46)
    trim.search.taken, trim.search.length = torch.tensor([taken]), torch.tensor([100])
    trim.slot, trim.now = trim.search.slot(trim.problem, ELEMENTS, 10, taken), 0
    trim.tell(math.nan, SLOPES)
    assert len(trim.removed()) == out + 1  # one more, since there are 46
    assert differing(trim, trim.images) == 45


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_units_are_swapped_in_at_corners_that_are_allowed(
    unit: Literal["elements", "pixels"],
) -> None:
    allowed = exact_images(1, (3, 6, 6), seed=3) > 0.7
    slopes = torch.linspace(-1, 1, 108)
    trim = grey(6, Units(unit), (3, 6, 6), allowed=allowed, grad=slopes)
    best, values = trim.search.found.images, set[float]()
    for _ in range(40):
        candidate = trim.search.adv
        assert not ((candidate != trim.images) & ~allowed).any()
        assert differing(trim, trim.images) == 5
        fresh = (best == trim.images) & (candidate != trim.images)
        values |= set(candidate[fresh].tolist())
        trim.tell(1, slopes)
    assert values == {0.0, 1.0}


def test_any_unit_may_go() -> None:
    """Two of 20 do in each of 400 swaps: 40 times each, within 4 standard deviations."""
    trim, times = grey(20), torch.zeros(20)
    for _ in range(400):
        times[trim.removed()] += 1
        trim.tell(math.nan, SLOPES)
    assert times.sum() == 800
    assert times.min() >= 16
    assert times.max() <= 64


def test_half_of_the_swaps_follow_the_gradient() -> None:
    """By promise the value goes where the gradient says; else to either corner."""
    trim = grey(20)
    downhill = (SLOPES < 0).float().view_as(trim.images)
    against = 0
    for _ in range(400):
        candidate = trim.search.adv
        fresh = (trim.search.found.images == trim.images) & (candidate != trim.images)
        assert int(fresh.sum()) == 1
        against += int((candidate != downhill)[fresh].sum())
        trim.tell(math.nan, SLOPES)
    assert 70 <= against <= 130  # a quarter of 400, within 3.5 standard deviations


def test_the_other_half_takes_any_unit_to_any_corner() -> None:
    """Only one of the 80 others has a slope: half of the swaps take it, and one in 80 more."""
    slopes = torch.zeros(100)
    slopes[:20], slopes[70] = -1, 0.01
    trim, units, values = grey(20, grad=slopes), list[int](), list[float]()
    for _ in range(400):
        new = (trim.search.found.images == trim.images) & (trim.search.adv != trim.images)
        (unit,) = new.flatten().nonzero().flatten().tolist()
        units.append(unit)
        values += trim.search.adv[new].tolist() if unit != 70 else []
        trim.tell(math.nan, slopes)
    assert 167 <= units.count(70) <= 238  # 202.5, within 3.5 standard deviations
    assert min(units) >= 20
    assert len({*units}) > 60
    assert 0.37 <= sum(values) / len(values) <= 0.63  # of about 197


def test_each_channel_of_a_pixel_goes_to_a_corner_of_its_own() -> None:
    """Without a gradient, swaps that follow it take no pixel."""
    none = torch.zeros(108)
    trim, corners = grey(6, Units("pixels"), (3, 6, 6), grad=none), set[tuple[float, ...]]()
    best = trim.search.found.images
    for _ in range(150):
        new = trim.units.changed(trim.search.adv, trim.images)
        new &= ~trim.units.changed(best, trim.images)
        corners |= {tuple(values) for values in trim.search.adv.flatten(2)[0].T[new[0]].tolist()}
        trim.tell(math.nan, none)
    assert corners == {(r, g, b) for r in (0.0, 1.0) for g in (0.0, 1.0) for b in (0.0, 1.0)}


def test_a_swap_draws_one_number_per_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that says whether it follows the gradient; to remove units, nothing is drawn."""
    drawn: list[tuple[int, ...]] = []
    bits = Streams._bits

    def note(self: Streams, shape: tuple[int, ...], step: int, use: str) -> Tensor:
        drawn.append(shape)
        return bits(self, shape, step, use)

    monkeypatch.setattr(Streams, "_bits", note)
    trim = grey(6, Units("pixels"), (3, 6, 6), grad=torch.linspace(-1, 1, 108))
    assert sorted(drawn) == [(1,), (36,)]
    trim.tell(1, torch.linspace(-1, 1, 108))
    assert len(drawn) == 4
