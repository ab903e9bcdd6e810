"""The measure of prose: what counts as a sentence, a word and a long line. Every page passes."""

from pathlib import Path

import pytest

from prose import ROOT, count_words, pages, read_prose

pytestmark = pytest.mark.plain


def test_sentences_are_those_of_paragraphs_and_lists() -> None:
    text = (
        "# A heading. Two.\n\nOne fact. Another\nfact!\n\n- An item\n  of two lines\n1. A step.\n"
    )
    assert read_prose(text).running == [
        "One fact.",
        "Another fact!",
        "An item of two lines",
        "A step.",
    ]


def test_code_blocks_and_comments_have_no_sentences() -> None:
    text = (
        "Before.\n\n```\nmany words of code. More.\n```\n<!-- a\ncomment. -->\n    x = 1\n\nAfter."
    )
    assert read_prose(text).running == ["Before.", "After."]


def test_a_piece_of_code_is_one_word_and_may_begin_a_sentence() -> None:
    (first, second) = read_prose("Use it. `pinprick attack a b c` runs it.").running
    assert (count_words(first), count_words(second)) == (2, 3)


def test_a_link_counts_with_its_text() -> None:
    (sentence,) = read_prose("See [the long page](a/b/c.md) and [that][ref].").running
    assert count_words(sentence) == 6


def test_the_address_of_a_reference_link_is_no_sentence() -> None:
    assert read_prose("See [that].\n\n[that]: https://a.b/c\n[this]: https://d.e\n").running == [
        "See [that]."
    ]


def test_cells_of_tables_do_not_lower_the_mean() -> None:
    prose = read_prose("One two three four.\n\n| a | b |\n| --- | --- |\n| one | two words |\n")
    assert prose.mean_words == 4
    assert prose.cells == ["a", "b", "one", "two words"]


def test_long_sentences_long_means_and_long_lines_are_faults() -> None:
    long = " ".join(["word"] * 31)
    assert read_prose(f"{long}.").faults() == [
        f"31 words: {long}.",
        "31.0 words per sentence in the mean",
    ]
    assert read_prose(f"| {long} |\n").faults() == ["31 words: " + long]
    assert read_prose(f"{' '.join(['word'] * 30)}. A word.").faults() == []
    assert read_prose("`" + "x" * 160 + "`").faults() == ["line 1 has over 160 characters"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_short_sentences_and_lines(page: Path) -> None:
    faults = read_prose(page.read_text(encoding="utf-8")).faults()
    assert not faults, "\n".join(faults)
