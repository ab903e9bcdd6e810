"""``package.module:Class`` and ``file.py:Class``: an attack in the user's own code.

Modules of the current folder are found too. An error inside that code keeps its traceback.
"""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from typing import Any, cast

from pinprick.attacks.card import Attack, Card
from pinprick.errors import BadInput, UnknownName
from pinprick.own_code import import_own, modules_from_here


def load_class(name: str, known: Iterable[str] = ()) -> type[Attack]:
    """The class that ``name`` stands for, if it can be used as an attack.

    Args:
        name: ``package.module:Class``, or ``file.py:Class``.
        known: The names of the attacks that come with the package, for suggestions.
    """
    module_name, _, class_name = name.rpartition(":")
    with modules_from_here():
        module = import_own(module_name, "an attack", known)
    if not hasattr(module, class_name):
        classes = {key: one for key, one in vars(module).items() if isinstance(one, type)}
        attacks = [key for key, one in classes.items() if _is_attack(one)]
        raise UnknownName(f"class of {module_name}", class_name, attacks or classes)
    found = getattr(module, class_name)
    if not isinstance(found, type):
        kind = "an object of the class" if isinstance(found, Attack) else "a"
        raise BadInput(f"{name} is {kind} {type(found).__name__}; give the name of a class")
    for flaw in flaws(found):
        raise BadInput(f"{name} {flaw}")
    return cast(type[Attack], found)


def flaws(cls: type) -> Iterator[str]:
    """What keeps a class from being used as an attack: "is abstract: ...", to follow its name."""
    if not issubclass(cls, Attack):
        yield "is not an attack: its class must derive from pinprick.Attack"
        return
    if inspect.isabstract(cls):
        missing = ", ".join(sorted(cls.__abstractmethods__))
        yield f"is abstract: it has no {missing}"
    if not isinstance(getattr(cls, "card", None), Card):
        yield "has no card: write card: ClassVar[Card] = Card(...) in its class"
    parameters: Any = vars(cls).get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        yield "is no frozen dataclass: write @dataclass(frozen=True, kw_only=True) above its class"
    else:
        for one in fields(cast(Any, cls)):
            if one.default is MISSING and one.default_factory is MISSING:
                yield f"has a setting without a default: give {one.name} one"


def _is_attack(cls: type) -> bool:
    return issubclass(cls, Attack) and not inspect.isabstract(cls)
