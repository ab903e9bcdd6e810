"""What the page on commands says of each: its help, arguments and options, from the program.

A section of docs/reference/commands.md has two marks, and text by hand may follow:

    <!-- command: bench run -->
    <!-- end of command -->
"""

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import typer

from pinprick.cli import app
from pinprick.report.docs_measured import markdown_table
from pinprick.report.docs_reference import wrapped_list

_MARKED = re.compile(
    r"(?P<mark><!-- command: (?P<name>[^>]+?) -->\n).*?(?=<!-- end of command -->)", re.DOTALL
)
_LISTED = re.compile(r"(?<=<!-- list of commands -->\n).*?(?=<!-- end of list -->)", re.DOTALL)
_OPTION = re.compile(r"(?<![\w'-])--?[a-z][\w-]*")  # in a sentence


def fill_commands(page: str) -> str:
    """The page with its list of commands, and what stands between its marks, made again."""
    commands = all_commands()
    rows = [(f"[`{name}`](#{_anchor(name)})", _opening(one)) for name, one in commands.items()]
    listed = _LISTED.sub(lambda _: markdown_table(("command", "what it does"), rows) + "\n", page)
    return _MARKED.sub(
        lambda found: found["mark"] + _section(found["name"], commands[found["name"]]), listed
    )


def commands_on(page: str) -> list[str]:
    """The names of the commands that have marks, in the order of the page."""
    return [found["name"] for found in _MARKED.finditer(page)]


def all_commands() -> dict[str, Any]:
    """Every command by name, such as "bench run"; ``Any``, as typer does not export the class."""
    return dict(_walk(typer.main.get_command(app), ""))


def _walk(command: Any, line: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield line, command
    for name, one in inner.items():
        yield from _walk(one, f"{line} {name}".strip())


def _section(name: str, command: Any) -> str:
    """Usage, what it does, then arguments and options with defaults and meanings."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    given = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join(["pinprick", name, *map(_argument, arguments), "[OPTIONS]" if given else ""])
    lines = ["", "```text", usage.rstrip(), "```", ""]
    for paragraph in (command.help or "").split("\n\n"):
        lines += [*textwrap.wrap(_as_code(paragraph), 100, break_on_hyphens=False), ""]
    meanings = {_argument(one): _meaning(one) for one in arguments}
    meanings |= {_spelling(one): _meaning(one) for one in given}
    return "\n".join([*lines, *wrapped_list(meanings), "", ""])


def _argument(one: Any) -> str:
    """Such as ``STORE`` or ``[IMAGES]``, in brackets where it may be left out."""
    name = one.metavar or one.name.upper()
    if one.nargs == -1 and not name.endswith(("...", "]")):
        name += "..."
    return name if one.required or name.startswith("[") else f"[{name}]"


def _spelling(option: Any) -> str:
    """Such as ``--seed NUMBER`` or ``--resume, --no-resume``."""
    names = ", ".join((*option.opts, *option.secondary_opts))
    assert option.is_flag or option.metavar, f"{names} lacks a metavar"
    return names if option.is_flag else f"{names} {option.metavar}"


def _meaning(one: Any) -> str:
    text = _as_code(one.help)
    if one.required and one.param_type_name == "option":
        text += " Required."
    shown = getattr(one, "show_default", False)
    if isinstance(shown, str):
        return f"{text} Default: `{shown}`."
    if not shown or getattr(one, "is_flag", False) or one.default is None or one.required:
        return text
    return f"{text} Default: `{getattr(one.default, 'value', one.default)}`."


def _opening(command: Any) -> str:
    return (command.help or "").partition("\n")[0]


def _as_code(text: str) -> str:
    """Options in a sentence as code, unless they are in code already."""
    parts = " ".join(text.split()).split("`")
    return "`".join(
        part if number % 2 else _OPTION.sub(r"`\g<0>`", part) for number, part in enumerate(parts)
    )


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
