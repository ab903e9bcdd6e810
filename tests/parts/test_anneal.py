"""Anneal may find better and never makes worse, inside the mask and on the grid."""

from typing import Literal

import pytest
import torch
from drive_search import ELEMENTS, assert_same, cut_and_joined, drive, each_pass
from grey_images import grey
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.attacks.pinprick.anneal import Anneal
from pinprick.attacks.pinprick.lockstep import Answer
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.parts.best import Best
from pinprick.parts.units import Units


def problem_of(
    model: Classifier, images: Tensor, labels: Tensor, allowed: Tensor | None = None
) -> Problem:
    rng = Streams(0, torch.arange(len(images)))
    with model.frozen():
        return Problem(model, images, Goal(labels), rng, allowed=allowed)


def anneal_of(
    found: Best, length: int, *, rate: float | Tensor = 0.5, eight_bit: bool = False
) -> Anneal:
    """An anneal of all images of a problem, which aims at no class."""
    rows = torch.arange(len(found.cost))
    lengths, aims = torch.full_like(rows, length), torch.full_like(rows, -1)
    rates = torch.as_tensor(rate).float().expand(len(rows))
    none = torch.zeros_like(rows)
    return Anneal(rows, aims, found, lengths, none, rate=rates, eight_bit=eight_bit)


def run(
    problem: Problem, found: Best, units: Units, length: int, *, eight_bit: bool = False
) -> None:
    """Anneal what was found, in place."""
    drive(problem, anneal_of(found, length, eight_bit=eight_bit), units)


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_never_makes_worse_what_it_was_given(
    curved: Classifier, images: Tensor, curved_labels: Tensor, unit: Literal["elements", "pixels"]
) -> None:
    units = Units(unit)
    problem = problem_of(curved, images, curved_labels)
    found = Best(images)
    run(problem, found, units, 40)  # from the clean image
    assert found.cost.isfinite().all()
    for _ in range(3):
        before, cost = found.images, found.cost
        run(problem, found, units, 15)
        assert (found.cost <= cost).all()
        kept = found.cost == cost
        assert torch.equal(found.images[kept], before[kept])
        assert torch.equal(units.count(found.images, images), found.cost.float())
        assert (guesses(curved, found.images) != curved_labels).all()
    assert problem.tally.forwards.tolist() == [85] * 6
    assert problem.tally.backwards.tolist() == [85] * 6


def test_each_pass_may_only_save_units(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem, found = problem_of(curved, images, curved_labels), Best(images)
    passes = each_pass(problem, anneal_of(found, 40), ELEMENTS, 40)
    needed = torch.stack([found.cost for _ in passes])
    assert (needed[1:] <= needed[:-1]).all()
    assert (needed[-1] < needed[4]).any()


def test_it_goes_on_from_what_was_found(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem, found = problem_of(curved, images, curved_labels), Best(images)
    run(problem, found, ELEMENTS, 40)
    before = found.images
    assert (before != images).any()
    _, candidates = drive(problem, anneal_of(found, 3))
    assert torch.equal(candidates[0], before)
    assert len(candidates) == 3


def test_changes_only_what_it_may(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    allowed = exact_images(6, (3, 6, 5), seed=3) > 0.4
    for unit in (ELEMENTS, Units("pixels")):
        found = Best(images)
        run(problem_of(curved, images, curved_labels, allowed), found, unit, 40)
        assert found.cost.isfinite().any()
        assert not ((found.images != images) & ~allowed).any()


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_values_keep_to_the_grid(
    curved: Classifier, images: Tensor, unit: Literal["elements", "pixels"]
) -> None:
    images = (images * 255).round() / 255
    labels = guesses(curved, images)
    found = Best(images)
    run(problem_of(curved, images, labels), found, Units(unit), 40, eight_bit=True)
    assert found.cost.isfinite().any()
    assert torch.equal((found.images * 255).round() / 255, found.images)
    free = Best(images)
    run(problem_of(curved, images, labels), free, Units(unit), 40)
    assert not torch.equal((free.images * 255).round() / 255, free.images)


def test_a_value_off_the_grid_by_rounding_alone_counts_as_unchanged(curved: Classifier) -> None:
    """As on a GPU, which divides by 255 in another way: places the mask shuts must stay too."""
    single = Classifier(lambda images: curved(images.double()).float())
    levels = (exact_images(6, (3, 6, 5)).float() * 255).round()
    images = levels * torch.tensor(1 / 255)
    assert not torch.equal(images, levels / 255)
    allowed = torch.ones_like(images, dtype=torch.bool)
    allowed[:, 1] = False
    labels = guesses(single, images)
    problem = problem_of(single, images, labels, allowed)
    found = Best(images)
    run(problem, found, Units("pixels"), 40, eight_bit=True)
    assert found.cost.isfinite().any()
    assert torch.equal(found.images[:, 1], images[:, 1])
    moved = (found.images - images).abs()
    assert (moved[moved > 0] > 1 / 256).all()


def test_images_can_leave_and_join_between_slots() -> None:
    """Some of them start clean, and some at an image that fools."""
    shape = (3, 6, 5)
    model = exact_linear(4, shape)
    images = sure_images(model, exact_images(5, shape))
    problem = problem_of(model, images, guesses(model, images))
    before, lengths = Best(images), torch.tensor([40, 60, 100, 40, 100])
    rates = torch.tensor([0.5, 2.0, 1.0, 2.0, 0.5])
    run(problem, before, ELEMENTS, 30)
    assert before.cost.isfinite().all()
    clean = torch.tensor([1, 2, 4])
    before.images[clean], before.cost[clean] = images[clean], torch.inf

    def begin(rows: Tensor) -> Anneal:
        aims, none = torch.full_like(rows, -1), torch.zeros_like(rows)
        return Anneal(rows, aims, before[rows], lengths[rows], none, rate=rates[rows])

    assert_same(*cut_and_joined(problem, begin))


# One step by hand: Adam's first one is the rate per value, whatever the size of the gradient


def after_one_step(
    clean: list[float], found: list[float], *, met: bool, taken: int = 0, rate: float = 0.5
) -> list[float]:
    """The values of the second candidate, after so many of 100 passes; values go downhill."""
    images, adv = (torch.tensor(values).view(1, 1, 1, -1) for values in (clean, found))
    model = Classifier(lambda batch: batch.flatten(1)[:, :2])
    problem = problem_of(model, images, torch.tensor([0]))
    best = Best(adv)
    best.cost = ELEMENTS.count(adv, images)
    search = anneal_of(best, 100, rate=rate)
    search.taken += taken
    slot = search.slot(problem, ELEMENTS, 2, taken)
    assert torch.equal(search.adv, adv)
    grad = torch.full_like(images, 7.0)
    slot(Answer(torch.ones(1), torch.tensor([met]), best.cost, grad), 0)
    values: list[float] = search.adv.flatten().tolist()
    return values


def test_while_the_goal_is_not_met_values_go_downhill_and_the_threshold_falls() -> None:
    """Changes below 0.295 are undone: 0.3, less 0.01 of the rate."""
    clean = [0.9, 0.5, 0.297, 0.293, 0.0]
    assert after_one_step(clean, clean, met=False) == pytest.approx([0.4, 0, 0, 0.293, 0], abs=1e-5)


def test_while_the_goal_is_met_changes_alone_are_weakened_and_the_threshold_rises() -> None:
    """Changes of 0.81 and 0.802 become 0.31 and 0.302; those below 0.305 are undone."""
    kept = after_one_step([0.5, 0.1], [0.5, 0.91], met=True)
    assert kept == pytest.approx([0.5, 0.41], abs=1e-5)
    undone = after_one_step([0.5, 0.1], [0.5, 0.902], met=True)
    assert undone == pytest.approx([0.5, 0.1])


@pytest.mark.parametrize("rate", [0.5, 0.25])
@pytest.mark.parametrize(
    ("taken", "share"), [(0, 1), (25, 0.859375), (50, 0.55), (75, 0.240625), (100, 0.1)]
)
def test_the_rate_falls_to_a_tenth(taken: int, share: float, rate: float) -> None:
    """Along 0.1 + 0.9 * (1 - s * s * (3 - 2 * s)): at a quarter of the passes 0.84375."""
    _, weakened = after_one_step([0.5, 0.1], [0.5, 0.91], met=True, taken=taken, rate=rate)
    assert weakened == pytest.approx(0.91 - share * rate, abs=1e-5)


def test_the_threshold_moves_by_a_hundredth_of_the_rate() -> None:
    """After half the passes by 0.0027: changes of 0.3025 are undone, those of 0.303 stay."""
    _, undone = after_one_step([0.5, 0.1], [0.5, 0.6775], met=True, taken=50)
    assert undone == pytest.approx(0.1)
    _, kept = after_one_step([0.5, 0.1], [0.5, 0.678], met=True, taken=50)
    assert kept == pytest.approx(0.403, abs=1e-5)


def test_each_image_has_a_rate_of_its_own() -> None:
    """Steps of 2, 0.5 and 0.125 at first, and of 1.1, 0.275 and 0.06875 after half the passes."""
    clean, adv = torch.zeros(3, 1, 1, 2), torch.zeros(3, 1, 1, 2)
    adv[..., 1] = 1
    problem = problem_of(
        Classifier(lambda batch: batch.flatten(1)[:, :2]), clean, torch.zeros(3).long()
    )
    for taken, values in ((0, [0, 0.5, 0.875]), (50, [0, 0.725, 0.93125])):
        best = Best(adv)
        best.cost = ELEMENTS.count(adv, clean)
        search = anneal_of(best, 100, rate=torch.tensor([2.0, 0.5, 0.125]))
        search.taken += taken
        slot = search.slot(problem, ELEMENTS, 2, taken)
        slot(Answer(torch.ones(3), torch.tensor([True] * 3), best.cost, torch.ones_like(adv)), 0)
        assert search.adv[:, 0, 0, 1].tolist() == pytest.approx(values, abs=1e-5)


def test_a_faster_anneal_moves_its_threshold_faster() -> None:
    """By a hundredth of 2, from 0.3 to 0.28 while the goal is not met; at 0.5 to 0.295."""
    clean = [0.297, 0.293, 0.281, 0.279]
    fast = after_one_step(clean, clean, met=False, rate=2.0)
    assert fast == pytest.approx([0, 0, 0, 0.279], abs=1e-5)
    slow = after_one_step(clean, clean, met=False, rate=0.5)
    assert slow == pytest.approx([0, 0.293, 0.281, 0.279], abs=1e-5)


def test_steps_on_an_image_four_times_as_large_are_half_as_long() -> None:
    changes = []
    for shape, rate in (((3, 32, 32), 0.4), ((3, 64, 64), 0.8)):
        problem = grey(1, shape=shape)
        found = Best(problem.images)
        _, second = drive(problem, anneal_of(found, 2, rate=rate)).candidates
        changes.append((second - problem.images).abs().max().item())
    assert changes == pytest.approx([0.4, 0.4], rel=1e-4)
