"""``check_attack`` is silent about sound attacks, and says what others break."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from pinprick import Attack, BadInput, Card, Problem, check_attack, setting
from pinprick.attacks import IFGSM, Greedy
from pinprick.contract.check_attack import contract_verdicts
from pinprick.types import Images

CALLS: list[int] = []
BUDGET = Card(
    name="mine",
    title="Mine",
    norm="l2",
    kind="budget",
    access="gradients",
    targeted=True,
    masked=True,
    paper="",
)
Step = Callable[[Problem], Images]


def step(problem: Problem, length: float = 0.1) -> Images:
    """One step downhill, inside the box and the mask: it keeps the contract."""
    grad = problem.gradient(problem.images, problem.goal.margin)
    adv = (problem.images - length * grad.sign()).clamp(0, 1)
    return adv if problem.allowed is None else torch.where(problem.allowed, adv, problem.images)


@dataclass(frozen=True, kw_only=True)
class Mine(Attack):
    """Calls the step of its class."""

    card: ClassVar[Card] = BUDGET
    how: ClassVar[Step] = step

    length: float = setting(0.1, above=0)

    def __call__(self, problem: Problem) -> Images:
        return type(self).how(problem)


def make(how: Step, **facts: Any) -> Attack:
    """An attack that does this, with such facts on its card; importable by its name."""

    @dataclass(frozen=True, kw_only=True)
    class Other(Mine):
        pass

    Other.card, Other.how = replace(BUDGET, **facts), staticmethod(how)
    Other.__qualname__ = "Other"
    globals()["Other"] = Other
    return Other()


def breaks(attack: Attack, clause: str) -> str:
    """What the verdict on this clause says; it must have failed."""
    verdicts = {one.name: one for one in contract_verdicts(attack)}
    assert not verdicts[clause].passed, verdicts
    return verdicts[clause].detail


@pytest.mark.parametrize("attack", [Mine(), IFGSM(steps=2), Greedy(max_pixels=20)])
def test_a_sound_attack_breaks_nothing(attack: Attack, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_attack(attack) == []
    assert capsys.readouterr().out == (
        f"{attack.card.name} keeps 15 of 15 clauses of the contract\n"
    )


def test_what_is_broken_is_printed_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    broken = check_attack(make(lambda problem: problem.images))
    assert "passes are counted: It never asked the model." in broken
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == broken
    kept = 15 - len({line.partition(":")[0] for line in broken})
    assert last == f"mine keeps {kept} of 15 clauses of the contract"


def ask_in_secret(problem: Problem) -> Images:
    problem._model(problem.images)
    return step(problem)


def draw_globally(problem: Problem) -> Images:
    return step(problem, 0.05 + 0.1 * torch.rand(()).item())


def depend_on_the_batch(problem: Problem) -> Images:
    return step(problem, 0.01 * len(problem))


def ignore_the_mask(problem: Problem) -> Images:
    grad = problem.gradient(problem.images, problem.goal.margin)
    return (problem.images - 0.1 * grad.sign()).clamp(0, 1)


def step_uphill(problem: Problem) -> Images:
    return step(problem, -0.1)


def draw_from_numpy(problem: Problem) -> Images:
    np.random.rand()
    return step(problem)


def never_stop_at_refusal(problem: Problem) -> Images:
    assert problem.logits(problem.images).isfinite().all()
    return step(problem)


def need_two_columns(problem: Problem) -> Images:
    assert problem.images.shape[3] > 1
    return step(problem)


def leave_the_box(problem: Problem) -> Images:
    return problem.images + 2 * problem.gradient(problem.images, problem.goal.margin).sign()


def return_one_image(problem: Problem) -> Images:
    return step(problem)[:1]


def never_the_same(problem: Problem) -> Images:
    CALLS.append(1)
    return step(problem, 0.001 * len(CALLS))


@pytest.mark.parametrize(
    ("attack", "clause", "sentence"),
    [
        (make(step, kind="minimal"), "result is sound", "it fails; this one returned 3 changed im"),
        (make(step, max_forwards=0), "result is sound", "1 forward passes for one image, but its"),
        (make(step, norm="l0"), "card in order", "norm l0 and unit None; l0 and a unit go tog"),
        (make(ask_in_secret), "passes are counted", "made 12 forward passes, of which 6 went thr"),
        (make(step, access="scores"), "runs", "the model passes no gradient back"),
        (make(draw_globally), "leaves everything alone", "It changed the process: torch."),
        (make(draw_from_numpy), "leaves everything alone", "It changed the process: numpy keys."),
        (make(never_the_same), "repeats", "a second run with the same seed, without a trace: adv"),
        (make(step, random=True), "seed matters if the card says so", "another seed gives the sa"),
        (make(depend_on_the_batch), "neighbours do not matter", "depends on the batch it is in"),
        (make(step_uphill), "brings the goal nearer", "images are farther from the goal, without"),
        (make(step_uphill), "heads for targets or refuses them", "farther from the goal, with t"),
        (make(ignore_the_mask), "keeps to the mask or refuses it", "values it may not change: a"),
        (
            make(step, least_access="scores"),
            "asks no more than its card says",
            "It raised BadInput",
        ),
        (make(step, max_backwards=0), "costs what its card says", "On a constant model: It made 1"),
        (make(never_stop_at_refusal), "keeps to the limits", "It raised AssertionError (test_chec"),
        (make(need_two_columns), "runs on every kind of image", "images of shape (1, 1, 1)): "),
        (make(leave_the_box), "runs", "mine gave values outside [0, 1]: a bug in the attack"),
        (make(return_one_image), "runs", "returned a Tensor of shape (1, 3, 4, 5) for images of"),
    ],
)
def test_each_clause_finds_its_breach(attack: Attack, clause: str, sentence: str) -> None:
    globals()["Other"] = type(attack)
    assert sentence in breaks(attack, clause)


def test_a_class_that_no_name_leads_to_cannot_go_to_plain_data() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Hidden(Mine):
        """Defined inside a function."""

    detail = breaks(Hidden(), "goes to plain data and back")
    assert detail.startswith("build(describe(attack)) fails: no class of ")


def test_an_error_in_the_attack_names_its_line() -> None:
    def divide(problem: Problem) -> Images:
        raise ZeroDivisionError("out of zeros")

    (verdict,) = contract_verdicts(make(divide))
    assert verdict.detail.startswith("It raised ZeroDivisionError (test_check_attack.py, line ")
    assert verdict.detail.endswith("): out of zeros")


@pytest.mark.plain
def test_a_class_instead_of_an_attack_is_refused() -> None:
    with pytest.raises(BadInput, match="attack must come with its settings, as in Mine"):
        check_attack(Mine)  # type: ignore[arg-type]
