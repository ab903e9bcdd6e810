"""Several searches of Pinprick side by side: one call of the model per pass."""

import torch
from grey_images import any_change, grey
from torch import Tensor

from pinprick.attacks.pinprick.lockstep import Answer, Search, Turn, take_passes
from pinprick.parts.best import Best
from pinprick.parts.units import Units

ELEMENTS = Units("elements")
SHAPE = (1, 1, 4)


class Scripted:
    """A search whose candidates are known: in pass ``n`` the first ``n`` values are black."""

    def __init__(self, rows: list[int], passes: int, aims: list[int] | None = None) -> None:
        self.answers: list[Answer] = []
        self.passes, self.count = passes, len(rows)
        to = None if aims is None else torch.tensor(aims)
        self.turn = Turn(torch.tensor(rows), 0, self._search(), to, torch.zeros(len(rows)))

    def _search(self) -> Search:
        images = torch.full((self.count, *SHAPE), 0.5)
        for number in range(self.passes):
            adv = images.clone()
            adv[..., :number] = 0
            self.answers.append((yield adv))
        return Best(images)


def take(
    problem_size: int, searches: list[Scripted], passes: int, *, model: object = any_change
) -> Best:
    problem = grey(problem_size, model, SHAPE)  # type: ignore[arg-type]
    best = Best(problem.images)
    take_passes(problem, best, ELEMENTS, [one.turn for one in searches], passes, enough=1)
    return best


def test_all_turns_share_one_call_per_pass() -> None:
    calls: list[list[int]] = []

    def noting(images: Tensor) -> Tensor:
        calls.append((images.detach() == 0).flatten(1).sum(dim=1).tolist())
        return any_change(images)

    problem = grey(4, noting, SHAPE)
    calls.clear()
    searches = Scripted([0, 2], 9), Scripted([3], 9)
    best = Best(problem.images)
    take_passes(problem, best, ELEMENTS, [one.turn for one in searches], 3, enough=1)
    assert calls == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]
    assert problem.tally.forwards.tolist() == problem.tally.backwards.tolist() == [3, 0, 3, 3]
    assert best.cost.tolist() == [1, torch.inf, 1, 1]
    assert int((best.images[[0, 2, 3]] == 0).sum()) == 3
    assert torch.equal(best.images[1], problem.images[1])
    for one in searches:
        assert [answer.met.tolist() for answer in one.answers] == [
            [met] * one.count for met in (False, True, True)
        ]


def test_answers_go_to_the_turn_that_asked() -> None:
    """The third image is brighter, so its class leads by more."""

    def model(images: Tensor) -> Tensor:
        first = images.flatten(1).sum(dim=1)
        return torch.stack((first, torch.zeros_like(first)), dim=1)

    early, late = Scripted([1], 2), Scripted([2, 0], 3)
    take(3, [early, late], 1, model=model)
    (alone,), (both,) = early.answers, late.answers
    assert alone.margin.tolist() == [2]
    assert both.margin.tolist() == [2, 2]
    assert alone.grad.shape == (1, *SHAPE)
    assert both.grad.shape == (2, *SHAPE)


def test_a_turn_is_over_after_the_last_answer() -> None:
    search = Scripted([0], 3)
    best = take(1, [search], 2)
    assert search.turn.candidates is not None
    problem = grey(1, any_change, SHAPE)
    best.cost[:] = 4
    take_passes(problem, best, ELEMENTS, [search.turn], 1, enough=1)
    assert search.turn.candidates is None
    assert len(search.answers) == 3


def test_images_that_are_finished_or_refused_are_not_queried() -> None:
    problem = grey(4, any_change, SHAPE, most=50)
    problem.tally.refused[2] = True
    best = Best(problem.images)
    best.cost[:] = torch.tensor([3, torch.inf, torch.inf, 4])
    kept = best.images.clone()
    first, second = Scripted([0, 1], 9), Scripted([2, 3], 9)
    take_passes(problem, best, ELEMENTS, [first.turn, second.turn], 3, enough=3)
    assert problem.tally.forwards.tolist() == [0, 3, 0, 3]
    for search, silent in ((first, 0), (second, 0)):
        for answer in search.answers:
            assert answer.margin.isnan().tolist() == [True, False]
            assert answer.grad.flatten(1).any(dim=1).tolist() == [False, True]
            assert not answer.met[silent]
    assert first.answers[2].met.tolist() == [False, True]
    assert best.cost.tolist() == [3, 1, torch.inf, 1]
    assert torch.equal(best.images[[0, 2]], kept[[0, 2]])


def test_nothing_is_asked_where_all_are_finished() -> None:
    problem = grey(2, any_change, SHAPE)
    best = Best(problem.images)
    best.cost[:] = 1
    search = Scripted([0, 1], 9)
    take_passes(problem, best, ELEMENTS, [search.turn], 3, enough=1)
    assert not search.answers
    assert not problem.tally.forwards.any()


def test_the_slot_ends_once_all_are_refused() -> None:
    problem = grey(2, shape=SHAPE, most=4)
    search = Scripted([0, 1], 9)
    take_passes(problem, Best(problem.images), ELEMENTS, [search.turn], 9, enough=1)
    assert problem.tally.forwards.tolist() == [4, 4]
    assert len(search.answers) == 5  # the last one has no logits
    assert search.answers[-1].margin.isnan().all()
    assert not search.answers[-1].grad.any()


def test_aims_decide_the_gradient_and_not_the_margin() -> None:
    """Class 0 falls with the first value, class 1 is next and rises with the second."""

    def model(images: Tensor) -> Tensor:
        first, second, third, _ = images.flatten(1).unbind(dim=1)
        return torch.stack((8 + first, 4 - second, -2 * third), dim=1)

    free, aimed = Scripted([0], 3), Scripted([1, 2], 3, aims=[2, 1])
    take(3, [free, aimed], 1, model=model)
    assert free.answers[0].grad.flatten().tolist() == [1, 1, 0, 0]
    assert aimed.answers[0].grad.flatten(1).tolist() == [[1, 0, 2, 0], [1, 1, 0, 0]]
    assert free.answers[0].margin.tolist() == [5]  # 8.5 - 3.5
    assert aimed.answers[0].margin.tolist() == [5, 5]
