"""A training plan: everything that decides the trained network, as plain data and back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinprick.errors import BadInput, UnknownName
from pinprick.settings import read_value, types_of
from pinprick.train import find_recipe
from pinprick.train.exam import Exam
from pinprick.train.presets import preset
from pinprick.train.recipes.recipe import Recipe
from pinprick.train.schedule import Schedule

_HOW = ("compile", "graphs")  # settings that change the speed, and results only by rounding


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to train, on which data, and how.

    Attributes:
        data: Name of the data set, which presets go by.
        net: Name of the network: one of ``zoo.nets``, torchvision:NAME or timm:NAME.
        recipe: How training images are perturbed.
        schedule: Epochs, learning rate, loss and augmentation.
        exam: The final measurements.
        seed: Seed of all random numbers.
    """

    data: str
    net: str
    recipe: Recipe
    schedule: Schedule
    exam: Exam
    seed: int = 0


def build_plan(
    *, data: str, net: str, recipe: str, options: Mapping[str, Any] | None = None, seed: int = 0
) -> Plan:
    """The preset for data, network and recipe, with ``options`` in place of its own settings.

    Options are settings of the recipe, the schedule and the exam by name. A given ``eps`` is also
    the exam's, unless ``exam_eps`` is given. Values may be text, such as "8/255" or
    "[[0, 128, 512], [0.4, 224, 224]]".
    """
    given = dict(options or {})
    if "eps" in given:
        given.setdefault("exam_eps", given["eps"])
    kinds = {"recipe": find_recipe(recipe), "schedule": Schedule, "exam": Exam}
    homes = {key: home for home, cls in kinds.items() for key in types_of(cls)}
    values: dict[str, dict[str, Any]] = {home: {} for home in kinds}
    for key, value in {**preset(data, net, recipe), **given}.items():
        if key not in homes:
            raise UnknownName(f"option of training with {recipe}", key, homes)
        hint = types_of(kinds[homes[key]])[key]
        values[homes[key]][key] = read_value(value, hint, f"{key} of {recipe}")
    return Plan(
        data=data,
        net=net,
        recipe=kinds["recipe"](**values["recipe"]),
        schedule=Schedule(**values["schedule"]),
        exam=Exam(**values["exam"]),
        seed=seed,
    )


def describe_plan(plan: Plan) -> dict[str, Any]:
    """The plan as plain data, with every default spelled out."""
    return {
        "data": plan.data,
        "net": plan.net,
        "recipe": plan.recipe.describe(),
        "schedule": plan.schedule.describe(),
        "exam": plan.exam.describe(),
        "seed": plan.seed,
    }


def read_plan(described: Mapping[str, Any]) -> Plan:
    """The plan that ``describe_plan`` gave, so that ``read_plan(describe_plan(p)) == p``."""
    described = with_defaults(described)
    try:
        recipe = dict(described["recipe"])
        name = recipe.pop("name")
        options = {**recipe, **described["schedule"], **described["exam"]}
        data, net, seed = described["data"], described["net"], described["seed"]
    except (KeyError, TypeError, ValueError):
        raise BadInput(f"this is no plan of a training: {described!r}") from None
    return build_plan(data=data, net=net, recipe=name, options=options, seed=seed)


def with_defaults(described: Any) -> Any:
    """The description with defaults for settings that are younger than it."""
    try:
        recipe = find_recipe(described["recipe"]["name"])()
        default = describe_plan(
            Plan(data="", net="", recipe=recipe, schedule=Schedule(), exam=Exam())
        )
        filled = {
            home: {**default[home], **described[home]} for home in ("recipe", "schedule", "exam")
        }
    except (KeyError, TypeError, UnknownName):
        return described  # no description, or of an unknown recipe
    return {**described, **filled}


def what_decides(described: Any) -> Any:
    """The description without settings of speed, to compare two trainings by.

    Those settings change results only by rounding.
    """
    described = with_defaults(described)
    if isinstance(described, Mapping) and isinstance(described.get("schedule"), Mapping):
        decides = {key: value for key, value in described["schedule"].items() if key not in _HOW}
        return {**described, "schedule": decides}
    return described


def difference(there: Any, here: Any, name: str = "") -> str:
    """The first setting in which two descriptions differ, in words; empty if there is none."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in {**there, **here}:
            found = difference(there.get(key), here.get(key), key)
            if found:
                return found
        return ""
    return "" if there == here else f"{name} {there} there, {here} here"
