"""The explanation of one adversarial image, in plain numbers, with nothing left to work out.

Effects are changes of scores: *obscuring* is how far the score of the true class falls, *leading*
how far that of the other class rises. Their sum is how far the margin between the two falls.
"""

import math
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pinprick.errors import BadInput

Status = Literal["fooled", "failed", "skipped"]
Values = tuple[tuple[float, ...], ...]  # channel values per pixel


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What one group does, by one definition.

    Attributes:
        obscuring, leading: See above.
        margin: Their sum.
        balance: Their difference over the sum of their sizes: 1 all obscuring, -1 all leading; 0
            where both are zero.
        label: One of ``pinprick.explain.noise.labels.LABELS``, by its rule.
    """

    obscuring: float
    leading: float
    margin: float
    balance: float
    label: str


@dataclass(frozen=True, kw_only=True)
class ShapleyEffect(Effect):
    """The definition that is reported; standard errors are 0 where it is exact."""

    obscuring_error: float
    leading_error: float
    margin_error: float


@dataclass(frozen=True, kw_only=True)
class AblationEffect(Effect):
    """The mean of both sides, and each of them."""

    removed_obscuring: float
    removed_leading: float
    inserted_obscuring: float
    inserted_leading: float


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a group lies on the two maps.

    Attributes:
        label: One of ``pinprick.explain.noise.spatial.PLACES``.
        true_share, adversarial_share: Share of its change in the top area of either map.
        strict: "obscuring" or "leading" if the effect (Shapley) says so and the place agrees, in
            the top area of the true class's map or of the other's; else "".
    """

    label: str
    true_share: float
    adversarial_share: float
    strict: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of changed pixels and what it does.

    Attributes:
        number: From 0, in reading order.
        pixels: Row and column of each; empty where ``without_pixels`` dropped the lists.
        before, after: Channel values of each pixel in the clean and in the adversarial image.
        centre: Row and column of its centre, each pixel as heavy as its change.
        box: First row, first column, last row, last column.
        weight: Its share of the l1 size of the whole change.
        shapley, ablation, path: Its effects by three definitions; no path without gradients.
        place: Where it lies; None without maps.
    """

    number: int
    pixels: tuple[tuple[int, int], ...]
    before: Values
    after: Values
    centre: tuple[float, float]
    box: tuple[int, int, int, int]
    weight: float
    shapley: ShapleyEffect
    ablation: AblationEffect
    path: Effect | None
    place: Place | None


@dataclass(frozen=True, kw_only=True)
class State:
    """What the model says of one image between clean and adversarial.

    Attributes:
        guess: The class it takes it for.
        margin: How far the true class is ahead of the other one; below zero behind.
        true_score, adversarial_score: Of the two classes, in the gauge of the explanation.
        true_probability, adversarial_probability: Of the two classes.
    """

    guess: int
    margin: float
    true_score: float
    adversarial_score: float
    true_probability: float
    adversarial_probability: float


@dataclass(frozen=True, kw_only=True)
class Family:
    """What some groups do alone, or what is left without them.

    Attributes:
        name: One of ``pinprick.explain.noise.sufficiency.FAMILIES``.
        size: How many groups the family has; 0 is no test.
        changed: Numbers of the groups that are changed in the image asked about.
        state: What the model says of it.
        leaves: It is not taken for the true class.
        reaches: It is taken for the other class.
    """

    name: str
    size: int
    changed: tuple[int, ...]
    state: State
    leaves: bool
    reaches: bool


@dataclass(frozen=True, kw_only=True)
class MapTest:
    """Where the whole change lies on the maps; see ``pinprick.explain.noise.spatial``.

    Attributes:
        true_lift, true_p: On the clean image's map for the true class; NaN if that is zero.
        adversarial_lift, adversarial_p: On the adversarial image's map for the other class.
        control_lift, control_p: On the clean image's map for the other class; NaN if not given.
        inside_share, inside_chance, inside_p: Share of changed pixels in the top area of the true
            class's map, what chance would give, and the share of shifts that reach it.
        no_true_map, no_adversarial_map: The map was zero everywhere and says nothing.
    """

    true_lift: float
    true_p: float
    adversarial_lift: float
    adversarial_p: float
    control_lift: float
    control_p: float
    inside_share: float
    inside_chance: float
    inside_p: float
    no_true_map: bool
    no_adversarial_map: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why one adversarial image misleads, group by group.

    Attributes:
        id: The number of the image.
        model, attack: What was attacked, and by what with which settings.
        status: "fooled", "failed" (the goal is not met; explained all the same) or "skipped" (met
            before the attack, so that there is nothing to explain).
        remark: Why it failed, where that is known.
        label: The true class.
        target: The class that was wanted; None if any other would do.
        rival: The class that leading is about: the target, or else the one the adversarial image is
            taken for, or the one nearest to it if it is still taken for the true class.
        clean, adversarial: What the model says of both.
        settings: Those of the explanation.
        gauge: How logits became scores.
        changed_pixels, changed_elements: Places and channel values that differ.
        spare_pixels: Changed pixels that can be spared, each by itself; 0 means minimal, None that
            it is not known (a failed attack, or too many pixels to try each).
        most_spare_pixels: At most so many can be; the same where it is known. Less than all pixels
            where polishing tried some of them last; None for a failed attack.
        polished: What was counted when the result was polished; "" if it was not.
        settled: Polishing went on until nothing could be spared; False where it was cut off after
            so many passes, None where nothing was polished.
        obscuring, leading, margin: The whole change of both scores, and their sum.
        obscuring_share: ``obscuring / margin``; outside [0, 1] where the two work against each
            other, NaN where the margin did not change.
        tolerance: Below this an effect is too little to count.
        ratio: How many times larger than the other an effect must be.
        method: "exact" or "sampled"; "none" where nothing changed.
        pairs: Most pairs of orders drawn for a group; 0 if exact.
        largest_error: Largest standard error of a Shapley value, as a share of ``margin``.
        shapley_gap, ablation_gap, path_gap: What the effects of all groups leave of ``margin``, as
            a share of it. That of Shapley values is 0, but for rounding, if exact or if all
            groups have as many pairs. NaN where ``margin`` did not change, and without a path.
        path_steps: Points of the path integral.
        groups: In the order of their numbers.
        order: Numbers of the groups, the largest Shapley effect on the margin first.
        stages: The clean image, and after each group in this order is added.
        families: Sufficiency and necessity; empty where nothing changed.
        maps: Where the change lies; None without maps.
        forwards, backwards: Passes that the explanation took.
    """

    id: int
    model: str
    attack: dict[str, Any]
    status: Status
    remark: str
    label: int
    target: int | None
    rival: int
    clean: State
    adversarial: State
    settings: dict[str, Any]
    gauge: str
    changed_pixels: int
    changed_elements: int
    spare_pixels: int | None
    most_spare_pixels: int | None
    polished: str
    settled: bool | None
    obscuring: float
    leading: float
    margin: float
    obscuring_share: float
    tolerance: float
    ratio: float
    method: Literal["exact", "sampled", "none"]
    pairs: int
    largest_error: float
    shapley_gap: float
    ablation_gap: float
    path_gap: float
    path_steps: int
    groups: tuple[Group, ...]
    order: tuple[int, ...]
    stages: tuple[State, ...]
    families: tuple[Family, ...]
    maps: MapTest | None
    forwards: int
    backwards: int

    @property
    def minimal(self) -> bool | None:
        """No changed pixel can be spared; None if that was not looked at."""
        return None if self.spare_pixels is None else self.spare_pixels == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is not a finite number is None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Explanation":
        """The explanation that ``to_dict`` gave."""
        return from_plain(cls, data)


# Nested dataclasses as plain data for JSON, and back.
#
# What is not a finite number has no place in JSON: it becomes None, and comes back as NaN where the
# field is a number.


T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and text alone."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def from_plain(cls: type[T], data: Any) -> T:
    """The dataclass ``cls`` that ``to_plain`` made ``data`` of."""
    known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    if not isinstance(data, dict) or set(data) != known:
        wrong = set(data) ^ known if isinstance(data, dict) else {type(data).__name__}
        raise BadInput(f"this is no {cls.__name__} as pinprick writes it: see {sorted(wrong)[:3]}")
    hints = get_type_hints(cls)
    return cls(**{name: _field(hints[name], data[name]) for name in known})


def _field(kind: Any, data: Any) -> Any:
    if isinstance(kind, UnionType):
        if data is None and NoneType in get_args(kind):
            return None
        (kind,) = (one for one in get_args(kind) if one is not NoneType)
    if is_dataclass(kind):
        return from_plain(kind, data)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        each = inner[:1] * len(data) if inner[1:] == (...,) else inner
        return tuple(_field(one, item) for one, item in zip(each, data, strict=True))
    if kind is float:
        return math.nan if data is None else float(data)
    return data
