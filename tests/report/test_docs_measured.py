"""Marks of measured values: what stands between them is made, what stands outside is found."""

import pytest

from pinprick.errors import UnknownName
from pinprick.report.docs_measured import (
    fill_measured,
    markdown_list,
    markdown_table,
    measured_names,
    written_by_hand,
)

PAGE = (
    "Before.\n\n<!-- measured: table -->\n| old |\n<!-- end of measured -->\n\n"
    "It fools <!-- measured: rate -->1 %<!-- end of measured --> of the images.\n"
)
BLOCKS = {"table": lambda: "| new |\n| --- |", "rate": lambda: "98 %"}


def test_blocks_keep_their_lines_and_values_stay_in_their_sentence() -> None:
    assert fill_measured(PAGE, BLOCKS) == (
        "Before.\n\n<!-- measured: table -->\n| new |\n| --- |\n<!-- end of measured -->\n\n"
        "It fools <!-- measured: rate -->98 %<!-- end of measured --> of the images.\n"
    )
    assert measured_names(PAGE) == ["table", "rate"]


def test_a_page_that_was_filled_stays_as_it_is() -> None:
    filled = fill_measured(PAGE, BLOCKS)
    assert fill_measured(filled, BLOCKS) == filled


def test_a_mark_that_nothing_is_made_for_is_refused() -> None:
    with pytest.raises(UnknownName, match="'rate'"):
        fill_measured(PAGE, {"table": BLOCKS["table"]})


@pytest.mark.parametrize(
    "page",
    [
        "<!-- measured: a -->1",
        "1<!-- end of measured -->",
        "<!-- measured: a --><!-- measured: b -->1<!-- end of measured --><!-- end of measured -->",
    ],
)
def test_marks_that_are_not_in_pairs_are_refused(page: str) -> None:
    with pytest.raises(AssertionError, match="not in pairs"):
        fill_measured(page, {"a": str, "b": str})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It fools 98 % of the images.", "98 %"),
        ("It fools 98% of them", "98%"),
        ("It fools 97.5 %", "97.5 %"),
        ("98 per cent are fooled", "98 per cent"),
        ("| greedy | 3.4 |", "3.4"),
        ("1,024.5 pixels", "1,024.5"),
        ("<!-- measured: a -->1.0<!-- end of measured --> and 2.5 by hand", "2.5"),
    ],
)
def test_numbers_outside_of_marks_are_found(text: str, found: str) -> None:
    (only,) = written_by_hand(text)
    assert found in only


@pytest.mark.parametrize(
    "text",
    [
        "Three images, 1000 steps, eps 8/255.",
        "<!-- measured: a -->\n| 3.4 | 98 % |\n<!-- end of measured -->",
        "with `std=0.225` and\n\n```\npinprick attack --option lam=0.1\n```\n",
        "[the paper](https://example.org/v1.2/a) and [arXiv:2402.01879](https://arxiv.org/abs/2402.01879)",
        "Python 3.11 to 3.13, torch 2.11.0",
        "Brackets are 95 % intervals.",
    ],
)
def test_settings_code_links_and_versions_are_no_measurements(text: str) -> None:
    assert written_by_hand(text) == []


def test_a_table_has_a_heading_and_rows_of_its_length() -> None:
    assert markdown_table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    with pytest.raises(AssertionError, match="heading"):
        markdown_table(("a", "b"), [("1",)])


def test_long_items_of_a_list_go_on_under_their_beginning() -> None:
    item = "word " * 30
    first, second = markdown_list([item.strip()]).splitlines()
    assert first.startswith("- word")
    assert len(first) <= 100
    assert second.startswith("  word")
    assert "`two words`" in markdown_list(["word " * 18 + "`two words`"])
    assert markdown_list(["a", "b"], numbered=True) == "1. a\n2. b"
