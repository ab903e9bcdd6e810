"""BruSLeAttack: its schedule, its swaps by hand and by frequency, and its own optimum."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, Problem, Streams, build, run_attack, score_model
from pinprick.attacks import BruSLe
from pinprick.attacks.brusle import Masks, share, synthetic
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images

SMALL = (1, 8, 8)


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def problem_of(
    model: Classifier, images: Tensor, goal: Goal | None = None, **settings: Any
) -> Problem:
    goal = Goal(guesses(model, images)) if goal is None else goal
    return Problem(model, images, goal, Streams(0, torch.arange(len(images))), **settings)


def copies(count: int, shape: tuple[int, int, int]) -> Problem:
    """One image many times, each with random numbers of its own."""
    images = exact_images(1, shape).expand(count, -1, -1, -1)
    return problem_of(exact_linear(2, shape), images)


def counts(problem: Problem, k: int) -> Tensor:
    return torch.full((len(problem),), k)


def chi_square(seen: Tensor, chance: Tensor) -> float:
    expected = seen.sum() * chance / chance.sum()
    return ((seen - expected) ** 2 / expected).sum().item()


def fewest_copied(problem: Problem) -> Tensor:
    """Fewest pixels that fool a linear model when copied from the synthetic image, by sorting."""
    model, images, labels = problem._model, problem.images, problem.goal.labels
    moved = synthetic(problem) - images
    with torch.no_grad():
        clean, nothing = model(images), model(torch.zeros_like(images[:1]))
        pixels = torch.eye(images[0].numel(), dtype=images.dtype).view(-1, *images.shape[1:])
        weight = (model(pixels) - nothing).T  # (class, element)
    fewest = []
    for row, own in enumerate(labels.tolist()):
        gains = (weight - weight[own]) * moved[row].flatten()
        gains = gains.unflatten(1, (images.shape[1], -1)).sum(dim=1)
        closed = gains.sort(dim=1, descending=True).values.cumsum(dim=1)
        left = (clean[row, own] - clean[row]).unsqueeze(1) - closed
        wins_ties = torch.arange(len(weight)).unsqueeze(1) < own
        fooled = (left < 0) | ((left == 0) & wins_ties)
        fooled[own] = False
        fewest.append(1 + int((~fooled.any(dim=0)).int().cumprod(dim=0).sum()))
    return torch.tensor(fewest)


# Its operators


@pytest.mark.parametrize(
    ("query", "expected"),
    [(10, 0.2295), (100, 0.1603), (500, 0.0670), (1000, 0.0360), (5000, 0.0194), (10_000, 0.01645)],
)
def test_the_share_that_is_swapped_falls_as_published(query: int, expected: float) -> None:
    assert share(query, 0.3) == pytest.approx(expected, abs=5e-5)
    assert share(query, 0.05) == pytest.approx(expected / 6, abs=1e-5)


def test_colours_are_pure_and_each_as_likely_as_the_others() -> None:
    colours = synthetic(copies(500, (3, 4, 5)))
    assert ((colours == 0) | (colours == 1)).all()
    codes = (colours * torch.tensor([1, 2, 4]).view(3, 1, 1)).sum(dim=1).long().flatten()
    seen = torch.bincount(codes, minlength=8).double()
    assert chi_square(seen, torch.ones(8)) < 24.4  # seven degrees of freedom, 99.9 %


def test_random_masks_hold_k_pixels_each_as_likely_as_the_others() -> None:
    problem = copies(4000, (3, 3, 4))
    masks = Masks(problem, counts(problem, 5), problem.images)
    tried = masks.start(problem, 5, 0)
    assert (tried.sum(dim=1) == 5).all()
    seen = tried.sum(dim=0).double()
    scaled = chi_square(seen, torch.ones(12)) * 11 / 7  # 5 of 12 without replacement vary by less
    assert 1.8 < scaled < 31.3  # eleven degrees of freedom: both ends are beyond 99.9 %


def test_random_masks_lie_where_the_synthetic_image_differs() -> None:
    images = torch.zeros(200, 1, 3, 4).double()  # black, so that half of the colours are no change
    problem = problem_of(exact_linear(2, (1, 3, 4)), images)
    masks = Masks(problem, counts(problem, 3), images)
    useful = synthetic(problem).flatten(1) > 0
    tried = masks.start(problem, 3, 0)
    assert not (tried & ~useful).any()
    assert torch.equal(tried.sum(dim=1), useful.sum(dim=1).clamp(max=3))


def test_random_masks_are_parts_of_what_was_found_before() -> None:
    problem = copies(50, (3, 3, 4))
    found = problem.images.clone()
    found[:, :, 0] = synthetic(problem)[:, :, 0]
    tried = Masks(problem, counts(problem, 2), found).start(problem, 2, 0)
    assert (tried[:, :4].sum(dim=1) == 2).all()
    assert not tried[:, 4:].any()


def test_a_swap_leaves_out_and_takes_in_by_what_was_learnt() -> None:
    """One pixel of three goes, kept ones drawn by theta; one comes, by theta times difference."""
    problem = copies(20_000, (1, 2, 3))
    masks = Masks(problem, counts(problem, 3), problem.images)
    inside = torch.tensor([True, True, True, False, False, False])
    masks.best = inside.expand(20_000, 6)
    masks.fails = torch.tensor([0.0, 1, 3, 0, 2, 1]).expand(20_000, 6)
    masks.visits = torch.tensor([1.0, 2, 3, 0, 2, 4]).expand(20_000, 6)
    masks._apart = torch.tensor([0.5, 0.5, 0.5, 0.1, 0.4, 0.8]).expand(20_000, 6)
    tried = masks.swap(problem, 3, 0, 0.4)
    assert (tried[:, :3].sum(dim=1) == 2).all()
    assert (tried[:, 3:].sum(dim=1) == 1).all()
    theta = (masks.fails[0] + 0.01) / (masks.visits[0] + 0.01)
    taken_in = chi_square(tried[:, 3:].sum(dim=0).double(), (theta * masks._apart[0])[3:])
    a, b, c = (theta[:3] / theta[:3].sum()).tolist()
    kept = [a * b / (1 - a) + a * b / (1 - b), a * c / (1 - a) + a * c / (1 - c)]
    left_out = torch.tensor([1 - sum(kept), kept[1], kept[0]])
    assert taken_in < 13.8  # two degrees of freedom, 99.9 %
    assert chi_square((~tried[:, :3]).sum(dim=0).double(), left_out) < 13.8


def test_learns_from_a_swap_that_failed_and_one_that_helped() -> None:
    problem = copies(2, (1, 1, 4))
    masks = Masks(problem, counts(problem, 2), problem.images)
    first = torch.tensor([[True, True, False, False]]).expand(2, 4)
    masks.learn(first, torch.tensor([1.0, 1.0]), swapped=False)
    assert masks.visits.tolist() == [[1, 1, 0, 0]] * 2
    assert not masks.fails.any()
    second = torch.tensor([[True, False, True, False]]).expand(2, 4)
    masks.learn(second, torch.tensor([1.0, 0.5]), swapped=True)
    assert masks.visits.tolist() == [[2, 2, 1, 0]] * 2
    assert masks.fails.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]
    assert torch.equal(masks.best, torch.stack((first[0], second[0])))
    assert masks.loss.tolist() == [1.0, 0.5]


# How good it is


@pytest.mark.slow
@pytest.mark.parametrize("sure", [False, True])
def test_finds_the_optimum_of_its_own_colours(sure: bool) -> None:
    model, images = exact_linear(4, SMALL), exact_images(64, SMALL)
    problem = problem_of(model, sure_images(model, images) if sure else images)
    fewest = fewest_copied(problem)
    little = fewest <= (8 if sure else 4)
    assert little.sum() >= 40
    attack, part = BruSLe(queries=1000), problem[little]
    adv, met = attack._search(part, fewest[little], part.images, 0)
    assert met.double().mean() >= 0.9
    assert torch.equal(part.goal.met(model(adv)), met)
    fewer = (fewest[little] - 1).clamp_min(0)
    assert not BruSLe(queries=100)._search(part, fewer, part.images, 0)[1].any()


def test_one_pixel_less_than_the_true_optimum_is_never_enough() -> None:
    model, images = exact_linear(4, SMALL), exact_images(64, SMALL)
    images = sure_images(model, images)
    problem = problem_of(model, images)
    fewest = fewest_pixels(model, images, problem.goal).long()
    assert (fewest > 1).all()
    adv, met = BruSLe(queries=300)._search(problem, fewest - 1, images, 0)
    assert not met.any()
    assert torch.equal((adv != images).flatten(1).sum(dim=1), fewest - 1)  # its best try


@pytest.mark.slow
@pytest.mark.parametrize("sure", [False, True])
def test_the_smallest_k_is_the_optimum_of_its_own_colours(sure: bool) -> None:
    model, images = exact_linear(4, SMALL), exact_images(32, SMALL)
    images = sure_images(model, images) if sure else images
    problem = problem_of(model, images)
    result = run_attack(BruSLe(k="smallest", queries=300), model, images, problem.goal.labels)
    fewest = fewest_copied(problem)
    assert (result.needed_pixels >= fewest).all()
    assert (result.needed_pixels == fewest).double().mean() >= 0.9


def test_reaches_a_target(linear: Classifier, images: Tensor, targets: Tensor) -> None:
    labels = guesses(linear, images)
    result = run_attack(BruSLe(k=14, queries=500), linear, images, labels, targets=targets)
    assert result.success.double().mean() >= 0.5
    assert torch.equal(guesses(linear, result.adversarial) == targets, result.success)


def test_the_papers_settings_depend_on_the_goal(
    linear: Classifier, images: Tensor, targets: Tensor
) -> None:
    labels = guesses(linear, images)
    for goal, swap, queries in ((None, 0.3, 5000), (targets, 0.05, 10_000)):
        own = run_attack(BruSLe(k=14), linear, images, labels, targets=goal, max_forwards=60)
        named = BruSLe(k=14, swap=swap, queries=queries)
        same = run_attack(named, linear, images, labels, targets=goal, max_forwards=60)
        assert torch.equal(own.adversarial, same.adversarial)
        assert torch.equal(own.forwards, same.forwards)


def test_keeps_its_best_try_when_it_fails(curved: Classifier, images: Tensor) -> None:
    """More queries, the same random numbers: the try that is kept can only get better."""
    goal = Goal(guesses(curved, images))
    margins = []
    for queries in (1, 5, 20, 60):
        result = run_attack(BruSLe(k=2, queries=queries), curved, images, goal.labels)
        margins.append(goal.margin(result.adversarial_logits))
        assert (result.l0_pixels == 2).all()
    for before, after in pairwise(margins):
        assert (after <= before).all()
    assert (margins[-1] < margins[0]).any()


# What it asks


def test_an_image_is_asked_about_until_it_fools_and_never_once_too_often(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    asked: list[int] = []

    def count(batch: Tensor) -> Tensor:
        asked.append(len(batch))
        return linear(batch)

    for k, queries in ((1, 7), (1, 40), (12, 40)):
        asked.clear()
        problem = problem_of(
            Classifier(count), images, Goal(labels), max_forwards=queries, strict=True
        )
        _, met = BruSLe(queries=queries)._search(problem, counts(problem, k), images, 0)
        spent = problem.tally.forwards
        assert int(spent.sum()) == sum(asked)
        assert (spent[~met] == queries).all()
        assert (spent <= queries).all()
    assert met.any()  # with twelve pixels some leave early
    assert (spent[met] < queries).any()


def test_random_masks_may_fool(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    result = run_attack(BruSLe(k=25, queries=10), linear, images, labels)
    assert (result.success & (result.forwards < 10)).any()


def test_where_there_is_one_mask_alone_it_asks_once(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(BruSLe(k=1000, queries=50), linear, images, labels)
    assert (result.forwards == 1).all()
    assert (result.l0_pixels == 30).all()


def test_an_image_without_a_pixel_to_change_is_not_asked_about(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.ones_like(images, dtype=torch.bool)
    allowed[2] = False
    result = run_attack(BruSLe(k=3, queries=20), linear, images, labels, allowed=allowed)
    assert result.forwards[2] == 0
    assert torch.equal(result.adversarial[2], images[2])
    assert (result.forwards[[0, 1, 3, 4, 5]] > 0).all()
    shut = torch.zeros_like(allowed)
    assert (run_attack(BruSLe(), linear, images, labels, allowed=shut).forwards == 0).all()


def test_keeps_to_a_mask_of_channels(linear: Classifier, images: Tensor, labels: Tensor) -> None:
    allowed = torch.zeros_like(images, dtype=torch.bool)
    allowed[:, 1, :3] = True
    result = run_attack(BruSLe(k=4, queries=30), linear, images, labels, allowed=allowed)
    assert torch.equal(result.adversarial[~allowed], images[~allowed])
    assert (result.l0_pixels == 4).all()


def test_what_was_not_answered_for_want_of_queries_is_not_kept(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    none = run_attack(BruSLe(k=1), linear, images, labels, max_forwards=0)
    assert torch.equal(none.adversarial, images)
    few = run_attack(BruSLe(k=1), linear, images, labels, max_forwards=4)
    same = run_attack(BruSLe(k=1, queries=4), linear, images, labels)
    assert torch.equal(few.adversarial, same.adversarial)
    assert torch.equal(few.forwards, same.forwards)


def test_asks_a_function_that_gives_scores_alone(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    asked = score_model(lambda batch: linear(batch.double()), name="service", max_batch=4)
    attack, plain = BruSLe(k=3, queries=60), Classifier(lambda batch: linear(batch))
    result = run_attack(attack, asked, images, labels)
    assert torch.equal(result.adversarial, run_attack(attack, plain, images, labels).adversarial)
    assert result.success.any()
    assert (result.backwards == 0).all()


def test_a_model_that_gives_labels_alone_is_refused(images: Tensor, labels: Tensor) -> None:
    model = score_model(
        lambda batch: [0] * len(batch), name="labels", access="labels", classes=("a", "b")
    )
    with pytest.raises(BadInput, match="brusle needs scores"):
        run_attack(BruSLe(), model, images, labels)


def test_a_loss_is_one_of_two_or_the_papers() -> None:
    assert build({"name": "brusle", "loss": "margin"}) == BruSLe(loss="margin")
    with pytest.raises(BadInput, match="loss of brusle must be"):
        build({"name": "brusle", "loss": "hinge"})


def test_the_facts_say_what_it_costs_at_most() -> None:
    assert BruSLe().facts().max_forwards == 10_000  # towards a target, which takes more
    seeking = build({"name": "brusle", "k": "smallest", "queries": 100, "rounds": 4}).facts()
    assert (seeking.kind, seeking.max_forwards, seeking.max_backwards) == ("minimal", 400, 0)
    assert build({"name": "brusle", "preset": "targeted"}) == BruSLe(queries=10_000, swap=0.05)
