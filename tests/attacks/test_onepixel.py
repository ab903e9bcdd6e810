"""OnePixel: how individuals are drawn, bred and painted, what is kept, and the oracle."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, build, run_attack, score_model
from pinprick.attacks import OnePixel
from pinprick.attacks.onepixel import draw_genes, draw_three, frame_of, mutate, paint
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images

FEW: dict[str, Any] = {"population": 70, "generations": 2}


def problem(images: Tensor, allowed: Tensor | None = None) -> Problem:
    shape = (images.shape[1], images.shape[2], images.shape[3])
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    streams = Streams(0, torch.arange(len(images)))
    return Problem(exact_linear(2, shape), images, goal, streams, allowed=allowed)


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def chance_of_even(outcomes: Tensor, number: int) -> float:
    """The p-value of Pearson's test that all outcomes are as frequent."""
    seen = torch.bincount(outcomes.flatten(), minlength=number).double()
    assert len(seen) == number
    expected = seen.sum() / number
    statistic = ((seen - expected).square() / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((number - 1) / 2).double(), statistic / 2))


class Asked:
    """A model that remembers the images it was asked about, and what it said."""

    def __init__(self, model: Classifier) -> None:
        self.model = model
        self.images: list[Tensor] = []
        self.logits: list[Tensor] = []

    def __call__(self, images: Tensor) -> Tensor:
        logits = self.model(images)
        self.images.append(images.clone())
        self.logits.append(logits)
        return logits

    def questions(self) -> tuple[Tensor, Tensor]:
        """All but the referee's own, of a run on a single image: 2 and 5 for the noise, then 2."""
        return torch.cat(self.images)[7:-2], torch.cat(self.logits)[7:-2]


# Individuals


def test_pixels_begin_anywhere_and_colours_around_the_middle() -> None:
    genes = draw_genes(problem(exact_images(8, (3, 4, 5))), 500, 2, "test")
    assert genes.shape == (8, 500, 2, 5)
    place = (genes[..., 0] * 4).long() * 5 + (genes[..., 1] * 5).long()
    assert chance_of_even(place, 20) > 0.01
    colours = genes[..., 2:]
    assert colours.min() == 0
    assert colours.max() == 1
    below = torch.special.ndtr(torch.tensor(-128 / 127))
    assert (colours == 0).float().mean() == pytest.approx(below.item(), abs=0.01)
    quarter = torch.special.ndtr(torch.tensor((0.25 * 255 - 128) / 127))
    assert (colours < 0.25).float().mean() == pytest.approx(quarter.item(), abs=0.01)


def test_three_distinct_parents_come_in_every_way_alike() -> None:
    parents = torch.stack(draw_three(problem(exact_images(8, (1, 2, 2))), 4, 1, "test"))
    assert parents.shape == (3, 8, 4)
    many = [draw_three(problem(exact_images(64, (1, 2, 2))), 4, step, "test") for step in range(20)]
    codes = torch.cat([(a * 16 + b * 4 + c).flatten() for a, b, c in many])
    assert chance_of_even(codes.unique(return_inverse=True)[1], 24) > 0.01


def test_a_child_is_one_parent_and_a_share_of_the_difference_of_two() -> None:
    whole = problem(exact_images(3, (1, 4, 4)))
    genes = 0.4 + 0.2 * draw_genes(whole, 6, 2, "test")  # no child leaves its range
    first, second, third = draw_three(whole, 6, 5, "test")
    for best in (None, torch.tensor([4, 0, 2])):
        children = mutate(whole, genes, best, 0.5, 5, "test")
        for row, i in product(range(3), range(6)):
            base = first[row, i] if best is None else best[row]
            a, b, c = genes[row, base], genes[row, second[row, i]], genes[row, third[row, i]]
            torch.testing.assert_close(children[row, i], a + 0.5 * (b - c))


def test_what_leaves_its_range_is_drawn_again() -> None:
    whole = problem(exact_images(16, (1, 4, 4)))
    genes = draw_genes(whole, 100, 1, "test").round()
    children = mutate(whole, genes, None, 0.5, 1, "test")
    assert ((children >= 0) & (children <= 1)).all()
    fresh = children[(children != 0) & (children != 0.5) & (children != 1)]
    assert len(fresh) > 1000
    assert chance_of_even((fresh * 10).long(), 10) > 0.01


def test_pixels_are_painted_where_the_genes_say() -> None:
    images = torch.full((2, 1, 2, 4), 0.5)
    row = [[0.9, 0.3, 0.25], [0.0, 1.0, 1.0], [0.6, 0.26, 0.0]]  # the third lies on the first
    whole = problem(images)
    genes = torch.tensor([row, row])
    adv = paint(whole, genes, torch.tensor([3, 1]), frame_of(whole))
    expected = torch.full((2, 1, 2, 4), 0.5)
    expected[:, 0, 1, 1] = 0.25
    expected[0, 0, 0, 3] = 1.0
    assert torch.equal(adv, expected)


def test_under_a_mask_pixels_lie_in_the_rectangle_around_it() -> None:
    images = exact_images(2, (3, 6, 5))
    allowed = torch.zeros(2, 3, 6, 5, dtype=torch.bool)
    allowed[0, :, 2, 1] = allowed[0, 1, 4, 3] = True
    allowed[1] = True
    whole = problem(images, allowed)
    frame = frame_of(whole)
    assert frame.tolist() == [[2, 1, 3, 3], [0, 0, 6, 5]]
    genes = draw_genes(whole, 200, 1, "test")
    for i in range(200):
        adv = paint(whole, genes[:, i], torch.tensor([1, 1]), frame)
        assert torch.equal(adv[~allowed], images[~allowed])
    attack = OnePixel(population=30, generations=0)
    result = run_attack(attack, exact_linear(4, (3, 6, 5)), images, [0, 0], allowed=allowed)
    assert (result.l0_pixels <= 1).all()


# The search


@pytest.mark.slow
def test_finds_the_one_pixel_of_a_linear_model_and_no_fewer() -> None:
    """At least 90 % of the images that one pixel can fool, at its best colour."""
    model, images = exact_linear(4, (3, 8, 8), seed=4), exact_images(64, (3, 8, 8), seed=6)
    labels = guesses(model, images)
    one = fewest_pixels(model, images, Goal(labels)) == 1
    assert 10 < one.sum() < 54
    result = run_attack(OnePixel(population=200, generations=40), model, images, labels)
    assert not result.success[~one].any()
    assert result.success[one].float().mean() >= 0.9
    assert (result.l0_pixels <= 1).all()


def test_reaches_targets() -> None:
    model, images = exact_linear(4, (3, 6, 5)), exact_images(12, (3, 6, 5))
    labels = guesses(model, images)
    targets = (labels + 1) % 4
    attack = OnePixel(k=6, population=60, generations=40, strategy="best1")
    result = run_attack(attack, model, images, labels, targets=targets)
    assert result.success.float().mean() >= 0.75
    assert torch.equal(guesses(model, result.adversarial) == targets, result.success)


def test_more_generations_never_do_worse_on_what_fails() -> None:
    model = exact_linear(4, (3, 6, 5), seed=2)
    images = sure_images(model, exact_images(8, (3, 6, 5)))
    labels = guesses(model, images)
    goal, before = Goal(labels), torch.full((8,), torch.inf).double()
    for generations in (0, 1, 5, 20):
        attack = OnePixel(population=20, generations=generations)
        result = run_attack(attack, model, images, labels)
        assert not result.success.any()
        assert (result.forwards == 20 * (generations + 1)).all()
        after = goal.cross_entropy(result.adversarial_logits)
        assert (after <= before).all()
        before = after


@pytest.mark.parametrize("limit", [1, 30, 69, 75, 140])
def test_what_was_found_is_kept_when_the_budget_runs_out(limit: int) -> None:
    """The limit falls inside a block; what is refused must not pass for the best."""
    model = exact_linear(4, (3, 6, 5), seed=2)
    images = sure_images(model, exact_images(4, (3, 6, 5)))
    labels = guesses(model, images)
    held = run_attack(OnePixel(**FEW), model, images, labels, max_forwards=limit)
    assert (held.forwards == limit).all()
    assert held.out_of_budget.all()
    for row in range(4):
        only = slice(row, row + 1)
        asked = Asked(model)
        ids = torch.tensor([row])
        run_attack(
            OnePixel(**FEW),
            Classifier(asked),
            images[only],
            labels[only],
            ids=ids,
            max_forwards=limit,
        )
        tried, logits = asked.questions()
        assert len(tried) == limit
        best = Goal(labels[only].expand(limit)).cross_entropy(logits).float().argmin()
        assert torch.equal(held.adversarial[row], tried[best])


def test_the_first_that_fools_is_kept_and_its_block_is_the_last(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(OnePixel(k=4, **FEW), linear, images, labels)
    assert result.success.any()
    for row in range(len(images)):
        only, ids = slice(row, row + 1), torch.tensor([row])
        asked = Asked(linear)
        run_attack(OnePixel(k=4, **FEW), Classifier(asked), images[only], labels[only], ids=ids)
        tried, logits = asked.questions()
        fools = logits.argmax(dim=1) != labels[row]
        assert fools.any() == result.success[row]
        if fools.any():
            first = int(fools.int().argmax())
            assert torch.equal(result.adversarial[row], tried[first])
            ends = [end for at in range(3) for end in (70 * at + 64, 70 * at + 70)]
            assert len(tried) == min(end for end in ends if end > first)


@pytest.mark.parametrize("k", [1, 4, 1000])
def test_never_changes_more_than_k(curved: Classifier, images: Tensor, k: int) -> None:
    labels = guesses(curved, images)
    result = run_attack(OnePixel(k=k, population=10, generations=2), curved, images, labels)
    assert (result.l0_pixels <= k).all()
    assert (result.l0_pixels > 0).all()


def test_a_k_beyond_the_image_is_all_of_it(curved: Classifier, images: Tensor) -> None:
    labels, pixels = guesses(curved, images), images[0, 0].numel()
    found = [
        run_attack(OnePixel(k=k, population=5, generations=1), curved, images, labels)
        for k in (pixels, 10**9)  # genes for so many would not fit into any memory
    ]
    assert torch.equal(found[0].adversarial, found[1].adversarial)


def test_the_smallest_k_is_sought_within_its_queries(curved: Classifier, images: Tensor) -> None:
    labels = guesses(curved, images)
    attack = OnePixel(k="smallest", population=20, generations=4)
    assert attack.facts().kind == "minimal"
    assert attack.facts().max_forwards == 1000
    result = run_attack(attack, curved, images, labels)
    assert result.success.any()
    assert (result.forwards <= 1000).all()
    fixed = run_attack(OnePixel(k=5, population=20, generations=4), curved, images, labels)
    assert (result.needed_pixels <= fixed.needed_pixels).all()


def test_a_function_that_gives_scores_is_enough() -> None:
    weight = torch.randn(3, 48, generator=torch.Generator().manual_seed(0))
    model = score_model(lambda images: (images.flatten(1) @ weight.T).tolist(), name="a function")
    images = exact_images(6, (3, 4, 4), dtype=torch.float32)
    labels = guesses(model, images)
    attack = OnePixel(k=5, population=40, generations=5)
    result = run_attack(attack, model, images, labels)
    assert result.success.any()
    wrong = (result.adversarial.flatten(1) @ weight.T).argmax(dim=1) != labels
    assert torch.equal(wrong, result.success)


# Settings


def test_the_papers_settings_are_the_defaults_and_a_cheap_preset_is_beside_them() -> None:
    assert OnePixel().facts().max_forwards == 40_400
    assert build({"name": "onepixel", "preset": "quick"}).facts().max_forwards == 1000
