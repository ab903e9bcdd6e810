"""Where an attack differs from its paper, in Markdown, so that no page keeps it by hand."""

import re

from pinprick.attacks.card import Card

_SECTION = re.compile(r"(?<=<!-- differences -->\n).*?(?=<!-- end of differences -->)", re.DOTALL)


def with_differences(page: str, card: Card) -> str:
    """The page of an attack with what its card says between the two marks, where it has them."""
    return _SECTION.sub(lambda _: f"{differences(card)}\n", page)


def differences(card: Card) -> str:
    head = "**Differences from the paper and its authors' code.**"
    if not card.differences:
        return f"{head} None known."
    return "\n".join((head, "", *(f"- {sentence}" for sentence in card.differences)))
