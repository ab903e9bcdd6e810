"""Settings: every bound that is declared holds for every attack, recipe and other class of them."""

import math
import pickle
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from pinprick import ATTACKS, BadInput
from pinprick.attacks.pgd import PGD
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.settings import (
    Bounds,
    Settings,
    bounds_of,
    check_settings,
    pixel_distance,
    ranges_of,
    read_value,
    setting,
    types_of,
)
from pinprick.train import RECIPES
from pinprick.train.exam import Exam
from pinprick.train.schedule import Schedule

CLASSES: tuple[type[Settings], ...] = (
    *ATTACKS.values(),
    *RECIPES.values(),
    Schedule,
    Exam,
    NoiseSettings,
)
UNBOUNDED = {"WIFGSM.a", "NoiseSettings.seed"}  # any number will do, or any but 0
BESIDE = {
    "Pixle.most_side": {"least_side": 1},
    "SparseAT.passes": {"starts": 1},
    "NoiseSettings.max_pairs": {"least_pairs": 2},
}


each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))


def members(cls: type[Settings], name: str) -> str:
    return str(types_of(cls)[name])


def value_of(cls: type[Settings], name: str, number: float) -> Any:
    """A number as the setting's type asks for it."""
    hint = members(cls, name)
    whole: Any = int(number) if "int" in hint and not math.isinf(number) else float(number)
    return (whole,) if "tuple" in hint else whole


def outside(cls: type[Settings], name: str, bounds: Bounds) -> list[Any]:
    """The nearest values beyond each end."""
    whole = "int" in members(cls, name)
    ends = [end for end in (bounds.above, bounds.below) if end is not None]
    if bounds.least is not None:
        ends.append(bounds.least - 1 if whole else math.nextafter(bounds.least, -math.inf))
    if bounds.most is not None:
        ends.append(bounds.most + 1 if whole else math.nextafter(bounds.most, math.inf))
    return [value_of(cls, name, end) for end in ends]


@each_class
def test_a_value_just_outside_a_bound_is_refused(cls: type[Settings]) -> None:
    for name, bounds in bounds_of(cls).items():
        values = outside(cls, name, bounds)
        assert values, name
        if "float" in members(cls, name):
            values += [math.nan, math.inf]
        for value in values:
            with pytest.raises(BadInput) as caught:
                cls(**{name: value})
            assert str(caught.value).startswith(f"{cls.owner()} needs {name} {bounds}")
            assert ", got " in str(caught.value)


@each_class
def test_a_value_on_an_inclusive_bound_is_accepted(cls: type[Settings]) -> None:
    for name, bounds in bounds_of(cls).items():
        beside = BESIDE.get(f"{cls.__name__}.{name}", {})
        for end in (bounds.least, bounds.most):
            if end is not None:
                value = value_of(cls, name, end)
                assert getattr(cls(**{**beside, name: value}), name) == value


@each_class
def test_every_number_has_bounds_every_default_keeps_to_them_and_no_text_is_taken(
    cls: type[Settings],
) -> None:
    check_settings(cls, vars(cls()))
    for name, hint in types_of(cls).items():
        is_number = "int" in str(hint) or str(hint).startswith(("float", "<class 'float"))
        if is_number and f"{cls.__name__}.{name}" not in UNBOUNDED:
            assert name in bounds_of(cls)
        if "str" not in str(hint):
            with pytest.raises(BadInput, match=f"^{name} of {cls.owner()} must be "):
                cls(**{name: "5"})


@each_class
def test_settings_are_given_by_name(cls: type[Settings]) -> None:
    first = next(iter(vars(cls()).values()), None)
    with pytest.raises(
        TypeError, match=r"takes 1 positional argument but 2 were given|too many positional"
    ):
        cls(first)


@each_class
def test_settings_survive_copies(cls: type[Settings]) -> None:
    one = cls()
    assert pickle.loads(pickle.dumps(one)) == one == replace(one)  # type: ignore[type-var]
    assert hash(replace(one)) == hash(one)  # type: ignore[type-var]
    assert repr(one).startswith(f"{cls.__name__}(")


@dataclass(frozen=True, kw_only=True)
class Walk(Settings):
    """A setting of every kind.

    Attributes:
        steps: How many.
    """

    steps: int = setting(3, least=1)
    size: float | None = setting(None, above=0, most=1)
    share: float = setting(0.5, least=0, below=1)
    rate: float = setting(0.5, above=0, below=1, hint="0.5 is usual")
    odds: float = setting(0.5, least=0, most=1)
    depth: float = setting(0.0, below=4)
    width: float = setting(0.0, most=4)
    k: int | Literal["smallest"] = setting(1, least=1)
    sizes: tuple[int, ...] = setting((1,), least=1)
    eps: float = pixel_distance(0.1)
    unit: Literal["elements", "pixels"] = "pixels"
    halve: bool = False
    note: int | str = ""
    other: dict[str, int] | None = None


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"steps": 0}, "Walk needs steps >= 1, got 0"),
        ({"size": 0.0}, "Walk needs size above 0 and at most 1, or none, got 0"),
        ({"share": 1.0}, "Walk needs share from 0 to below 1, got 1"),
        ({"rate": 1.0}, "Walk needs rate above 0 and below 1, got 1; 0.5 is usual"),
        ({"odds": -0.1}, "Walk needs odds from 0 to 1, got -0.1"),
        ({"depth": 4}, "Walk needs depth < 4, got 4"),
        ({"width": 5.0}, "Walk needs width <= 4, got 5"),
        ({"width": -math.inf}, "Walk needs width <= 4, got -inf"),
        ({"k": 0}, "Walk needs k >= 1, or 'smallest', got 0"),
        ({"sizes": (2, 0)}, "Walk needs sizes >= 1, got (2, 0)"),
        (
            {"eps": 8},
            "Walk needs eps above 0 and at most 1, got 8; "
            "pixel values run from 0 to 1, so 8 of 255 levels are 8/255",
        ),
        ({"unit": "places"}, "unit of Walk must be one of 'elements', 'pixels', got 'places'"),
        ({"k": "fewest"}, "k of Walk must be int or 'smallest', got 'fewest'"),
        ({"k": True}, "k of Walk must be int or 'smallest', got True"),
        ({"steps": 2.0}, "steps of Walk must be int, got 2.0"),
        ({"steps": "2"}, "steps of Walk must be int, got '2'"),
        ({"size": "none"}, "size of Walk must be float or none, got 'none'"),
        ({"sizes": 5}, "sizes of Walk must be tuple, got 5"),
        ({"sizes": ("5",)}, "sizes of Walk must be tuple, got ('5',)"),
        ({"halve": "yes"}, "halve of Walk must be bool, got 'yes'"),
        ({"halve": 1}, "halve of Walk must be bool, got 1"),
    ],
)
def test_a_message_says_what_was_expected_and_what_came(given: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as caught:
        Walk(**given)
    assert str(caught.value) == line


def test_values_that_fit_are_taken_as_they_are() -> None:
    given: dict[str, Any] = {"k": "smallest", "size": 1, "note": "5", "other": {"a": 1}}
    walk = Walk(**given)
    assert {name: getattr(walk, name) for name in given} == given


def test_ranges_say_what_may_be_given() -> None:
    ranges = ranges_of(Walk)
    assert ranges["size"] == "above 0 and at most 1, or none"
    assert ranges["unit"] == "'elements' or 'pixels'"
    assert ranges["halve"] == "bool"
    assert ranges_of(PGD)["steps"] == ">= 1"


def test_an_attack_held_by_another_is_made_from_plain_data_alone() -> None:
    with pytest.raises(BadInput, match=r"^start of wifgsm must be Attack, got 'ifgsm'$"):
        ATTACKS["wifgsm"](start="ifgsm")


@pytest.mark.parametrize("text", ["5,10", "[5, 10]", [5, "10"]])
def test_a_list_may_come_as_text(text: Any) -> None:
    assert read_value(text, tuple[int, ...], "sizes of Walk") == (5, 10)


def test_describing_gives_plain_data() -> None:
    assert Walk(sizes=(2, 3)).describe()["sizes"] == [2, 3]


@dataclass(frozen=True)
class Quoted(Settings):
    """Settings whose annotations are text, given by position too."""

    steps: "int" = setting(3, least=1)


def test_annotations_may_be_text_and_settings_positional() -> None:
    with pytest.raises(BadInput, match=r"^Quoted needs steps >= 1, got 0$"):
        Quoted(0)
    with pytest.raises(BadInput, match=r"^steps of Quoted must be int, got 'x'$"):
        Quoted(steps="x")  # type: ignore[arg-type]
