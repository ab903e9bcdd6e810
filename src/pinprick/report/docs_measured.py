"""Measured values on a page: they stand between two comments, and a function makes them.

A block has lines of its own, a value stands in a sentence:

    <!-- measured: NAME -->
    | model | accuracy |
    <!-- end of measured -->

    It fools <!-- measured: NAME -->98 %<!-- end of measured --> of the images.

Percentages and decimals outside of these comments are written by hand. ``written_by_hand`` finds
them.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from pinprick.errors import UnknownName

_MARKED = re.compile(
    r"<!-- measured: (?P<name>[^>]+?) -->(?P<text>.*?)<!-- end of measured -->", re.DOTALL
)
_MARK = re.compile(r"<!-- (?:measured: [^>]+?|end of measured) -->")
_NO_MEASUREMENT = (
    r"^```.*?^```$",  # blocks of code
    r"`[^`\n]*`",  # code in a sentence
    r"\]\([^)\s]*\)",  # where links lead
    r"<?https?://\S+",
    r"arXiv:\d{4}\.\d{4,5}",
    r"Python 3\.\d+(?: to 3\.\d+)?",
    r"\b(?:torch|torchvision|timm|Foolbox|torchattacks|adv-lib) \d+(?:\.\d+)+",  # versions
    r"95 % intervals?",  # what an interval is, not what it was
)
_WITHOUT = re.compile("|".join(_NO_MEASUREMENT), re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?\s?(?:%|per ?cent)|\d[\d,]*\.\d+")
_WIDTH = 100  # columns of generated prose

Blocks = Mapping[str, Callable[[], str]]


def fill_measured(page: str, blocks: Blocks) -> str:
    """The page with everything between its marks made again.

    Args:
        page: The text of the page.
        blocks: By name, the function that makes what stands between the marks.
    """
    _check_marks(page)

    def made(found: re.Match[str]) -> str:
        if found["name"] not in blocks:
            raise UnknownName("measured block", found["name"], blocks)
        text = blocks[found["name"]]()
        end = "\n" if found["text"].startswith("\n") else ""
        return f"<!-- measured: {found['name']} -->{end}{text}{end}<!-- end of measured -->"

    return _MARKED.sub(made, page)


def measured_names(page: str) -> list[str]:
    """The names of what stands between marks, in the order of the page."""
    return [found["name"] for found in _MARKED.finditer(page)]


def written_by_hand(page: str) -> list[str]:
    """Percentages and decimals outside of marks, each with what stands before and behind it.

    Code, the targets of links, versions, arXiv numbers and the words "95 % interval" do not count.
    """
    _check_marks(page)
    text = _WITHOUT.sub(" ", _MARKED.sub(" ", page))
    return [
        text[max(0, found.start() - 30) : found.end() + 10].replace("\n", " ").strip()
        for found in _NUMBER.finditer(text)
    ]


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a heading."""
    lines = [columns, ("---",) * len(columns), *rows]
    assert all(len(line) == len(columns) for line in lines), "a row differs from the heading"
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown_list(items: Iterable[str], *, numbered: bool = False) -> str:
    """A list, its lines wrapped at 100 columns."""
    lines = []
    for number, item in enumerate(items, start=1):
        mark = f"{number}. " if numbered else "- "
        lines.append(wrapped(item, first=mark, later=" " * len(mark)))
    return "\n".join(lines)


def wrapped(text: str, *, first: str = "", later: str = "") -> str:
    """The text in lines of at most 100 columns, with what stands before each line.

    Code in a sentence and the text of a link stay on one line.
    """
    whole = re.sub(r"`[^`]*`|\[[^]]*\]", lambda found: found[0].replace(" ", "\0"), text)
    filled = textwrap.fill(
        whole,
        width=_WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\0", " ")


def _check_marks(page: str) -> None:
    """Marks come in pairs, and no pair stands in another."""
    marks = [mark.startswith("<!-- measured") for mark in _MARK.findall(page)]
    pairs = len(marks) // 2
    assert marks == [True, False] * pairs, "marks of measured values that are not in pairs"
