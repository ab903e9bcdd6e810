"""The random operators of Sparse-RS: bookkeeping, and how often each outcome comes."""

import pytest
import torch
from torch import Tensor

from pinprick import Goal, Problem, Streams
from pinprick.attacks.sparse_rs import SwapPlan, Swaps, SwapState
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.units import Units

DRAWS = 4096


def swaps_of(
    images: Tensor,
    k: int | list[int],
    *,
    allowed: Tensor | None = None,
    units: Units = Units("pixels"),  # noqa: B008
    trial: int = 0,
) -> Swaps:
    shape = (images.shape[1], images.shape[2], images.shape[3])
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    streams = Streams(0, torch.arange(len(images)))
    problem = Problem(exact_linear(2, shape), images, goal, streams, allowed=allowed)
    counts = torch.tensor([k] * len(images) if isinstance(k, int) else k)
    return Swaps(problem, units, counts, trial)


def copies(image: Tensor) -> Tensor:
    return image.expand(DRAWS, -1, -1, -1)


def chance(seen: Tensor, expected: Tensor) -> float:
    """The p-value of Pearson's test: how likely counts as uneven as these are."""
    statistic = ((seen - expected).square() / expected).sum()
    freedom = torch.tensor((len(expected) - 1) / 2)
    return float(torch.special.gammaincc(freedom.double(), statistic.double() / 2))


def chance_of_even(outcomes: Tensor, number: int) -> float:
    """The same for outcomes numbered from 0 that should all be as frequent."""
    seen = torch.bincount(outcomes, minlength=number)
    assert len(seen) == number
    return chance(seen.double(), torch.full((number,), len(outcomes) / number))


def changed(state: SwapState, images: Tensor) -> Tensor:
    return (state.adv != images.flatten(2)).any(dim=1)


def test_the_p_value_is_that_of_the_tables() -> None:
    seen, expected = torch.tensor([44.0, 56.0]), torch.tensor([50.0, 50.0])
    assert chance(seen, expected) == pytest.approx(0.2301, abs=1e-4)


# The set that it begins with


def test_begins_with_every_set_of_k_pixels_alike() -> None:
    images = copies(exact_images(1, (1, 2, 3)))
    state = swaps_of(images, 3).begin(images)
    assert (state.members.sum(dim=1) == 3).all()
    codes = (state.members * 2 ** torch.arange(6)).sum(dim=1)
    sets = codes.unique(return_inverse=True)[1]
    assert chance_of_even(sets, 20) > 0.01


def test_begins_with_every_corner_alike() -> None:
    images = copies(exact_images(1, (3, 2, 2)))
    state = swaps_of(images, 1).begin(images)
    place = state.members.int().argmax(dim=1)
    colours = state.adv[torch.arange(DRAWS), :, place]
    codes = (colours * torch.tensor([1, 2, 4])).sum(dim=1).long()
    assert chance_of_even(codes * 4 + place, 32) > 0.01


def test_begins_with_some_of_what_was_found_before_as_it_was() -> None:
    images = copies(exact_images(1, (1, 2, 3)))
    near = images.clone()
    near.flatten(2)[:, :, 1:5] = 0.25  # no corner, so it is known again
    state = swaps_of(images, 2).begin(near)
    codes = (state.members * 2 ** torch.arange(6)).sum(dim=1)
    assert chance_of_even(codes.unique(return_inverse=True)[1], 6) > 0.01
    assert (state.adv.masked_select(state.members.unsqueeze(1)) == 0.25).all()
    assert not state.members[:, [0, 5]].any()


def test_another_trial_begins_elsewhere() -> None:
    images = exact_images(8, (1, 6, 5))
    first, second = (swaps_of(images, 3, trial=trial).begin(images) for trial in (0, 1))
    assert not torch.equal(first.members, second.members)


# A swap


def test_every_pixel_goes_and_every_other_comes_as_often() -> None:
    images = copies(exact_images(1, (1, 2, 4)))
    swaps = swaps_of(images, 3)
    state = swaps.begin(images)
    same = SwapState(state.adv[:1].expand(DRAWS, -1, -1), state.members[:1].expand(DRAWS, -1))
    new = swaps.propose(same, 1 / 3, 1)
    gone = (same.members & ~new.members).int()
    come = (new.members & ~same.members).int()
    assert (gone.sum(dim=1) == 1).all()
    assert (come.sum(dim=1) == 1).all()
    pair = gone.argmax(dim=1) * 8 + come.argmax(dim=1)
    assert chance_of_even(pair.unique(return_inverse=True)[1], 15) > 0.01


def test_sets_of_several_are_swapped_alike() -> None:
    images = copies(exact_images(1, (1, 2, 4)))
    swaps = swaps_of(images, 4)
    state = swaps.begin(images)
    same = SwapState(state.adv[:1].expand(DRAWS, -1, -1), state.members[:1].expand(DRAWS, -1))
    new = swaps.propose(same, 0.5, 7)
    codes = (new.members * 2 ** torch.arange(8)).sum(dim=1)
    assert chance_of_even(codes.unique(return_inverse=True)[1], 36) > 0.01


def incoming(image: Tensor, k: int, share: float, allowed: Tensor | None = None) -> Tensor:
    """Corners, as numbers, of one pixel that came into the set in each of many draws."""
    images = copies(image)
    swaps = swaps_of(images, k, allowed=None if allowed is None else copies(allowed))
    state = swaps.begin(images)
    new = swaps.propose(state, share, 1)
    place = (new.members & ~state.members).int().argmax(dim=1)
    colours = new.adv[torch.arange(DRAWS), :, place]
    return (colours * torch.tensor([1, 2, 4])).sum(dim=1).long()


def test_a_pixel_that_comes_alone_never_keeps_its_colour() -> None:
    corner = torch.tensor([1.0, 0.0, 1.0]).double().view(1, 3, 1, 1).expand(1, 3, 2, 3)
    codes = incoming(corner, 2, 0.1)
    assert 5 not in codes
    others = torch.tensor([0, 1, 2, 3, 4, 9, 5, 6])[codes]  # one to seven without the fifth
    assert chance_of_even(others, 7) > 0.01


def test_a_pixel_that_is_no_corner_or_does_not_come_alone_gets_any_corner() -> None:
    corner = torch.tensor([1.0, 0.0, 1.0]).double().view(1, 3, 1, 1).expand(1, 3, 2, 3)
    assert chance_of_even(incoming(corner, 3, 0.7), 8) > 0.01
    assert chance_of_even(incoming(exact_images(1, (3, 2, 3)), 2, 0.1), 8) > 0.01


def test_under_a_mask_the_free_channels_alone_are_drawn() -> None:
    corner = torch.tensor([1.0, 0.0, 1.0]).double().view(1, 3, 1, 1).expand(1, 3, 2, 3)
    allowed = torch.ones(1, 3, 2, 3, dtype=torch.bool)
    allowed[:, 1] = False
    codes = incoming(corner, 2, 0.1, allowed)
    order = torch.tensor([0, 1, 9, 9, 2, 9, 9, 9])[codes]  # 5 is its own, 2 is shut
    assert chance_of_even(order, 3) > 0.01


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("unit", ["pixels", "elements"])
def test_the_set_keeps_its_size_and_all_else_is_clean(unit: str, masked: bool) -> None:
    images = exact_images(5, (3, 3, 4))
    allowed = exact_images(5, (3, 3, 4), seed=4) > 0.5 if masked else None
    units = Units("pixels" if unit == "pixels" else "elements")
    k = torch.tensor([1, 2, 5, 7, 9])
    swaps = swaps_of(images, k.tolist(), allowed=allowed, units=units)
    state = swaps.begin(images)
    for step in range(1, 60):
        share = 1 / step
        new = swaps.propose(state, share, step)
        assert torch.equal(new.members.sum(dim=1), k)
        moved = torch.minimum((share * k).long().clamp_min(1), swaps._spare)
        assert torch.equal((new.members & ~state.members).sum(dim=1), moved)
        assert torch.equal((state.members & ~new.members).sum(dim=1), moved)
        adv = new.as_images(images)
        assert not (units.changed(adv, images) & ~new.members).any()
        assert ((adv == images) | (adv == 0) | (adv == 1)).all()
        assert allowed is None or torch.equal(adv[~allowed], images[~allowed])
        kept = (state.members & new.members).unsqueeze(1)
        assert torch.equal(new.adv.where(kept, 0), state.adv.where(kept, 0))
        state = new


def test_where_all_pixels_are_in_the_set_they_change_their_colours() -> None:
    images = exact_images(4, (1, 2, 2))
    swaps = swaps_of(images, 100)
    state = swaps.begin(images)
    assert state.members.all()
    for step in range(1, 20):
        new = swaps.propose(state, 0.01, step)
        assert new.members.all()
        assert ((new.adv != state.adv).sum(dim=(1, 2)) == 1).all()
        state = new


def test_fewer_are_swapped_where_fewer_are_left() -> None:
    images = exact_images(4, (1, 2, 3))
    swaps = swaps_of(images, 4)
    state = swaps.begin(images)
    new = swaps.propose(state, 1.0, 1)
    assert ((new.members & ~state.members).sum(dim=1) == 2).all()
    assert (changed(new, images).sum(dim=1) == 4).all()


def test_an_image_draws_the_same_whatever_the_k_of_others() -> None:
    images = exact_images(3, (3, 4, 5))
    together = swaps_of(images, [2, 9, 20])
    alone = swaps_of(images[:1], 2)
    state, own = together.begin(images), alone.begin(images[:1])
    for step in range(1, 20):
        assert torch.equal(state.adv[:1], own.adv)
        state, own = together.propose(state, 0.7, step), alone.propose(own, 0.7, step)


def test_the_number_of_swaps_is_worked_out_once_per_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time would be three more operations per query."""
    swaps = swaps_of(exact_images(2, (1, 4, 5)), 8)
    state, shares, planned = swaps.begin(swaps.problem.images), [], swaps._planned

    def note(share: float) -> SwapPlan:
        shares.append(share)
        return planned(share)

    monkeypatch.setattr(swaps, "_planned", note)
    for step, share in enumerate((0.5, 0.5, 0.25, 0.25, 0.5)):
        new = swaps.propose(state, share, step + 1)
        assert ((new.members & ~state.members).sum(dim=1) == 8 * share).all()
    assert shares == [0.5, 0.25, 0.5]
