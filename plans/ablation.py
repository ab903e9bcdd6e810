"""Pinprick with one part left out.

The attack itself has no settings for what is only ever worse. ``plans/ablation.toml`` names these
attacks.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from pinprick.attacks.pinprick.attack import Pinprick
from pinprick.attacks.pinprick.turns import Kind, Plan

WHOLE = Plan()
START, FAST, SLOW = WHOLE.kinds


def _with(*kinds: Kind) -> Plan:
    return replace(WHOLE, kinds=kinds)


@dataclass(frozen=True, kw_only=True)
class WithoutSignedSteps(Pinprick):
    """The first start opens gates from its first pass on."""

    plan: ClassVar[Plan] = replace(WHOLE, signed=0)


@dataclass(frozen=True, kw_only=True)
class WithoutTrims(Pinprick):
    """No start and no anneal is trimmed."""

    plan: ClassVar[Plan] = replace(WHOLE, first_trim=0, trim=0.0)


@dataclass(frozen=True, kw_only=True)
class WithoutAims(Pinprick):
    """No start heads for a class of its own, and classes are not ranked."""

    plan: ClassVar[Plan] = replace(WHOLE, rivals=0)


@dataclass(frozen=True, kw_only=True)
class WithoutDraws(Pinprick):
    """Later starts sort their gates, as the first one does."""

    plan: ClassVar[Plan] = _with(*(replace(kind, temperature=0.0) for kind in WHOLE.kinds))


@dataclass(frozen=True, kw_only=True)
class WithoutValueSteps(Pinprick):
    """Values stay as they are while a trim removes units."""

    plan: ClassVar[Plan] = replace(WHOLE, stride=0.0)


@dataclass(frozen=True, kw_only=True)
class WithoutAnnealsFirst(Pinprick):
    """Starts are tried before anneals, however many units an image needs."""

    plan: ClassVar[Plan] = replace(WHOLE, many=math.inf)


@dataclass(frozen=True, kw_only=True)
class WithoutFastAnneals(Pinprick):
    """Anneals are slow: their steps are half of the box."""

    plan: ClassVar[Plan] = _with(START, SLOW)


@dataclass(frozen=True, kw_only=True)
class WithoutSlowAnneals(Pinprick):
    """Anneals are fast: their steps are twice the box."""

    plan: ClassVar[Plan] = _with(START, FAST)


@dataclass(frozen=True, kw_only=True)
class WithoutAnnealing(Pinprick):
    """No turn anneals, so after the first turn every turn is a start."""

    plan: ClassVar[Plan] = _with(START)


@dataclass(frozen=True, kw_only=True)
class AnnealingAlone(Pinprick):
    """After the first turn every turn anneals."""

    plan: ClassVar[Plan] = _with(FAST, SLOW)
