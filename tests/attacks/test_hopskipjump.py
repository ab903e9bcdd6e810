"""HopSkipJump: its two searches by hand, its estimate against the slope, and known distances."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, build, run_attack, score_model
from pinprick.attacks import HopSkipJump
from pinprick.attacks.hopskipjump import _directions, distance, estimate_gradient, leap, to_boundary
from pinprick.oracle import exact_images, exact_linear, nearest_l2, sure_images

SHAPE = (1, 4, 4)


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def half_space(weight: Tensor, threshold: float) -> Classifier:
    """Class 1 where ``weight * image`` adds up to more than ``threshold``, class 0 elsewhere."""

    def ask(images: Tensor) -> Tensor:
        over = ((weight * images).flatten(1).sum(dim=1) > threshold).to(images.dtype)
        return torch.stack((1 - over, over), dim=1)

    return Classifier(ask, access="labels", name="half space")


def leaving_zero(model: Classifier, images: Tensor, **settings: Any) -> Problem:
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    return Problem(model, images, goal, Streams(0, torch.arange(len(images))), **settings)


def mid_problem(weight: Tensor, count: int = 3, **settings: Any) -> Problem:
    """Grey images, fooled in the half-space where ``weight`` adds up to more than at 0.5."""
    images = torch.full((count, *SHAPE), 0.5).double()
    return leaving_zero(half_space(weight, 0.5 * weight.sum().item()), images, **settings)


@pytest.fixture
def weight() -> Tensor:
    return exact_images(1, SHAPE, seed=3)[0] - 0.5


# Its searches


def test_the_boundary_is_bisected_along_a_line() -> None:
    images = torch.zeros(2, 1, 1, 2).double()
    problem = leaving_zero(half_space(torch.ones(1, 1, 2), 0.6), images)
    far = torch.tensor([[1.0, 1.0], [0.8, 0.0]]).double().view(2, 1, 1, 2)
    left = torch.tensor([20, 20])
    near = to_boundary(problem, far, "l2", 10, left, torch.tensor([True, True]))
    assert left.tolist() == [10, 10]
    assert problem.forwards.tolist() == [10, 10]
    share = near.view(2, 2)[:, 0] / far.view(2, 2)[:, 0]
    torch.testing.assert_close(share, torch.tensor([0.3, 0.75]).double(), rtol=0, atol=2**-10)
    assert (near.flatten(1).sum(dim=1) > 0.6).all()


def test_in_linf_the_largest_changes_are_cut_off() -> None:
    images = torch.full((1, 1, 1, 3), 0.5).double()
    problem = leaving_zero(half_space(torch.ones(1, 1, 3), 1.875), images)
    far = torch.tensor([1.0, 0.625, 0.5]).double().view(1, 1, 1, 3)
    near = to_boundary(problem, far, "linf", 12, torch.tensor([20]), torch.tensor([True]))
    expected = torch.tensor([0.75, 0.625, 0.5]).double().view(1, 1, 1, 3)
    torch.testing.assert_close(near, expected, rtol=0, atol=2**-12)
    assert near[0, 0, 0, 1] == 0.625


def test_a_search_ends_with_its_questions_at_an_image_that_fools() -> None:
    images = torch.zeros(3, 1, 1, 2).double()
    problem = leaving_zero(half_space(torch.ones(1, 1, 2), 0.6), images)
    far, left = torch.ones_like(images), torch.tensor([0, 2, 9])
    near = to_boundary(problem, far, "l2", 5, left, torch.tensor([True, True, False]))
    assert near[:, 0, 0, 0].tolist() == [1.0, 0.5, 1.0]  # 0.25 does not fool
    assert left.tolist() == [0, 0, 9]
    assert problem.forwards.tolist() == [0, 2, 0]


def test_a_step_is_halved_until_it_fools() -> None:
    """Class 1 in a band: a step of 1 goes through it, one of a quarter ends inside."""

    def band(images: Tensor) -> Tensor:
        inside = ((images[:, 0, 0, 0] > 0.15) & (images[:, 0, 0, 0] < 0.3)).to(images.dtype)
        return torch.stack((1 - inside, inside), dim=1)

    images = torch.zeros(3, 1, 1, 1).double()
    problem = leaving_zero(Classifier(band), images)
    left, size = torch.tensor([50, 50, 4]), torch.tensor([1.0, 0.25, 1.0]).double()
    moved, fools = leap(problem, images, torch.ones_like(images), size, 20, left, 2)
    assert moved.flatten().tolist() == [0.25, 0.25, 0.0]
    assert fools.tolist() == [True, True, False]
    assert problem.forwards.tolist() == [3, 1, 2]
    assert left.tolist() == [47, 49, 2]


def test_distances_are_those_of_their_norm() -> None:
    images = torch.zeros(1, 1, 1, 2)
    adv = torch.tensor([0.3, -0.4]).view(1, 1, 1, 2)
    assert distance(adv, images, "l2").item() == pytest.approx(0.5)
    assert distance(adv, images, "linf").item() == pytest.approx(0.4)


# Its estimate


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_directions_have_length_one_and_are_the_same_in_any_batch(norm: Any) -> None:
    problem = mid_problem(torch.ones(SHAPE), count=4)
    some = list(_directions(problem, norm, problem.images, 40, 1))
    together = torch.cat([directions for _, directions in some], dim=1)
    assert torch.cat([numbers for numbers, _ in some]).tolist() == list(range(40))
    length = together.flatten(2).square().sum(dim=2)
    torch.testing.assert_close(length, torch.ones(4, 40).double())
    (_, alone), *_ = _directions(problem[torch.tensor([2])], norm, problem.images[:1], 40, 1)
    assert torch.equal(alone, together[2:3])
    other = next(_directions(problem, norm, problem.images, 40, 2))[1]
    assert not torch.equal(other, together)


def test_the_estimate_is_the_slope_of_a_plane(weight: Tensor) -> None:
    problem = mid_problem(weight)
    count = torch.full((3,), 2000)
    found = estimate_gradient(
        problem,
        problem.images,
        norm="l2",
        delta=torch.full((3,), 0.1).double(),
        samples=count,
        most=2000,
        step=1,
    )
    torch.testing.assert_close(found.flatten(1).norm(dim=1), torch.ones(3).double())
    cosine = (found * weight).flatten(1).sum(dim=1) / weight.norm()
    assert (cosine > 0.985).all()  # 16 elements: about 1 - pi / 2 * 16 / 2000 / 2
    assert torch.equal(problem.forwards, count)


def test_in_linf_the_estimate_is_its_signs(weight: Tensor) -> None:
    problem = mid_problem(weight)
    found = estimate_gradient(
        problem,
        problem.images,
        norm="linf",
        delta=torch.full((3,), 0.1).double(),
        samples=torch.full((3,), 2000),
        most=2000,
        step=1,
    )
    clear = weight.abs() > 0.1
    assert torch.equal(found[:, clear], weight.sign()[clear].expand(3, -1))


@pytest.mark.parametrize(("threshold", "sign"), [(-9.0, 1.0), (9.0, -1.0)])
def test_where_all_agree_the_estimate_is_their_mean(threshold: float, sign: float) -> None:
    images = torch.full((2, *SHAPE), 0.5).double()
    problem = leaving_zero(half_space(torch.ones(SHAPE), threshold), images)
    found = estimate_gradient(
        problem,
        images,
        norm="l2",
        delta=torch.full((2,), 0.1).double(),
        samples=torch.tensor([7, 20]),
        most=20,
        step=1,
    )
    _, directions = next(_directions(problem, "l2", images, 20, 1))
    mean = sign * torch.stack((directions[0, :7].sum(dim=0), directions[1].sum(dim=0)))
    torch.testing.assert_close(found, mean / mean.flatten(1).norm(dim=1).view(-1, 1, 1, 1))
    assert problem.forwards.tolist() == [7, 20]


def test_the_box_cuts_directions_off(weight: Tensor) -> None:
    """At the edge of the box what the model saw counts, not what was drawn."""
    images = torch.ones(1, *SHAPE).double()
    problem = leaving_zero(half_space(weight, weight.sum().item()), images)
    found = estimate_gradient(
        problem,
        images,
        norm="l2",
        delta=torch.full((1,), 0.1).double(),
        samples=torch.full((1,), 200),
        most=200,
        step=1,
    )
    drawn = torch.cat([some for _, some in _directions(problem, "l2", images, 200, 1)], dim=1)[0]
    assert (drawn > 0).any()
    seen = drawn.clamp_max(0)  # there is no way up
    phi = 2.0 * guesses(half_space(weight, weight.sum().item()), 1 + 0.1 * seen) - 1
    assert 0 < (phi > 0).sum() < 200
    slope = ((phi - phi.mean()).view(-1, 1, 1, 1) * seen).sum(dim=0)
    torch.testing.assert_close(found[0], slope / slope.norm(), rtol=1e-5, atol=1e-6)


# How near it comes


@pytest.mark.parametrize("classes", [2, 4])
def test_comes_near_the_boundary_of_a_linear_model(classes: int) -> None:
    model, images = exact_linear(classes, SHAPE), exact_images(24, SHAPE)
    labels = guesses(model, images)
    result = run_attack(HopSkipJump(queries=2000, samples=50), model, images, labels)
    nearest = nearest_l2(model, images, Goal(labels))
    inside = nearest < 0.3  # or the box is in the way
    assert inside.sum() >= 10
    assert result.success.all()
    ratio = (result.l2.double() / nearest)[inside]
    assert (ratio >= 1 - 1e-9).all()
    assert ratio.median() < 1.05
    assert ratio.mean() < 1.2


def test_comes_near_the_boundary_in_linf() -> None:
    model, images = exact_linear(2, SHAPE), exact_images(24, SHAPE)
    labels = guesses(model, images)
    attack = HopSkipJump(norm="linf", queries=2000, samples=50)
    result = run_attack(attack, model, images, labels)
    with torch.no_grad():
        logits = model(images)
        corners = torch.eye(16).double().view(16, *SHAPE)
        steer = (model(corners) - model(torch.zeros(1, *SHAPE).double()))[:, 0]
        steer = steer - (model(corners) - model(torch.zeros(1, *SHAPE).double()))[:, 1]
    nearest = (logits[:, 0] - logits[:, 1]).abs() / steer.abs().sum()
    inside = nearest < 0.1
    assert inside.sum() >= 10
    ratio = (result.linf.double() / nearest)[inside]
    assert (ratio >= 1 - 1e-9).all()
    assert ratio.median() < 1.1


def test_more_queries_come_nearer(curved: Classifier, images: Tensor) -> None:
    labels = guesses(curved, images)
    means = [
        run_attack(HopSkipJump(queries=queries), curved, images, labels).l2.mean().item()
        for queries in (20, 300, 1500)
    ]
    assert means[2] < means[1] < means[0]


def test_the_nearest_is_kept(curved: Classifier, images: Tensor) -> None:
    """More steps under the same random numbers never end farther away."""
    labels = guesses(curved, images)
    before = torch.full((6,), torch.inf)
    for steps in (1, 2, 3, 5):
        attack = HopSkipJump(steps=steps, samples=2, queries=5000)  # so few mislead at times
        result = run_attack(attack, curved, images, labels)
        assert (result.l2 <= before).all()
        before = result.l2


def test_reaches_a_target(linear: Classifier, images: Tensor, targets: Tensor) -> None:
    labels = guesses(linear, images)
    attack = HopSkipJump(queries=1000, samples=50)
    result = run_attack(attack, linear, images, labels, targets=targets)
    assert result.success.any()
    assert torch.equal(guesses(linear, result.adversarial) == targets, result.success)


def test_a_target_is_reached_from_an_image_of_its_class(
    linear: Classifier, images: Tensor, targets: Tensor
) -> None:
    labels, pool = guesses(linear, images), sure_images(linear, exact_images(16, (3, 6, 5)))
    start = torch.stack([pool[guesses(linear, pool) == target][0] for target in targets])
    attack = HopSkipJump(queries=1000, samples=50)
    result = run_attack(attack, linear, images, labels, targets=targets, start=start)
    assert torch.equal(guesses(linear, result.adversarial), targets)
    assert (result.l2 < 0.7 * (start - images).flatten(1).norm(dim=1)).all()
    assert (result.forwards <= 1000).all()
    one = run_attack(HopSkipJump(queries=1), linear, images, labels, targets=targets, start=start)
    assert torch.equal(one.adversarial, start)


# What it asks


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("queries", [1, 3, 12, 13, 40, 333])
def test_all_queries_are_used_and_none_beyond(weight: Tensor, norm: Any, queries: int) -> None:
    images = exact_images(5, SHAPE)
    model = half_space(weight, (weight * images).flatten(1).sum(dim=1).max().item())
    problem = leaving_zero(model, images, max_forwards=queries, strict=True)
    adv = HopSkipJump(norm=norm, queries=queries)(problem)  # raises where there is one too many
    found = (adv != images).flatten(1).any(dim=1)
    assert queries == 1 or found.any()
    assert (problem.forwards[found] >= queries - 9).all()  # too few are left for one more step


def test_estimates_grow_with_the_root_of_the_step() -> None:
    """A plane, steps that fool at once: what is asked can be added up."""
    model, images = exact_linear(2, SHAPE), exact_images(1, SHAPE)
    asked: list[int] = []

    def ask(batch: Tensor) -> Tensor:
        asked.append(len(batch))
        return model(batch)

    problem = Problem(
        Classifier(ask), images, Goal(guesses(model, images)), Streams(0, torch.arange(1))
    )
    HopSkipJump(steps=5, samples=100, tries=1000)(problem)
    assert [size for size in asked if size > 1] == [100, 141, 173, 200, 223]
    assert sum(asked) == int(problem.forwards)


def test_a_model_that_is_never_fooled_hears_of_noise_alone() -> None:
    images, labels = exact_images(3, SHAPE), torch.zeros(3, dtype=torch.long)
    never = half_space(torch.ones(SHAPE), 99.0)
    result = run_attack(HopSkipJump(tries=30), never, images, labels)
    assert result.forwards.tolist() == [30, 30, 30]
    assert torch.equal(result.adversarial, images)
    assert set(result.remarks) == {"not found"}


def test_the_callers_limit_keeps_what_was_found(curved: Classifier, images: Tensor) -> None:
    labels = guesses(curved, images)
    held = run_attack(HopSkipJump(), curved, images, labels, max_forwards=90)
    free = run_attack(HopSkipJump(queries=1000), curved, images, labels)
    assert (held.forwards <= 90).all()
    assert held.success.all()
    assert (held.l2 > free.l2).any()


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_keeps_to_a_mask(linear: Classifier, images: Tensor, norm: Any) -> None:
    labels = guesses(linear, images)
    allowed = torch.zeros_like(images, dtype=torch.bool)
    allowed[:, 1, :4] = True
    attack = HopSkipJump(norm=norm, queries=300, samples=20)
    result = run_attack(attack, linear, images, labels, allowed=allowed)
    assert result.success.any()
    assert torch.equal(result.adversarial[~allowed], images[~allowed])


def test_class_numbers_are_enough(linear: Classifier, images: Tensor) -> None:
    labels = guesses(linear, images)
    asked = score_model(
        lambda batch: guesses(linear, batch.double()),
        name="top",
        access="labels",
        classes=("a", "b", "c", "d"),
    )
    result = run_attack(HopSkipJump(queries=300), asked, images.float(), labels)
    assert result.success.all()
    assert (result.forwards <= 300).all()


def test_the_facts_say_what_it_costs_at_most() -> None:
    facts = HopSkipJump(queries=70, norm="linf").facts()
    assert (facts.max_forwards, facts.max_backwards, facts.norm) == (70, 0, "linf")
    assert facts.access == "labels"
    assert build({"name": "hopskipjump", "preset": "quick"}).facts().max_forwards == 1000
