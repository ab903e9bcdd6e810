"""The reference for Python, made from docstrings: arguments, a result, public names."""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from pinprick.result import AttackResult, Failure
from pinprick.settings import meanings_of, read_section

CONSTANTS = {"ATTACKS": "The attacks that come with the package, by name."}


def python_reference(homes: Mapping[str, str]) -> str:
    """Sections on ``run_attack``, every part of ``AttackResult``, failures, and public names.

    Args:
        homes: The module of each public name, below ``pinprick``.
    """
    public = {
        name: getattr(import_module(f"pinprick.{home}"), name) for name, home in homes.items()
    }
    arguments = read_section(inspect.getdoc(public["run_attack"]) or "", "Args")
    return "\n".join(
        [
            "## Arguments of `run_attack`",
            "",
            *wrapped_list(_with_defaults(public["run_attack"], arguments)),
            "",
            "## Fields of `AttackResult`: what was measured",
            "",
            *wrapped_list(_field_meanings()),
            "",
            "## Properties of `AttackResult`: what is computed from it",
            "",
            *_table("property", {name: _opening(one) for name, one in _members(is_method=False)}),
            "",
            "## Methods of `AttackResult`",
            "",
            *_table(
                "method",
                {_call(name, one): _opening(one) for name, one in _members(is_method=True)},
            ),
            "",
            "## `Failure`: why an image failed",
            "",
            *_table("reason", {f"Failure.{one.name}": one.value for one in Failure}),
            "",
            "## Public names",
            "",
            *_table(
                "name",
                {name: CONSTANTS.get(name) or _opening(one) for name, one in public.items()},
            ),
        ]
    )


def wrapped_list(meanings: Mapping[str, str]) -> Iterable[str]:
    """A Markdown list of code and its meaning, in lines of at most 100 characters."""
    for name, meaning in meanings.items():
        text = f"- `{name}`: {meaning.replace('``', '`')}"
        yield from textwrap.wrap(
            text, 100, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )


def _with_defaults(function: Callable[..., Any], meanings: Mapping[str, str]) -> dict[str, str]:
    """The same under names with their defaults, such as ``seed=0``."""
    parameters = inspect.signature(function).parameters
    return {_in_call(parameters[name]): meaning for name, meaning in meanings.items()}


def _members(*, is_method: bool) -> list[tuple[str, Any]]:
    """Public methods, or public properties, in alphabetical order."""
    names = [name for name in dir(AttackResult) if not name.startswith("_")]
    found = [(name, inspect.getattr_static(AttackResult, name)) for name in names]
    stored = {one.name for one in fields(AttackResult)} | {"SHARED"}
    callables = (staticmethod, classmethod)
    return [
        (name, one)
        for name, one in found
        if name not in stored
        and (inspect.isfunction(one) or isinstance(one, callables)) == is_method
    ]


def _field_meanings() -> dict[str, str]:
    meanings = meanings_of(AttackResult)
    return {one.name: meanings.get(one.name, "") for one in fields(AttackResult)}


def _call(name: str, method: Any) -> str:
    """For instance ``plot(model=None, most=8)``."""
    function: Callable[..., Any] = getattr(method, "__func__", method)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    words = map(_in_call, parameters)
    return f"{name}({', '.join(words)})"


def _in_call(parameter: inspect.Parameter) -> str:
    default = parameter.default
    return parameter.name if default is parameter.empty else f"{parameter.name}={default!r}"


def _opening(one: Any) -> str:
    """The first paragraph of a docstring in one line."""
    text = inspect.cleandoc(one.__doc__ or "")
    return " ".join(text.partition("\n\n")[0].split())


def _table(head: str, meanings: Mapping[str, str]) -> Iterable[str]:
    yield f"| {head} | meaning |"
    yield "| --- | --- |"
    for name, meaning in meanings.items():
        cell = meaning.replace("``", "`").replace("|", "\\|")
        yield f"| `{name}` | {cell} |"
