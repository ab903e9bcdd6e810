"""``pinprick completion``: a script that lets the shell complete commands, options and names.

The script holds all words, so that the Tab key starts no Python.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.main import get_command


class Shell(StrEnum):
    """The shells there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True)
class Spoken:
    """What may follow a command.

    Attributes:
        line: The command without ``pinprick``, such as "bench run"; empty for ``pinprick`` itself.
        help: What it does, in one line.
        options: Its options.
        flags: Those that take no value.
        values: The names that an option takes, where they can be listed.
        words: Subcommands, or the names that its argument takes; empty for files.
    """

    line: str
    help: str
    options: tuple[str, ...]
    flags: frozenset[str]
    values: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...]


def main(
    shell: Annotated[Shell, typer.Argument(help="The shell that reads the script.")],
) -> None:
    """Print a script for the Tab key: bash, zsh or fish.

    It completes commands, options, attacks, models and datasets. Write it to a file that the shell
    reads when it starts, and again after an upgrade. docs/reference/commands.md has the lines per
    shell.
    """
    from pinprick.cli import app

    spoken = list(_walk(get_command(app), ""))
    typer.echo({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell.value](spoken))


def _walk(command: Any, line: str) -> Iterator[Spoken]:
    """The command and those below it; ``Any``, as typer does not export the class."""
    inner = getattr(command, "commands", {})
    options = [one for one in command.params if one.param_type_name == "option"]
    values: dict[str, tuple[str, ...]] = {}
    for option in options:
        known = _names(option.opts[0]) or _choices(option.metavar)
        values |= dict.fromkeys(option.opts, known) if known else {}
    yield Spoken(
        line=line,
        help=(command.help or "").partition("\n")[0],
        options=(*(name for one in options for name in _spellings(one)), "--help"),
        flags=frozenset(name for one in options if one.is_flag for name in _spellings(one))
        | {"--help"},
        values=values,
        words=tuple(inner) or _names(line),
    )
    for name, one in inner.items():
        yield from _walk(one, f"{line} {name}".strip())


def _spellings(option: Any) -> tuple[str, ...]:
    """Such as "--open" and "--no-open"."""
    return (*option.opts, *option.secondary_opts)


def _names(taken_by: str) -> tuple[str, ...]:
    """The names that an option, or the argument of a command, takes; none if they are unknown."""
    from pinprick.attacks import ATTACKS
    from pinprick.data.registry import FORMS, SOURCES
    from pinprick.train import RECIPES
    from pinprick.zoo import registry
    from pinprick.zoo.nets import NETS

    if taken_by in ("--attack", "--attacks", "attacks"):
        return tuple(ATTACKS)
    if taken_by in ("--model", "--judge"):
        listed = (registry.list_models(source) for source in ("pinprick", "torchvision"))
        others = ("timm:", "hf:", "robustbench:", "file:")
        return ("efficientnet_lite0", *(one["name"] for some in listed for one in some), *others)
    if taken_by == "models":
        return tuple(source.name for source in registry.SOURCES if source.listed)
    if taken_by in ("--data", "data get", "data check", "data draw"):
        return (*SOURCES, *(form.partition(":")[0] + ":" for form in FORMS))
    known = {
        "--device": ("auto", "cpu", "cuda", "mps"),
        "--engine": ("here", "processes", "ray"),
        "--net": tuple(NETS),
        "--recipe": tuple(RECIPES),
        "completion": tuple(Shell),
    }
    return known.get(taken_by, ())


def _choices(metavar: str | None) -> tuple[str, ...]:
    """The words of "text|latex", but for those in capitals; none where it may be a file."""
    words = (metavar or "").split("|")
    listed = len(words) > 1 and "FILE" not in words
    return tuple(word for word in words if listed and word.islower())


def _bash(spoken: list[Spoken]) -> str:
    return f"""{_found(spoken)}
_pinprick() {{
  local line="${{COMP_LINE:0:COMP_POINT}}" called="" previous current found="" head
  local -a typed
  read -ra typed <<< "$line"
  [[ $line == *[[:space:]] ]] && typed+=("")
  local last=$(( ${{#typed[@]}} - 1 ))
  current="${{typed[last]}}" previous="${{typed[last-1]}}"
  [[ $last -gt 1 ]] && called="${{typed[1]}}"
  [[ $last -gt 2 && " {_groups(spoken)} " == *" $called "* ]] && called="$called ${{typed[2]}}"
  _pinprick_found
  COMPREPLY=($(compgen -W "$found" -- "$current"))
  head="${{current%"${{current##*:}}"}}"  # the shell replaces only what follows the last colon
  COMPREPLY=("${{COMPREPLY[@]#"$head"}}")
}}
complete -o default -F _pinprick pinprick"""


def _zsh(spoken: list[Spoken]) -> str:
    return f"""#compdef pinprick
{_found(spoken)}
_pinprick() {{
  setopt localoptions shwordsplit
  local called="" previous="${{words[CURRENT-1]}}" current="$PREFIX" found=""
  (( CURRENT > 2 )) && called="${{words[2]}}"
  [[ CURRENT -gt 3 && " {_groups(spoken)} " == *" $called "* ]] && called="$called ${{words[3]}}"
  _pinprick_found
  if [ -n "$found" ]; then compadd -- $found; else _files; fi
}}
if [ "${{funcstack[1]}}" = _pinprick ]; then _pinprick; else compdef _pinprick pinprick; fi"""


def _groups(spoken: list[Spoken]) -> str:
    """The commands that have subcommands."""
    return " ".join(dict.fromkeys(one.line.split()[0] for one in spoken if " " in one.line))


def _found(spoken: list[Spoken]) -> str:
    """The function of bash and zsh that sets ``found`` to the words that may come next."""
    values = ((f"{one.line} {option}", v) for one in spoken for option, v in one.values.items())
    return f"""_pinprick_found() {{
  local name list=""
  case "$called $previous" in
{_cases(values)}
  *) case "$current" in
  -*) case "$called" in
{_cases((one.line, one.options) for one in spoken)}
  esac ;;
  *) case "$called" in
{_cases((one.line, one.words) for one in spoken if one.words)}
  esac ;;
  esac ;;
  esac
  case "$current" in
  *,*)
    for name in $found; do list="$list ${{current%,*}},$name"; done
    found="$list" ;;
  esac
}}"""


def _cases(words: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    """One line per list of words, with all keys that have it."""
    keys = defaultdict(list)
    for key, some in words:
        keys[some].append(f'"{key}"')
    return "\n".join(f'  {"|".join(key)}) found="{" ".join(w)}" ;;' for w, key in keys.items())


def _fish(spoken: list[Spoken]) -> str:
    lines = []
    help_of = {one.line: one.help for one in spoken}
    for one in spoken:
        inner = [f"{one.line} {word}".strip() for word in one.words]
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in one.line.split())
        groups = [word for word, line in zip(one.words, inner, strict=True) if line in help_of]
        if groups and one.line:
            seen += f"; and not __fish_seen_subcommand_from {' '.join(groups)}"
        when = f"complete -c pinprick -n '{seen or '__fish_use_subcommand'}'"
        for word, line in zip(one.words, inner, strict=True):
            told = f" -d {_quoted(help_of[line])}" if line in help_of else ""
            lines.append(f"{when} -f -a {word}{told}")
        for option in one.options:
            dashes = "-l" if option.startswith("--") else "-s"
            taken = f"-x -a '{' '.join(one.values[option])}'" if option in one.values else "-r"
            value = "" if option in one.flags else f" {taken}"
            lines.append(f"{when} {dashes} {option.lstrip('-')}{value}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """The text in single quotes, as fish reads them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
