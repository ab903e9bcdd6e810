"""Every error a user can cause, and the wording that their messages share.

* PinprickError
  - BadInput      images, labels or options that do not fit together
  - UnknownName   an unknown attack, model, dataset, ...
  - MissingExtra  a package that an optional part needs
  - OverBudget    an attack used more passes than its limits allow
  - NoAnswer      a remote model failed, and all retries too
  - Stopped       a run that was stopped by Ctrl-C or SIGTERM
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MOST = 12  # names that a message lists
_LONGEST = 200  # characters of a name that a message repeats


class PinprickError(Exception):
    """Base of all errors that the caller can act on."""


class BadInput(PinprickError):
    """Images, labels or options that do not fit together."""


class NotTrusted(BadInput):
    """A file of a model that is a program, which is loaded only where the caller trusts it."""


class OverBudget(PinprickError):
    """An attack used more passes than its limits allow."""


class NoAnswer(PinprickError):
    """A remote model failed, and all retries failed too.

    Attributes:
        logits: What it did answer, one row per image of the query, NaN where there is no
            answer; None where that is not known.
        reasons: Why there is none, by the index of the image in the query.
    """

    def __init__(
        self, message: str, *, logits: Any = None, reasons: Mapping[int, str] | None = None
    ) -> None:
        self.logits, self.reasons = logits, dict(reasons or {})
        super().__init__(message)


class Stopped(PinprickError):
    """A run that was stopped by Ctrl-C or SIGTERM.

    Attributes:
        resumable: Whether finished batches are saved, so that the run can be resumed.
    """

    def __init__(self, message: str, *, resumable: bool = False) -> None:
        self.resumable = resumable
        super().__init__(message)


class UnknownName(PinprickError):
    """An unknown name; the message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known, name = sorted(known), name[:_LONGEST]
        near = _with_the_word(name, known) or difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {first_few(known, _MOST)}"
        super().__init__(f"no {kind} is called {name!r}; {hint}")


class MissingExtra(PinprickError):
    """A package that an optional part needs; the message says how to install it.

    Where no ``extra`` of ours brings it, it is installed by its own name.
    """

    def __init__(self, what: str, package: str, extra: str = "") -> None:
        wanted = f"'pinprick[{extra}]'" if extra else package
        super().__init__(
            f"{what} needs the package {package}; install it with: pip install {wanted}"
        )


def one_line(error: object) -> str:
    """What an error says, in one line; its kind where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def first_sentence(error: object) -> str:
    """The first sentence of what an error of another package says, at most 200 characters."""
    return one_line(error).partition(". ")[0][:_LONGEST]


def counted(count: int, noun: str) -> str:
    """As in "1 file" and "3 files"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def first_few(names: Sequence[str], most: int = 3, *, separator: str = ", ") -> str:
    """The first few names, and how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + rest


def _with_the_word(name: str, known: Iterable[str]) -> list[str]:
    """Up to three names that hold ``name`` as a word: "tiger cat" for "cat"."""
    return [one for one in known if name.lower() in filter(None, re.split(r"\W", one.lower()))][:3]
