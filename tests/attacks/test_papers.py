"""The paper of each attack is that of its card, and its authors are those of its docstring."""

import re
import sys

import pytest

from pinprick import ATTACKS
from pinprick.attacks.papers import PAPERS, bibtex


def test_every_attack_of_a_paper_has_an_entry() -> None:
    assert set(PAPERS) == {name for name, cls in ATTACKS.items() if cls.card.paper}


@pytest.mark.parametrize("name", PAPERS)
def test_an_entry_agrees_with_the_card_and_the_docstring(name: str) -> None:
    paper, cls = PAPERS[name], ATTACKS[name]
    told = " ".join((sys.modules[cls.__module__].__doc__ or "").split())
    last_names = [author.split()[-1] for author in paper.authors.split(", ")]
    assert ", ".join(last_names) + ":" in told
    assert str(paper.year) in told
    if cls.card.paper.startswith("arXiv:"):
        assert cls.card.paper == f"arXiv:{paper.arxiv}"
    assert paper.plain_title.split(":")[0].lower() in re.sub(r"\bl0\b", "l_0", told.lower())


def test_entries_are_bibtex() -> None:
    for name in ATTACKS:
        entry = bibtex(name)
        assert re.fullmatch(r"@\w+\{[a-z0-9-]+,\n(  \w+ = \{.*\},\n)+\}", entry)
        assert entry.count("{") == entry.count("}")


@pytest.mark.parametrize("name", PAPERS)
def test_differences_are_sentences_and_stand_on_the_card_alone(name: str) -> None:
    for sentence in ATTACKS[name].card.differences:
        assert sentence.endswith(".")
        assert "\n" not in sentence
    assert "Differs from" not in (sys.modules[ATTACKS[name].__module__].__doc__ or "")
