"""The selftest passes where all is well, and says what is wrong where it is not."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from pinprick import ATTACKS, Attack, BadInput, Card, Problem
from pinprick.backward import AT_ONCE
from pinprick.contract.check_attack import Verdict
from pinprick.selftest import FACTORS, SLOW, Factor, run_selftest
from pinprick.types import Images


def card(name: str) -> Card:
    return Card(
        name=name,
        title=name,
        norm="l0",
        unit="pixels",
        kind="minimal",
        access="gradients",
        targeted=False,
        paper="",
    )


@dataclass(frozen=True, kw_only=True)
class Wasteful(Attack):
    """Changes every pixel."""

    card: ClassVar[Card] = card("wasteful")

    def __call__(self, problem: Problem) -> Images:
        grad = problem.gradient(problem.images, problem.goal.margin)
        return (grad < 0).to(problem.images.dtype)


@dataclass(frozen=True, kw_only=True)
class Sneaky(Attack):
    """Asks the model behind the counter's back."""

    card: ClassVar[Card] = card("sneaky")

    def __call__(self, problem: Problem) -> Images:
        problem._model(problem.images)
        return problem.images


@dataclass(frozen=True, kw_only=True)
class Moody(Attack):
    """Never does the same thing twice."""

    card: ClassVar[Card] = card("moody")
    calls: ClassVar[list[int]] = []

    def __call__(self, problem: Problem) -> Images:
        self.calls.append(1)
        return problem.images * (0.5 if len(self.calls) % 2 else 1.0)


@dataclass(frozen=True, kw_only=True)
class Hesitant(Attack):
    """Does the same thing twice, but takes longer the second time."""

    card: ClassVar[Card] = card("hesitant")
    calls: ClassVar[list[int]] = []

    def __call__(self, problem: Problem) -> Images:
        self.calls.append(1)
        for _ in self.calls:
            problem.logits(problem.images)
        return problem.images


@dataclass(frozen=True, kw_only=True)
class Broken(Attack):
    """Raises."""

    card: ClassVar[Card] = card("broken")

    def __call__(self, problem: Problem) -> Images:
        raise ZeroDivisionError("out of zeros")


def verdict_on(attack: type[Attack], monkeypatch: pytest.MonkeyPatch) -> Verdict:
    name = attack.card.name
    monkeypatch.setitem(ATTACKS, name, attack)
    few = {one: ATTACKS[one] for one in (name, "fgsm")}  # all of them take a while
    monkeypatch.setattr("pinprick.selftest.ATTACKS", few)
    monkeypatch.setitem(FACTORS, name, Factor(leave=1.5, reach=1.5, proved=2.0))
    verdicts = {verdict.name: verdict for verdict in run_selftest()}
    assert verdicts["fgsm"].passed
    return verdicts[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_attack_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinprick.selftest.ATTACKS", {name: ATTACKS[name]})
    verdicts = run_selftest()
    assert [verdict for verdict in verdicts if not verdict.passed] == []
    assert [verdict.name for verdict in verdicts] == ["arithmetic", name]


@pytest.mark.slow
def test_a_quick_selftest_leaves_out_slow_attacks_alone() -> None:
    verdicts = run_selftest(quick=True)
    assert all(verdict.passed for verdict in verdicts)
    assert [verdict.name for verdict in verdicts] == [
        "arithmetic",
        *(name for name in ATTACKS if name not in SLOW),
    ]
    assert set(SLOW) < set(ATTACKS)


@pytest.mark.slow
def test_all_is_well_where_gradients_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(AT_ONCE, "cpu", 2**21)
    several = {one: ATTACKS[one] for one in ("deepfool", "sparsefool", "jsma", "pinprick")}
    monkeypatch.setattr("pinprick.selftest.ATTACKS", several)
    assert [verdict for verdict in run_selftest() if not verdict.passed] == []


def test_an_attack_far_from_the_optimum_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verdict_on(Wasteful, monkeypatch)
    assert not verdict.passed
    assert "times the fewest pixels, at most 1.5 allowed" in verdict.detail
    assert "times the proved optimum, at most 2.0 allowed" in verdict.detail


def test_passes_made_in_secret_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verdict_on(Sneaky, monkeypatch)
    assert not verdict.passed
    assert "counted 0 forward and 0 backward passes, but 8 and 0 were made" in verdict.detail


def test_an_attack_that_does_not_repeat_itself_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdict = verdict_on(Moody, monkeypatch)
    assert not verdict.passed
    assert "other images from the same seed" in verdict.detail


def test_an_attack_whose_passes_do_not_repeat_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verdict = verdict_on(Hesitant, monkeypatch)
    assert not verdict.passed
    assert "same images from the same seed, but after other passes" in verdict.detail


def test_an_attack_that_raises_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = verdict_on(Broken, monkeypatch)
    assert verdict == Verdict("broken", False, "ZeroDivisionError: out of zeros")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_all_is_well_on_the_gpu() -> None:
    assert [verdict for verdict in run_selftest("cuda") if not verdict.passed] == []


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="the device 'abacus' cannot be used"):
        run_selftest("abacus")
