"""The cards of the attacks in Markdown: a table, and the differences from their papers."""

import re
from textwrap import fill
from typing import get_args

from pinprick.attacks import ATTACKS
from pinprick.attacks.card import Attack, Card, norm_and_units
from pinprick.attacks.papers import PAPERS
from pinprick.report.docs_measured import markdown_table
from pinprick.settings import types_of

_COLUMNS = ("name", "attack", "keeps small", "kind", "targets", "passes at most", "paper")
_WIDTH = 100  # characters of a line of prose
_SECTION = re.compile(r"(?<=<!-- differences -->\n).*?(?=<!-- end of differences -->)", re.DOTALL)


def attack_table() -> str:
    """One line per attack with its default settings, and the addresses of the papers."""
    table = markdown_table(_COLUMNS, [_cells(cls) for cls in ATTACKS.values()])
    numbers = sorted({paper.arxiv for paper in PAPERS.values() if paper.arxiv})
    addresses = [f"[arXiv:{number}]: https://arxiv.org/abs/{number}" for number in numbers]
    return "\n".join((table, "", *addresses))


def _cells(cls: type[Attack]) -> tuple[str, ...]:
    card = cls().facts()
    return (
        f"[`{card.name}`]({card.name}.md)",
        card.title,
        _kept_small(cls),
        card.kind,
        "yes" if card.targeted else "no",
        _passes(card),
        _paper(card),
    )


def _kept_small(cls: type[Attack]) -> str:
    groups = " or groups of pixels" if get_args(types_of(cls).get("group")) else ""
    return norm_and_units(cls).replace("linf", "l∞") + groups


def _passes(card: Card) -> str:
    """Forward and backward passes per image, if the settings limit them."""
    if card.max_forwards is None or card.max_backwards is None:
        return "no bound"
    return f"{card.max_forwards} + {card.max_backwards}"


def _paper(card: Card) -> str:
    """A link by the number of the preprint; without one the venue, which keeps lines short."""
    paper = PAPERS.get(card.name)
    if paper and paper.arxiv:
        return f"[arXiv:{paper.arxiv}]"
    return card.paper.rpartition(", ")[2] or "our own"


def with_differences(page: str, card: Card) -> str:
    """The page of an attack, with the differences of its card between the two marks."""
    return _SECTION.sub(lambda _: f"{differences(card)}\n", page)


def differences(card: Card) -> str:
    head = "## Differences from the paper and its authors' code"
    if not card.differences:
        return f"{head}\n\nNone known."
    return "\n".join((head, "", *map(_item, card.differences)))


def _item(text: str) -> str:
    """A point of a list, wrapped between words."""
    return fill(
        f"- {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
