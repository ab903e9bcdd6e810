"""The paper of each attack is that of its card, and its authors are those of its docstring."""

import re
import sys
from pathlib import Path

import pytest

from pinprick import ATTACKS
from pinprick.attacks.build import all_settings
from pinprick.attacks.papers import PAPERS, bibtex
from pinprick.report.docs_tables import differences, with_differences
from pinprick.settings import meanings_of

ROOT = Path(__file__).parent.parent.parent


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


def test_our_own_are_cited_as_the_citation_file_says() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    own = {bibtex(name) for name in ATTACKS if name not in PAPERS}
    (entry,) = own
    (author,) = re.findall(r"^authors:\n  - name: (.*)$", citation, re.MULTILINE)
    assert f"author = {{{{{author}}}}}," in entry
    for field in ("title", "version"):
        (value,) = re.findall(rf"^{field}: (.*)$", citation, re.MULTILINE)
        assert f"  {field} = {{{value}}}," in entry


def test_no_two_papers_share_a_key() -> None:
    papers = set(PAPERS.values())
    assert len({paper.key for paper in papers}) == len(papers)


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


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_of_an_attack_has_the_differences_of_its_card(name: str) -> None:
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text()
    assert page.count("<!-- differences -->") == page.count("<!-- end of differences -->") == 1
    assert with_differences(page, ATTACKS[name].card) == page, "run ./scripts/docs differences"
    assert "Departures" not in page


def test_a_page_without_differences_says_so() -> None:
    page = "# A\n\n<!-- differences -->\nold\n<!-- end of differences -->\n\nand more\n"
    made = with_differences(page, ATTACKS["fgsm"].card)
    assert "old" not in made
    assert "None known." in made
    assert made.endswith("<!-- end of differences -->\n\nand more\n")


def test_differences_are_wrapped_between_words() -> None:
    card = ATTACKS["homotopy"].card
    _, _, *lines = differences(card).splitlines()
    assert 80 < max(map(len, lines)) <= 100
    joined = "\n".join(lines).replace("\n  ", " ")
    assert joined.splitlines() == [f"- {sentence}" for sentence in card.differences]


def test_our_own_attacks_have_no_paper_to_differ_from() -> None:
    assert not any(ATTACKS[name].card.differences for name in set(ATTACKS) - set(PAPERS))


@pytest.mark.parametrize("name", ATTACKS)
def test_every_setting_says_what_it_means(name: str) -> None:
    told = meanings_of(ATTACKS[name])
    assert [*told] == [*all_settings(ATTACKS[name]())][1:]
    for setting, meaning in told.items():
        assert meaning.endswith("."), setting
        assert len(meaning) > 10, setting
