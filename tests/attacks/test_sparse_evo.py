"""SparseEvo: its sets by hand and by frequency, what it asks, and how near it comes."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, build, run_attack, score_model
from pinprick.attacks import PGD, SparseEvo
from pinprick.attacks.sparse_evo import Population, Search
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images
from pinprick.parts.units import Units

PIXELS = Units("pixels")


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def problem_of(model: Classifier, images: Tensor, **settings: Any) -> Problem:
    goal = Goal(guesses(model, images))
    return Problem(model, images, goal, Streams(0, torch.arange(len(images))), **settings)


def copies(count: int, shape: tuple[int, int, int]) -> Problem:
    """One image many times, each with random numbers of its own."""
    return problem_of(exact_linear(2, shape), exact_images(1, shape).expand(count, -1, -1, -1))


def sets(*members: str) -> Tensor:
    """Sets as words of 0 and 1, one unit a letter, (member, unit)."""
    return torch.tensor([[letter == "1" for letter in word] for word in members])


def population(problem: Problem, *members: str) -> Population:
    """The same members for every image, nearest first, of a start that differs everywhere."""
    people = Population(problem.images, torch.ones_like(problem.images), PIXELS, len(members))
    people.masks = sets(*members).expand(len(problem), -1, -1).clone()
    return people


def brightness(threshold: float) -> Classifier:
    """Class 1 where the values add up to more than ``threshold``, class 0 elsewhere."""

    def ask(images: Tensor) -> Tensor:
        over = (images.flatten(1).sum(dim=1) > threshold).to(images.dtype)
        return torch.stack((1 - over, over), dim=1)

    return Classifier(ask, access="labels", name="brightness")


# Its sets


def test_a_child_is_inside_the_best_and_takes_each_unit_from_either_parent() -> None:
    problem = copies(6000, (1, 2, 5))
    people = population(problem, "1111111100", "1111100011", "0011111111")
    child = people.child(problem, crossover=0.7, mutation=0.01, step=0)
    assert not child[:, 8:].any()
    assert (child.sum(dim=1) < 8).all()  # one at least is put back
    # Of 8 units of the best, 2 are in the one parent alone, 3 in the other alone, 3 in both;
    # either may be the first, so a unit in one alone is taken half of the time; one then goes.
    kept = child.double().mean(dim=0)
    in_one = torch.cat((kept[:2], kept[5:8]))
    in_both = kept[2:5]
    assert (in_one - in_one.mean()).abs().max() < 0.03
    assert (in_both - in_both.mean()).abs().max() < 0.03
    total = 5 * in_one.mean() + 3 * in_both.mean()
    assert total.item() == pytest.approx(5 * 0.5 + 3 - 1, abs=0.05)


def test_every_unit_is_as_likely_to_be_put_back_as_the_others() -> None:
    problem = copies(6000, (1, 2, 5))
    people = population(problem, "1111111100", "1111111110", "1111111111")
    child = people.child(problem, crossover=0.5, mutation=0.3, step=0)
    assert (child.sum(dim=1) == 6).all()  # floor(0.3 * 8) are put back
    seen = (~child[:, :8]).sum(dim=0).double()
    chi_square = ((seen - 1500) ** 2 / 1500).sum().item() * 7 / 6  # 2 of 8 vary by less
    assert 0.6 < chi_square < 24.4  # seven degrees of freedom: both ends are beyond 99.9 %


def test_neither_parent_is_the_best_and_they_are_two() -> None:
    problem = copies(300, (1, 2, 5))
    people = population(problem, "1111111111", "1111100000", "0000011111", "1111100000")
    people.masks[:, 3] = people.masks[:, 1]
    child = people.child(problem, crossover=1.0, mutation=0.01, step=0)  # all of the first parent
    lower, upper = child[:, :5].sum(dim=1), child[:, 5:].sum(dim=1)
    assert ((lower == 4) ^ (upper == 4)).all()
    assert ((lower == 0) | (upper == 0)).all()
    assert (lower == 4).double().mean().item() == pytest.approx(2 / 3, abs=0.09)


def test_a_child_that_fools_is_the_best_and_the_farthest_makes_room() -> None:
    problem = copies(4, (1, 1, 4))
    people = population(problem, "1110", "1111", "1111")
    child = sets("1100", "0110", "1100", "0110")
    met, chosen = torch.tensor([True, False] * 2), torch.tensor([True, True, False, False])
    people.learn(child, met, chosen)
    assert torch.equal(people.best, sets("1100", "1110", "1110", "1110"))
    ranked = people.masks[torch.arange(4).unsqueeze(1), people.order]
    assert torch.equal(ranked[0], sets("1100", "1110", "1111"))
    for others in ranked[1:]:
        assert torch.equal(others, sets("1110", "1111", "1111"))
    assert torch.equal(people.tried, sets("0000", "1000", "0000", "0000"))


def test_what_was_put_back_in_vain_is_not_put_back_again() -> None:
    problem = copies(400, (1, 1, 4))
    people = population(problem, "1110", "1110", "1111")
    people.tried = sets("1010").expand(400, 4)
    child = people.child(problem, crossover=0.5, mutation=0.01, step=0)
    assert torch.equal(child, sets("1010").expand(400, 4))
    people.learn(child, torch.zeros(400, dtype=torch.bool), torch.ones(400, dtype=torch.bool))
    assert people.finished.all()


def test_it_is_over_where_no_other_child_can_be_made() -> None:
    problem = copies(4, (1, 1, 4))
    people = population(problem, "1110", "1111", "1111")
    people.masks[1, 0] = sets("0010")[0]  # one unit alone
    people.masks[2, 1] = sets("0111")[0]  # a member that lacks a unit of the best
    people.masks[3, :] = sets("1100", "0111", "1111")  # the same, but of two there is no choice
    people.tried = sets("1110", "0000", "1110", "1100")
    assert people.finished.tolist() == [True, True, False, True]
    people.tried = sets("1010", "0000", "0000", "0000")
    assert people.finished.tolist() == [False, True, False, False]


def test_members_are_ranked_by_their_distance() -> None:
    images = torch.zeros(1, 1, 1, 4).double()
    start = torch.tensor([0.9, 0.5, 0.5, 0.1]).double().view(1, 1, 1, 4)
    people = Population(images.repeat(2, 1, 1, 1), start.repeat(2, 1, 1, 1), PIXELS, 3)
    people.masks = sets("1000", "0111", "0011").repeat(2, 1, 1)
    people.rank(torch.tensor([True, False]))
    assert people.order.tolist() == [[2, 1, 0], [0, 1, 2]]  # 0.26, 0.51, 0.81
    made = torch.tensor([[0, 0, 0.5, 0.1], [0.9, 0, 0, 0]]).double()
    assert torch.equal(people.made(people.best), made.view(2, 1, 1, 4))


def test_a_new_start_is_the_best_with_as_many_others_of_the_given_one() -> None:
    problem = copies(500, (1, 3, 4))
    problem.start = 1 - problem.images
    search = Search(problem, PIXELS, 3)
    start = torch.zeros(500, 12, dtype=torch.bool)
    search.begin_again(problem, start, 0, tries=10)
    assert start.all()
    best = sets("110000000000").expand(500, 12)
    search.found = search.people.made(best)
    search.fewest = best.sum(dim=1)
    search.begin_again(problem, start, 1, tries=10)
    assert (start & best == best).all()
    assert (start.sum(dim=1) == 4).all()
    assert torch.equal(search.people.whole, start)
    seen = start[:, 2:].double().mean(dim=0)
    assert (seen - 0.2).abs().max() < 0.07
    made = search.people.made(start)
    differs = (made != problem.images).flatten(1)
    assert torch.equal(made.flatten(1)[differs], problem.start.flatten(1)[differs])


def test_noise_is_black_or_white_on_a_share_that_grows_and_starts_again() -> None:
    problem = copies(400, (3, 4, 5))
    search = Search(problem, PIXELS, 3)
    never, sizes, values = torch.zeros(400, dtype=torch.bool), [], []
    for step in range(6):
        start = torch.zeros(400, 20, dtype=torch.bool)
        search.begin_again(problem, start, step, tries=4)
        made = search.people.made(start)
        changed = made != problem.images
        sizes.append(start.sum(dim=1).unique().tolist())
        values.append(made.movedim(1, 3)[changed.all(dim=1)])
        search.learn(start, made, never, 0.1)
    assert sizes == [[5], [10], [15], [20], [5], [10]]
    colours = torch.cat(values)
    assert torch.equal(colours, colours[:, :1].expand(-1, 3))
    assert colours.unique().tolist() == [0, 1]
    assert colours.mean().item() == pytest.approx(0.5, abs=0.03)


# What comes of it


@pytest.mark.parametrize("needed", [1, 2, 3, 6])
def test_finds_the_fewest_of_pixels_that_count_alike(needed: int) -> None:
    images = torch.zeros(6, 1, 8, 8).double()
    result = run_attack(SparseEvo(queries=250), brightness(needed - 0.5), images, [0] * 6)
    assert result.l0_pixels.tolist() == [needed] * 6
    assert torch.equal(result.forwards < 250, torch.tensor([needed == 1]).expand(6))


def test_every_query_is_used_unless_one_pixel_fools(linear: Classifier, images: Tensor) -> None:
    result = run_attack(SparseEvo(queries=150), linear, images, guesses(linear, images))
    assert result.success.all()
    assert torch.equal(result.forwards == 150, result.l0_pixels > 1)
    assert (result.l0_pixels > 1).any()


def test_more_queries_find_no_more_pixels() -> None:
    """The queries of a longer search begin with those of a shorter one."""
    shape = (1, 8, 8)
    model = exact_linear(4, shape)
    images = sure_images(model, exact_images(8, shape))
    labels = guesses(model, images)
    few, many = (
        run_attack(SparseEvo(queries=queries), model, images, labels).needed_pixels
        for queries in (60, 200)
    )
    assert (many <= few).all()
    assert many.mean() < 0.9 * few.mean()


def test_values_are_those_of_the_noise_or_the_image(linear: Classifier, images: Tensor) -> None:
    result = run_attack(SparseEvo(queries=100), linear, images, guesses(linear, images))
    adv = result.adversarial
    assert ((adv == images) | (adv == 0) | (adv == 1)).all()
    changed = adv != images
    assert torch.equal(changed.any(dim=1), changed.all(dim=1))


def test_elements_are_put_back_by_themselves(linear: Classifier, images: Tensor) -> None:
    labels = guesses(linear, images)
    result = run_attack(SparseEvo(unit="elements", queries=100), linear, images, labels)
    by_pixels = run_attack(SparseEvo(queries=100), linear, images, labels)
    assert result.success.all()
    assert (result.l0_elements < 3 * result.l0_pixels).any()
    assert result.l0_elements.double().mean() < by_pixels.l0_elements.double().mean()


def test_comes_near_the_fewest_pixels() -> None:
    shape = (1, 8, 8)
    model = exact_linear(4, shape)
    images = sure_images(model, exact_images(32, shape))
    labels = guesses(model, images)
    result = run_attack(SparseEvo(queries=300), model, images, labels)
    fewest = fewest_pixels(model, images, Goal(labels))
    assert (result.needed_pixels >= fewest).all()
    assert (result.needed_pixels / fewest).mean() <= 1.35


def test_a_target_is_reached_from_an_image_of_its_class(
    linear: Classifier, images: Tensor, targets: Tensor
) -> None:
    labels, pool = guesses(linear, images), sure_images(linear, exact_images(16, (3, 6, 5)))
    start = torch.stack([pool[guesses(linear, pool) == target][0] for target in targets])
    attack = SparseEvo(queries=200)
    result = run_attack(attack, linear, images, labels, targets=targets, start=start)
    assert result.success.all()
    assert torch.equal(guesses(linear, result.adversarial), targets)
    changed = result.adversarial != images
    assert torch.equal(result.adversarial[changed], start[changed])
    assert (result.l0_pixels < 30).all()


def test_goes_on_from_the_result_of_another_attack(linear: Classifier, images: Tensor) -> None:
    labels = guesses(linear, images)
    dense = run_attack(PGD(eps=0.4), linear, images, labels)
    assert dense.success.all()
    result = run_attack(SparseEvo(queries=80), linear, images, labels, start=dense)
    changed = result.adversarial != images
    assert torch.equal(result.adversarial[changed], dense.adversarial[changed])
    assert (result.l0_pixels < dense.l0_pixels).all()
    one = run_attack(SparseEvo(queries=1), linear, images, labels, start=dense)
    assert torch.equal(one.adversarial, dense.adversarial)
    assert (one.forwards == 1).all()


def test_the_goal_decides_how_much_is_put_back() -> None:
    assert SparseEvo()._mutation(Goal(torch.tensor([0]))) == 0.04
    assert SparseEvo()._mutation(Goal(torch.tensor([0]), torch.tensor([1]))) == 0.01
    assert SparseEvo(mutation=0.2)._mutation(Goal(torch.tensor([0]))) == 0.2


# What it asks


def test_every_question_counts_those_for_the_noise_too() -> None:
    """A model that is never fooled is asked about the noise and nothing else."""
    asked: list[int] = []

    def never(images: Tensor) -> Tensor:
        asked.append(len(images))
        return torch.tensor([[1.0, 0.0]]).repeat(len(images), 1).to(images)

    images, labels = exact_images(3, (1, 4, 4)), torch.zeros(3, dtype=torch.long)
    attack = SparseEvo(queries=40, tries=30)
    result = run_attack(attack, Classifier(never, access="labels"), images, labels)
    assert result.forwards.tolist() == [40, 40, 40]
    assert sum(asked) == 120 + 10  # the referee's own
    assert torch.equal(result.adversarial, images)
    assert set(result.remarks) == {"not found"}


@pytest.mark.parametrize("queries", [1, 5, 17, 60, 120])
def test_no_question_is_asked_beyond_the_limit(queries: int) -> None:
    model, images = brightness(30.0), exact_images(5, (1, 8, 8)) / 2
    problem = problem_of(model, images, max_forwards=queries, strict=True)
    SparseEvo(queries=queries, first=0.1)(problem)  # raises where there is one too many
    assert (problem.forwards == queries).any()


def queried_sizes(attack: SparseEvo, least: int) -> list[int]:
    """Numbers of white pixels queried from a white start, where ``least`` of 16 fool."""
    sizes: list[int] = []

    def ask(images: Tensor) -> Tensor:
        sizes.append(int((images == 1).sum()))
        fools = torch.tensor([[sizes[-1] >= least]]).to(images.dtype)
        return torch.cat((1 - fools, fools), dim=1)

    images = torch.zeros(1, 1, 4, 4).double()
    problem = problem_of(Classifier(ask), images, start=torch.ones_like(images))
    sizes.clear()
    attack(problem)
    return sizes


def test_first_members_lose_fewer_pixels_until_they_fool() -> None:
    """The start must be kept whole: every first member is tried with 3, 2 and 1 pixels fewer."""
    sizes = queried_sizes(SparseEvo(queries=15, first=0.2, population=4), least=16)
    assert sizes == [16, *[13, 14, 15] * 4, 15, 15]


def test_first_members_that_fool_at_once_take_one_question_each() -> None:
    sizes = queried_sizes(SparseEvo(queries=30, first=0.2, population=5), least=13)
    assert sizes[:6] == [16] + [13] * 5
    assert sizes[6] < 13


def test_a_sparse_start_has_no_first_members() -> None:
    assert queried_sizes(SparseEvo(queries=3, first=0.06), least=16) == [16, 15, 15]


def test_the_callers_limit_keeps_what_was_found(linear: Classifier, images: Tensor) -> None:
    images = sure_images(linear, images)
    labels = guesses(linear, images)
    free = run_attack(SparseEvo(queries=150), linear, images, labels)
    held = run_attack(SparseEvo(queries=150), linear, images, labels, max_forwards=70)
    assert (held.forwards <= 70).all()
    assert held.success.any()
    assert (held.l0_pixels[held.success] >= free.l0_pixels[held.success]).all()
    assert (held.l0_pixels[held.success] > free.l0_pixels[held.success]).any()


def test_class_numbers_are_enough(linear: Classifier, images: Tensor) -> None:
    labels = guesses(linear, images)
    asked = score_model(
        lambda batch: guesses(linear, batch.double()),
        name="top",
        access="labels",
        classes=("a", "b", "c", "d"),
    )
    result = run_attack(SparseEvo(queries=80), asked, images, labels)
    plain = run_attack(SparseEvo(queries=80), linear, images, labels)
    assert torch.equal(result.adversarial, plain.adversarial)
    assert torch.equal(result.forwards, plain.forwards)
    assert result.success.all()


def test_the_facts_say_what_it_costs_at_most() -> None:
    facts = SparseEvo(queries=70, unit="elements").facts()
    assert (facts.max_forwards, facts.max_backwards, facts.unit) == (70, 0, "elements")
    assert facts.access == "labels"
    assert build({"name": "sparse_evo", "preset": "imagenet"}).facts().max_forwards == 20_000
