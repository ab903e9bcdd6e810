"""Pinprick with one part left out.

The parts are taken out of the list of stages from outside, since the attack itself has no settings
for what is only ever worse. ``plans/ablation.toml`` names these attacks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar
from unittest.mock import patch

from pinprick.attacks.pinprick import attack
from pinprick.attacks.pinprick.plan import Stage, stages
from pinprick.problem import Problem
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class _OtherStages(attack.Pinprick):
    """Pinprick with other stages."""

    change: ClassVar[Callable[[Stage], Stage | None]]

    def __call__(self, problem: Problem) -> Images:
        def changed(units: int, *, targeted: bool) -> Iterator[Stage]:
            for stage in stages(units, targeted=targeted):
                if (other := type(self).change(stage)) is not None:
                    yield other

        with patch.object(attack, "stages", changed):
            return super().__call__(problem)


@dataclass(frozen=True, kw_only=True)
class WithoutTrims(_OtherStages):
    """No stage trims what it found."""

    change = staticmethod(lambda stage: replace(stage, trim=0))


@dataclass(frozen=True, kw_only=True)
class WithoutAnnealing(_OtherStages):
    """The stages that anneal are left out."""

    change = staticmethod(lambda stage: None if stage.kind == "anneal" else stage)


@dataclass(frozen=True, kw_only=True)
class WithoutAims(_OtherStages):
    """No stage heads for a class of its own, and classes are not ranked."""

    change = staticmethod(lambda stage: None if stage.kind == "rank" else replace(stage, aim=None))


@dataclass(frozen=True, kw_only=True)
class WithoutDraws(_OtherStages):
    """No stage draws its units at random."""

    change = staticmethod(lambda stage: replace(stage, temperature=0.0))


@dataclass(frozen=True, kw_only=True)
class AnnealingAlone(_OtherStages):
    """Annealing and its trims alone."""

    change = staticmethod(lambda stage: stage if stage.kind == "anneal" else None)
