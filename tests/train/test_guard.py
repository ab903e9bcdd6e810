"""The guard: a network that collapses is taken back, and training goes on with more care."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from pinprick import Problem
from pinprick.train import Recipe, Standard
from pinprick.train.job import train_epochs
from pinprick.train.loop import Trainer
from pinprick.train.material import Material
from pinprick.train.plan import Plan
from pinprick.types import Images

PlanMaker = Callable[..., Plan]


@dataclass(frozen=True, kw_only=True)
class Ruinous(Recipe):
    """From the middle of the training on, pictures come with each other's labels."""

    name: ClassVar[str] = "ruinous"
    title: ClassVar[str] = "ruin"

    guard: bool = True
    way_out: bool = True

    def perturb(self, problem: Problem, strength: float) -> Images:
        return problem.images if strength <= 0.5 else problem.images.roll(1, dims=0)

    def probe(self, eps: float) -> Recipe:
        return Standard()

    def guarded(self) -> bool:
        return self.guard

    def careful(self) -> Recipe | None:
        return Standard() if self.way_out else None


@pytest.fixture
def plan(plan_for: PlanMaker) -> Plan:
    """The strength of the attack is the share of the training that is done."""
    made = plan_for("standard", epochs=6, ramp=1.0, batch_size=10, watch_images=100)
    return replace(made, recipe=Ruinous())


def test_a_collapse_is_taken_back_and_mended(plan: Plan, few: Material) -> None:
    trainer = Trainer(plan, few, "cpu")
    states = [trainer.tensors()]
    for epoch in trainer.epochs():
        states.append(trainer.tensors())
        if epoch.rolled_back:
            assert epoch.watched is not None
            assert epoch.watched < trainer.progress.best - 0.2
            assert all(torch.equal(states[-1][name], states[-2][name]) for name in states[-2])
    numbers = [entry["number"] for entry in trainer.progress.history]
    taken_back = [entry["number"] for entry in trainer.progress.history if entry["rolled_back"]]
    assert taken_back == [4]
    assert numbers == [1, 2, 3, 4, 4, 5, 6]
    assert trainer.progress.rollbacks == 1
    assert trainer.progress.history[-1]["accuracy"] >= 0.7


def test_without_the_guard_it_is_lost(plan: Plan, few: Material) -> None:
    trainer = Trainer(replace(plan, recipe=Ruinous(guard=False)), few, "cpu")
    assert not any(epoch.rolled_back for epoch in trainer.epochs())
    assert trainer.progress.history[-1]["accuracy"] <= 0.3


def test_where_nothing_more_careful_is_left_the_last_good_network_stays(
    plan: Plan, few: Material
) -> None:
    trainer = Trainer(replace(plan, recipe=Ruinous(way_out=False)), few, "cpu")
    epochs = list(trainer.epochs())
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4]
    assert epochs[-1].rolled_back
    assert (trainer.progress.epochs, trainer.progress.stopped) == (3, True)
    assert list(trainer.epochs()) == []


@pytest.mark.slow
def test_a_training_taken_up_after_a_roll_back_goes_on_as_before(
    plan: Plan, few: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinprick.train.plan.find_recipe", lambda name: Ruinous)
    whole = Trainer(plan, few, "cpu")
    list(whole.epochs())

    stopped = Trainer(plan, few, "cpu")
    for epoch in train_epochs(stopped, few, tmp_path):
        if epoch.rolled_back:
            break
    again = Trainer(plan, few, "cpu")
    list(train_epochs(again, few, tmp_path))
    assert again.progress.rollbacks == 1
    first, second = whole.tensors(), again.tensors()
    assert all(torch.equal(first[name], second[name]) for name in first)
