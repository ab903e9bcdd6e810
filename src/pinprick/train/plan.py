"""A training as a value: all that decides which network comes out, as plain data and back."""

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

_HOW = ("compile", "graphs")  # settings that say how steps are run, and not which


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is trained, on what, and how.

    Attributes:
        data: Name of the data set, which presets go by.
        net: Name of the network: one of ``zoo.nets``, torchvision:NAME or timm:NAME.
        recipe: What the network is trained on.
        schedule: How long and how fast.
        exam: What is measured at the end.
        seed: Of all random numbers.
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
    """The preset for the three names, with ``options`` in place of its own settings.

    Options are those of the recipe, of the schedule and of the exam, by their names alone; an
    ``eps`` that is given is that of the exam too, unless it has one of its own. Values
    may come as text, such as "8/255" or "[[0, 128, 512], [0.4, 224, 224]]".
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
    """The description with what it lacks at its default: a setting may be younger than it."""
    try:
        recipe = find_recipe(described["recipe"]["name"])()
        default = describe_plan(
            Plan(data="", net="", recipe=recipe, schedule=Schedule(), exam=Exam())
        )
        filled = {
            home: {**default[home], **described[home]} for home in ("recipe", "schedule", "exam")
        }
    except (KeyError, TypeError, UnknownName):
        return described  # no description at all, or of a recipe that is not known here
    return {**described, **filled}


def what_decides(described: Any) -> Any:
    """The description as two trainings are compared by it: defaults filled in, and no word on how.

    How passes are started changes no more than the last bits of numbers.
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
