"""A step that is recorded once and replayed, without a GPU: the recording calls the step again."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.recorded_step import RecordedStep


class Sums(BatchRows):
    """Three sums, of which one is a copy of another one step before."""

    def __init__(self) -> None:
        self.total, self.before = torch.zeros(2), torch.zeros(2)
        self.unchanged = torch.ones(2)


class Owner(BatchRows):
    def __init__(self) -> None:
        self.sums, self.numbers = Sums(), torch.zeros(1, dtype=torch.long)

    def step(self, adv: Tensor, logits: Tensor, grad: Tensor, number: Tensor) -> None:
        self.sums.before = self.sums.total
        self.sums.total = self.sums.total + adv + 2 * logits + 3 * grad * self.sums.unchanged
        self.numbers = self.numbers * 10 + number


class Fragile(Owner):
    """The second call fails half-way, as a step does that waits for the device."""

    calls = 0

    def step(self, adv: Tensor, logits: Tensor, grad: Tensor, number: Tensor) -> None:
        self.calls += 1
        if self.calls == 2:
            self.sums.total = torch.full((2,), torch.nan)
            raise RuntimeError("waiting is not allowed while recording")
        super().step(adv, logits, grad, number)


class Recorder:
    """Notes how often it records and replays."""

    def __init__(self, *, tries: bool = False) -> None:
        self.remark, self.tries, self.recorded, self.replayed = "", tries, 0, 0

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        if self.tries:
            work()

        def replay() -> None:
            self.replayed += 1
            work()

        return replay


def after(steps: int, recorder: Recorder | None, owner: Owner) -> tuple[Owner, list[Tensor]]:
    """The owner after some steps, and its total after each."""
    totals = []
    step = RecordedStep(owner.step, [owner], recorder) if recorder else None
    for number in range(3, 3 + steps):
        adv, logits, grad = (torch.full((2,), float(number + i)) for i in range(3))
        if step is None:
            owner.step(adv, logits, grad, torch.tensor([number]))
        else:
            step(adv, logits, grad, number)
        totals.append(owner.sums.total.clone())
    return owner, totals


@pytest.mark.parametrize("fails", [False, True])
def test_a_replayed_step_does_what_the_step_does(fails: bool) -> None:
    recorder = Recorder(tries=fails)
    owner, totals = after(5, recorder, Fragile() if fails else Owner())
    wanted, wanted_totals = after(5, None, Owner())
    assert torch.equal(torch.stack(totals), torch.stack(wanted_totals))
    assert torch.equal(owner.sums.before, wanted.sums.before)
    assert owner.numbers.tolist() == wanted.numbers.tolist() == [34567]
    assert recorder.recorded == 1
    assert recorder.replayed == (0 if fails else 4)
    waits = "waiting is not allowed while recording"
    assert recorder.remark == (f"steps of the attack cannot be recorded: {waits}" if fails else "")


def test_what_changes_stays_in_place_and_the_rest_is_not_copied() -> None:
    owner, recorder = Owner(), Recorder()
    step, unchanged = RecordedStep(owner.step, [owner], recorder), owner.sums.unchanged
    given = torch.ones(2), torch.ones(2), torch.ones(2)
    for number in range(2):
        step(*given, number)
    total = owner.sums.total
    step(*given, 2)
    assert owner.sums.total is total
    assert owner.sums.unchanged is unchanged


def test_nothing_is_recorded_once_that_failed() -> None:
    recorder = Recorder(tries=True)
    after(3, recorder, Fragile())
    after(3, recorder, Owner())
    assert recorder.recorded == 1
