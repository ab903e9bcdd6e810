"""The search for the smallest k, against cores whose smallest k is known."""

import torch
from torch import Tensor

from pinprick import Goal, Problem, Streams
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.smallest_k import Core, run_at_k, smallest_k
from pinprick.parts.units import Units

SHAPE = (3, 6, 5)


def problem(count: int, allowed: Tensor | None = None) -> Problem:
    return Problem(
        exact_linear(4, SHAPE),
        exact_images(count, SHAPE),
        Goal(torch.zeros(count, dtype=torch.long)),
        Streams(0, torch.arange(count)),
        allowed=allowed,
    )


class Bar:
    """A core that changes k elements and succeeds where ``succeeds`` says so of k and the trial.

    It remembers every k it was asked for, and its images are told apart by their random stream.
    """

    def __init__(self, whole: Problem, succeeds: list[set[int]], lucky_from: int = 0) -> None:
        self.keys = whole.rng.uniform(step=0, use="key")
        self.succeeds, self.lucky_from = succeeds, lucky_from
        self.asked: list[list[int]] = [[] for _ in succeeds]
        self.near: list[list[int]] = [[] for _ in succeeds]

    def __call__(self, part: Problem, k: Tensor, near: Tensor, trial: int) -> tuple[Tensor, Tensor]:
        adv, met = part.images.clone().flatten(1), []
        for row, key in enumerate(part.rng.uniform(step=0, use="key")):
            image = int((self.keys == key).nonzero())
            count = int(k[row])
            self.asked[image].append(count)
            self.near[image].append(int((near[row] != part.images[row]).sum()))
            adv[row, :count] = 0
            met.append(count in self.succeeds[image] and trial >= self.lucky_from)
        return adv.view_as(part.images), torch.tensor(met)


def elements(adv: Tensor, whole: Problem) -> list[int]:
    return (adv != whole.images).flatten(1).sum(dim=1).tolist()


def test_finds_every_smallest_k_that_there_can_be() -> None:
    most = 90
    whole = problem(most + 1)
    core = Bar(whole, [set(range(need, most + 1)) for need in range(1, most + 2)])
    adv = smallest_k(whole, core, Units("elements"), rounds=20)
    assert elements(adv, whole) == [*range(1, most + 1), 0]  # the last one never succeeds
    assert all(1 <= k <= most for asked in core.asked for k in asked)
    assert max(map(len, core.asked)) <= 11


def test_each_k_is_its_own_images_and_those_that_are_done_are_left_alone() -> None:
    whole = problem(2)
    core = Bar(whole, [set(range(1, 91)), set(range(80, 91))])
    smallest_k(whole, core, Units("elements"), rounds=20)
    assert core.asked[0] == [9, 3, 1]
    assert core.asked[1][:4] == [9, 28, 50, 67]
    assert core.asked[1][-2:] == [79, 79]


def test_one_fewer_is_tried_again_since_failure_proves_nothing() -> None:
    whole = problem(1)

    class Unlucky(Bar):
        """Fails at 4 the first time it is asked for that, and never again."""

        def __call__(
            self, part: Problem, k: Tensor, near: Tensor, trial: int
        ) -> tuple[Tensor, Tensor]:
            again = int(k[0]) in self.asked[0]
            adv, met = super().__call__(part, k, near, trial)
            return adv, met & ((k != 4) | again)

    needs_four = [set(range(4, 91))]
    patient = smallest_k(whole, Unlucky(whole, needs_four), Units("elements"), rounds=20)
    hasty = smallest_k(whole, Unlucky(whole, needs_four), Units("elements"), rounds=20, retries=0)
    assert elements(patient, whole) == [4]
    assert elements(hasty, whole) == [5]


def test_a_success_below_a_failure_is_kept() -> None:
    """At 9 it fails and at 28 it succeeds with 7 elements alone: the count decides, not k."""
    whole = problem(1)

    def core(part: Problem, k: Tensor, near: Tensor, trial: int) -> tuple[Tensor, Tensor]:
        adv = part.images.clone().flatten(1)
        adv[:, :7] = 0
        return adv.view_as(part.images), k == 28

    assert elements(smallest_k(whole, core, Units("elements"), rounds=20), whole) == [7]


def test_what_is_handed_back_met_the_goal_or_is_clean() -> None:
    whole = problem(3)
    core = Bar(whole, [{9}, {28, 11}, set()])
    adv = smallest_k(whole, core, Units("elements"), rounds=20)
    assert elements(adv, whole)[::2] == [9, 0]
    assert elements(adv, whole)[1] in (11, 28)


def test_rounds_are_the_most_that_an_image_is_tried() -> None:
    whole = problem(2)
    core = Bar(whole, [set(range(5, 91)), set()])
    adv = smallest_k(whole, core, Units("elements"), rounds=2)
    assert [len(asked) for asked in core.asked] == [2, 2]
    assert elements(adv, whole) == [9, 0]


def test_the_core_is_shown_the_sparsest_so_far() -> None:
    whole = problem(1)
    core = Bar(whole, [set(range(5, 91))])
    smallest_k(whole, core, Units("elements"), rounds=20)
    assert core.asked[0][:3] == [9, 3, 5]
    assert core.near[0][:4] == [0, 9, 9, 5]


def test_no_more_is_tried_than_may_change() -> None:
    allowed = torch.zeros(2, *SHAPE, dtype=torch.bool)
    allowed[0].flatten()[:12] = True
    whole = problem(2, allowed)
    core = Bar(whole, [set(), set()])
    smallest_k(whole, core, Units("elements"), rounds=20)
    assert max(core.asked[0]) == 12
    assert core.asked[1] == []
    core = Bar(whole, [set(), set()])
    allowed[1, 1:, 2, 3] = True
    smallest_k(whole, core, Units("pixels"), rounds=20)
    assert set(core.asked[1]) == {1}


def test_a_fixed_k_is_the_same_for_all() -> None:
    whole = problem(3)
    core: Core = Bar(whole, [{4}, {5}, {4}])
    adv = run_at_k(whole, core, Units("elements"), 4, rounds=20)
    assert elements(adv, whole) == [4, 4, 4]  # a budget attack gives its best try
