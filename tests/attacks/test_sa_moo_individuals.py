"""The operators of SA-MOO against their definitions: by hand, and by chi-square at a fixed seed."""

import math

import pytest
import torch
from torch import Tensor

from pinprick import Goal, Problem, Streams
from pinprick.attacks.sa_moo.individuals import Breeding, Individuals, Ranked, preferred_first
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.units import Units

DRAWS = 6000


def problem(count: int, shape: tuple[int, int, int], allowed: Tensor | None = None) -> Problem:
    images = exact_images(1, shape).expand(count, -1, -1, -1)
    goal, streams = Goal(torch.zeros(count).long()), Streams(5, torch.arange(count))
    return Problem(exact_linear(3, shape), images, goal, streams, allowed=allowed)


def breeding(whole: Problem, k: int | Tensor, zeros: float = 0.3, eps: float = 1.0) -> Breeding:
    counts = k if isinstance(k, Tensor) else torch.full((len(whole),), k)
    return Breeding(whole, Units("pixels"), counts, zeros=zeros, eps=eps, use="a test")


def people_with(members: list[int], units: int, sign: int, count: int = DRAWS) -> Individuals:
    """The same individual for every image, of one channel, all values one way."""
    inside = torch.zeros(count, 1, units, dtype=torch.bool)
    inside[:, :, members] = True
    return Individuals(inside, (sign * inside.to(torch.int8)).unsqueeze(2))


def assert_frequencies(outcomes: Tensor, expected: dict[int, float]) -> None:
    """Chi-square below what chance exceeds once in a thousand, and nothing else ever seen."""
    number = len(outcomes)
    seen = {value: int((outcomes == value).sum()) for value in expected}
    assert sum(seen.values()) == number
    terms = ((seen[v] - number * p) ** 2 / (number * p) for v, p in expected.items())
    freedom = len(expected) - 1
    spread = 2 / (9 * freedom)  # Wilson and Hilferty's quantile, 3.09 standard deviations up
    assert sum(terms) < freedom * (1 - spread + 3.09 * math.sqrt(spread)) ** 3


def as_numbers(members: Tensor) -> Tensor:
    """Each set as one number, a bit for each unit."""
    return (members.long() * 2 ** torch.arange(members.shape[-1])).sum(dim=-1).flatten()


def test_who_is_preferred() -> None:
    met = torch.tensor([[False, True, False, True, True]])
    cost = torch.tensor([[-9.0, 4.0, -10.0, 2.0, 4.0]])
    assert preferred_first(met, cost).tolist() == [[3, 1, 4, 2, 0]]


def test_what_was_never_answered_comes_last_whatever_the_others_lost() -> None:
    met = torch.tensor([[False, False, False]])
    cost = torch.tensor([[torch.inf, 1e30, torch.inf]])
    assert preferred_first(met, cost).tolist() == [[1, 0, 2]]


def test_a_child_takes_a_place_only_where_it_is_better() -> None:
    def ranked(member: int, met: list[bool], cost: list[float]) -> Ranked:
        people = people_with([member], 4, 1, count=len(met))
        return Ranked(people, torch.tensor(met).unsqueeze(1), torch.tensor(cost).unsqueeze(1))

    #         neither; loss falls,  ties,  child fools,  parent fools,  both: nearer, farther
    parent = ranked(0, [False, False, False, True, True, True], [3.0, 3.0, -1.0, 9.0, 2.0, 2.0])
    child = ranked(3, [False, False, True, False, True, True], [2.0, 3.0, 50.0, -5.0, 1.0, 3.0])
    left = Ranked.best([parent, child], 1)
    assert as_numbers(left.people.members).tolist() == [8, 1, 8, 1, 8, 1]
    assert left.cost.flatten().tolist() == [2.0, 3.0, 50.0, 9.0, 1.0, 2.0]
    both = Ranked.best([parent, child], 5)  # no more than there are
    assert both.met[:, 0].tolist() == [False, False, True, True, True, True]
    assert both.cost.shape == (6, 2)


def test_directions_lead_to_the_ends_of_the_box_or_nowhere() -> None:
    whole = problem(1, (1, 1, 3))
    clean = whole.images.flatten().tolist()
    signs = torch.tensor([-1, 0, 1], dtype=torch.int8).view(1, 1, 1, 3)
    someone = Individuals(torch.ones(1, 1, 3, dtype=torch.bool), signs)
    assert breeding(whole, 3).made(someone).flatten().tolist() == [0, clean[1], 1]
    near = breeding(whole, 3, eps=1 / 64).made(someone).flatten().tolist()
    assert near == [clean[0] - 1 / 64, clean[1], clean[2] + 1 / 64]


def test_first_sets_and_directions_have_their_frequencies() -> None:
    first = breeding(problem(DRAWS, (2, 2, 3)), 2).begin(problem(DRAWS, (2, 2, 3)).images, range(1))
    pairs = {2**a + 2**b: 1 / 15 for a in range(6) for b in range(a)}
    assert_frequencies(as_numbers(first.members), pairs)
    inside = first.members.unsqueeze(2).expand_as(first.signs)
    assert not first.signs[~inside].any()
    assert_frequencies(first.signs[inside], {-1: 0.35, 0: 0.3, 1: 0.35})


def test_individuals_of_one_image_are_drawn_apart() -> None:
    """Two sets of two in six, and two directions: as likely equal as chance has it."""
    whole = problem(DRAWS, (1, 2, 3))
    two = breeding(whole, 2).begin(whole.images, range(2))
    same = as_numbers(two.members[:, 0]) == as_numbers(two.members[:, 1])
    assert_frequencies(same.long(), {1: 1 / 15, 0: 14 / 15})


def test_mutation_replaces_random_members_by_random_others() -> None:
    parents = people_with([0, 1, 2, 3], 7, 1)
    child = breeding(problem(DRAWS, (1, 1, 7)), 4).mutate(parents, 0.5, range(3, 4))
    gone = [15 - 2**a - 2**b for a in range(4) for b in range(a)]
    come = [2**a + 2**b for a in range(4, 7) for b in range(4, a)]
    sets = {old + new: 1 / 18 for old in gone for new in come}
    assert_frequencies(as_numbers(child.members), sets)
    kept = child.members & parents.members
    assert (child.signs[:, 0][kept] == 1).all()
    assert_frequencies(child.signs[:, 0][child.members & ~kept], {-1: 0.35, 0: 0.3, 1: 0.35})


def test_mutation_replaces_one_at_least_and_no_more_than_there_are() -> None:
    whole = problem(DRAWS, (1, 1, 4))
    child = breeding(whole, 3).mutate(people_with([0, 1, 2], 4, 1), 0.1, range(1))
    assert_frequencies(as_numbers(child.members), {15 - 2**a: 1 / 3 for a in range(3)})
    child = breeding(whole, 3).mutate(people_with([0, 1, 2], 4, 1), 1.0, range(1))
    assert_frequencies(as_numbers(child.members), {15 - 2**a: 1 / 3 for a in range(3)})


def test_a_full_set_gets_new_directions() -> None:
    child = breeding(problem(DRAWS, (1, 1, 2)), 9).mutate(people_with([0, 1], 2, 1), 0.5, range(1))
    assert child.members.all()
    pairs = (3 * child.signs[:, 0, 0, 0] + child.signs[:, 0, 0, 1]).long()
    chance = {-2: 0.175, 1: 0.15, 4: 0.35, 2: 0.175, 3: 0.15}  # one of two is drawn anew
    assert_frequencies(pairs, chance)


def test_crossing_takes_what_the_other_has_and_it_lacks() -> None:
    one, other = people_with([0, 1, 2], 6, 1), people_with([2, 3, 4], 6, -1)
    child = breeding(problem(DRAWS, (1, 1, 6)), 3).cross(one, other, 0.4, range(1))
    sets = {7 - 2**old + 2**new: 1 / 6 for old in range(3) for new in (3, 4)}
    assert_frequencies(as_numbers(child.members), sets)
    signs = child.signs[:, 0, 0]
    assert (signs[:, :3] == child.members[:, 0, :3].to(torch.int8)).all()
    assert (signs[:, 3:] == -child.members[:, 0, 3:].to(torch.int8)).all()
    more = breeding(problem(DRAWS, (1, 1, 6)), 3).cross(one, other, 1.0, range(1))
    assert_frequencies(as_numbers(more.members), {24 + 2**a: 1 / 3 for a in range(3)})


def test_crossing_with_oneself_changes_nothing() -> None:
    one = people_with([0, 2, 5], 6, -1)
    child = breeding(problem(DRAWS, (1, 1, 6)), 3).cross(one, one, 1.0, range(1))
    assert torch.equal(child.members, one.members)
    assert torch.equal(child.signs, one.signs)


@pytest.mark.parametrize("masked", [False, True])
def test_every_set_has_k_members_that_may_change(masked: bool) -> None:
    allowed = exact_images(5, (3, 3, 4), seed=9) > 0.6 if masked else None
    whole = problem(5, (3, 3, 4), allowed)
    may = torch.ones(5, 12, dtype=torch.bool)
    may = may if allowed is None else allowed.any(dim=1).flatten(1)
    counts = torch.tensor([1, 2, 5, 7, 40])
    breed = breeding(whole, counts)
    people = breed.begin(whole.images, range(4))
    for start in range(4, 40, 4):
        others = people.choose(torch.tensor([[1, 0, 3, 2]]).expand(5, -1))
        people = breed.cross(people, others, 0.3, range(start, start + 4))
        people = breed.mutate(people, 0.4, range(start, start + 4))
        expected = torch.minimum(counts, may.sum(dim=1)).unsqueeze(1).expand(-1, 4)
        assert torch.equal(people.members.sum(dim=2), expected)
        assert not (people.members & ~may.unsqueeze(1)).any()
        assert not people.signs.masked_fill(people.members.unsqueeze(2), 0).any()
        made = breed.made(people)
        clean = whole.images.repeat_interleave(4, dim=0)
        assert (Units("pixels").count(made, clean) <= expected.flatten()).all()
        if allowed is not None:
            assert not ((made != clean) & ~allowed.repeat_interleave(4, dim=0)).any()


def test_a_search_for_fewer_begins_inside_what_was_found() -> None:
    whole = problem(DRAWS, (1, 2, 3))
    near = whole.images.clone()
    near[:, 0, 0] = torch.tensor([0.0, 1.0, 0.0])
    people = breeding(whole, 2).begin(near, range(1))
    assert_frequencies(as_numbers(people.members), {3: 1 / 3, 5: 1 / 3, 6: 1 / 3})
    made = breeding(whole, 2).made(people)
    changed = made != whole.images
    assert (made[changed] == near[changed]).all()
    assert (changed.flatten(1).sum(dim=1) == 2).all()
