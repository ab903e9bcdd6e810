"""Several searches of Pinprick side by side: one call of the model per pass."""

from collections.abc import Callable

import pytest
import torch
from grey_images import any_change, grey
from torch import Tensor

from pinprick import Problem
from pinprick.attacks.pinprick.lockstep import Answer, Now, Search, Slot, take_passes
from pinprick.parts.best import Best
from pinprick.parts.units import Units

ELEMENTS = Units("elements")
SHAPE = (1, 1, 4)


class Scripted(Search):
    """A search whose candidates are known: in pass ``n`` of a slot ``n`` values are black."""

    def __init__(self, rows: list[int], aims: list[int] | None = None, length: int = 9) -> None:
        count = len(rows)
        images = torch.full((count, *SHAPE), 0.5)
        to = torch.full((count,), -1) if aims is None else torch.tensor(aims)
        lengths = torch.full((count,), length)
        super().__init__(
            torch.tensor(rows), to, Best(images), images, lengths, torch.zeros_like(lengths)
        )
        self.answers: list[Answer] = []
        self.slots: list[tuple[Problem, Units, int, int]] = []

    def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
        self.slots.append((problem, units, passes, done))
        self.adv = problem.images.clone()

        def learn(answer: Answer, now: Now) -> None:
            assert isinstance(now, int)
            self.answers.append(answer)
            self.found.offer(self.adv, answer.changed, answer.met)
            self.adv = problem.images.clone()
            self.adv[..., : now + 1] = 0

        return learn


def brightness(images: Tensor) -> Tensor:
    """Class 0 leads by the sum of all values."""
    first = images.flatten(1).sum(dim=1)
    return torch.stack((first, torch.zeros_like(first)), dim=1)


def shaded(model: Callable[[Tensor], Tensor], shades: list[float]) -> Problem:
    """Images of one value each."""
    problem = grey(len(shades), model, SHAPE)
    problem.images = torch.tensor(shades).view(-1, 1, 1, 1).expand(-1, *SHAPE).clone()
    return problem


def test_all_searches_share_one_call_per_pass() -> None:
    calls: list[list[int]] = []

    def noting(images: Tensor) -> Tensor:
        calls.append((images.detach() == 0).flatten(1).sum(dim=1).tolist())
        return any_change(images)

    problem = grey(4, noting, SHAPE)
    calls.clear()
    searches = Scripted([0, 2]), Scripted([3])
    take_passes(problem, ELEMENTS, searches, 3, done=0)
    assert calls == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert problem.tally.forwards.tolist() == problem.tally.backwards.tolist() == [3, 0, 3, 3]
    for search in searches:
        assert [answer.met.tolist() for answer in search.answers] == [
            [met] * len(search) for met in (False, True, True)
        ]
        assert search.found.cost.tolist() == [1] * len(search)
        assert (search.found.images == 0).flatten(1).sum(dim=1).tolist() == [1] * len(search)


def test_each_slot_has_the_images_of_its_search() -> None:
    problem = shaded(brightness, [0.1, 0.2, 0.3])
    searches = Scripted([1]), Scripted([2, 0])
    take_passes(problem, ELEMENTS, searches, 2, done=40)
    for search, shades in zip(searches, ([0.2], [0.3, 0.1]), strict=True):
        ((part, units, passes, done),) = search.slots
        assert part.images[:, 0, 0, 0].tolist() == pytest.approx(shades)
        assert (units, passes, done) == (ELEMENTS, 2, 40)


def test_answers_go_to_the_search_that_asked() -> None:
    problem = shaded(brightness, [0.25, 0.5, 0.75])
    alone, both = Scripted([1]), Scripted([2, 0])
    take_passes(problem, ELEMENTS, [alone, both], 2, done=0)
    assert [answer.margin.tolist() for answer in alone.answers] == [[2], [1.5]]
    assert [answer.margin.tolist() for answer in both.answers] == [[3, 1], [2.25, 0.75]]
    for search in (alone, both):
        for number, answer in enumerate(search.answers):
            assert answer.grad.tolist() == torch.ones(len(search), *SHAPE).tolist()
            assert answer.changed.tolist() == [number] * len(search)


def test_answers_count_what_the_attack_counts() -> None:
    class Colours(Scripted):
        def slot(self, problem: Problem, units: Units, passes: int, done: int) -> Slot:
            self.adv = torch.zeros_like(problem.images)
            return lambda answer, _: self.answers.append(answer)

    for unit, changed in (("elements", 12), ("pixels", 4)):
        search = Colours([0])
        take_passes(grey(1, shape=(3, 2, 2)), Units(unit), [search], 1, done=0)  # type: ignore[arg-type]
        assert search.answers[0].changed.tolist() == [changed]


def test_slots_add_up_and_a_search_is_over_after_all_its_passes() -> None:
    problem, search = grey(2, any_change, SHAPE), Scripted([0, 1], length=5)
    search.length[1] = 4
    over, steps = [], []
    for done in (0, 2, 4):
        steps.append(search.steps(2))
        take_passes(problem, ELEMENTS, [search], 2, done)
        over.append(search.over().tolist())
    assert over == [[False, False], [False, True], [True, True]]
    assert [done for *_, done in search.slots] == [0, 2, 4]
    assert [before.tolist() for before, _ in steps] == [[[n, n + 1]] * 2 for n in (0, 2, 4)]
    _, share = steps[1]
    torch.testing.assert_close(share, torch.tensor([[2 / 5, 3 / 5], [2 / 4, 3 / 4]]))


def test_images_that_leave_a_search_and_join_it_have_their_own_passes() -> None:
    problem = grey(4, any_change, SHAPE)
    early, late = Scripted([2, 0, 1]), Scripted([3])
    take_passes(problem, ELEMENTS, [early], 2, done=0)
    joined = Scripted.join([early[torch.tensor([2, 0])], late])
    assert (joined.rows.tolist(), joined.taken.tolist()) == ([1, 2, 3], [2, 2, 0])
    take_passes(problem, ELEMENTS, [joined], 3, done=2)
    assert joined.taken.tolist() == [5, 5, 3]
    assert problem.tally.forwards.tolist() == [2, 5, 5, 3]


def test_a_refused_image_is_not_queried_and_the_others_go_on() -> None:
    problem = grey(3, any_change, SHAPE, most=50)
    problem.tally.refused[2] = True
    first, second = Scripted([0]), Scripted([2, 1])
    take_passes(problem, ELEMENTS, [first, second], 3, done=0)
    assert problem.tally.forwards.tolist() == [3, 3, 0]
    for answer in second.answers:
        assert answer.margin.isnan().tolist() == [True, False]
        assert answer.grad.flatten(1).any(dim=1).tolist() == [False, True]
        assert not answer.met[0]
    assert first.found.cost.tolist() == [1]
    assert second.found.cost.tolist() == [torch.inf, 1]


def test_the_slot_ends_once_all_are_refused() -> None:
    problem = grey(2, shape=SHAPE, most=4)
    searches = Scripted([1]), Scripted([0])
    take_passes(problem, ELEMENTS, searches, 9, done=0)
    assert problem.tally.forwards.tolist() == [4, 4]
    for search in searches:
        assert len(search.answers) == 5  # the last one has no logits
        assert search.answers[-1].margin.isnan().all()
        assert not search.answers[-1].grad.any()


def test_aims_decide_the_gradient_and_not_the_margin() -> None:
    """Class 0 falls with the first value, class 1 is next and rises with the second."""

    def model(images: Tensor) -> Tensor:
        first, second, third, _ = images.flatten(1).unbind(dim=1)
        return torch.stack((8 + first, 4 - second, -2 * third), dim=1)

    free, aimed = Scripted([0]), Scripted([1, 2, 3], aims=[2, 1, -1])
    take_passes(grey(4, model, SHAPE), ELEMENTS, [free, aimed], 1, done=0)
    assert free.answers[0].grad.flatten().tolist() == [1, 1, 0, 0]
    assert aimed.answers[0].grad.flatten(1).tolist() == [
        [1, 0, 2, 0],
        [1, 1, 0, 0],
        [1, 1, 0, 0],
    ]
    assert free.answers[0].margin.tolist() == [5]  # 8.5 - 3.5
    assert aimed.answers[0].margin.tolist() == [5, 5, 5]


def test_an_aim_at_a_class_that_is_not_ahead_meets_any_goal() -> None:
    """The goal of the attack decides what counts as found, not the aim."""

    def model(images: Tensor) -> Tensor:
        other = (images < 0.5).flatten(1).any(dim=1).float()
        lead = images.flatten(1).sum(dim=1)
        return torch.stack((lead, 9 * other, -lead), dim=1)

    search = Scripted([0], aims=[2])
    take_passes(grey(1, model, SHAPE), ELEMENTS, [search], 2, done=0)
    assert [answer.met.tolist() for answer in search.answers] == [[False], [True]]
    assert search.answers[0].grad.flatten().tolist() == [2, 2, 2, 2]
    assert search.found.cost.tolist() == [1]
