"""JSON from elsewhere is read, or refused in one line."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinprick import BadInput
from pinprick.json_text import from_plain, read_json, read_json_file, to_plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_what_was_written_is_read(value: object) -> None:
    text = json.dumps(value)
    assert json.dumps(read_json(text, "a.json")) == text


@given(st.binary() | st.text())
def test_anything_else_is_refused_in_one_line(content: bytes | str) -> None:
    said = "a.json "
    try:
        read_json(content, "a.json", finite=True)
    except BadInput as error:
        said = str(error)
    assert said.startswith("a.json ")
    assert "\n" not in said


@pytest.mark.parametrize("levels", [65, 900, 1_000_000])
@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_what_is_nested_too_deeply_is_refused(opened: str, levels: int) -> None:
    closed = "]" if opened == "[" else "}"
    with pytest.raises(BadInput, match=r"a\.json is nested too deeply; at most 64 levels"):
        read_json(opened * levels + "1" + closed * levels, "a.json")


@pytest.mark.parametrize("text", ['{"a": [NaN]}', "[-Infinity]", "1e999", '[{"b": -1e999}]'])
def test_numbers_may_be_asked_to_be_finite(text: str) -> None:
    read_json(text, "a.json")
    with pytest.raises(BadInput, match=r"a\.json holds the number -?(nan|inf); numbers must be"):
        read_json(text, "a.json", finite=True)


@pytest.mark.parametrize("text", [r'["\ud800"]', r'{"\ud800": 1}'])
def test_text_that_cannot_be_printed_is_refused_where_asked(text: str) -> None:
    read_json(text, "a.json")
    with pytest.raises(BadInput, match="holds text that is no Unicode"):
        read_json(text, "a.json", finite=True)


def test_a_file_is_read_whatever_its_first_bytes_say_of_the_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        path.write_text('{"name": "naïve"}', encoding=encoding)
        assert read_json_file(path) == {"name": "naïve"}


def test_a_file_that_is_too_large_missing_or_a_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_json_file(path)
    with pytest.raises(BadInput, match="cannot be read"):
        read_json_file(tmp_path)
    with path.open("wb") as file:
        file.truncate(10**12)  # takes no room on the disk
    with pytest.raises(BadInput, match="has 1000000000000 bytes; at most 16000000 are read"):
        read_json_file(path)


@dataclass(frozen=True)
class Inner:
    share: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    pair: tuple[int, float]
    none: Inner | None = None


def test_nested_dataclasses_are_plain_data_and_come_back() -> None:
    value = Outer((Inner(0.5, ("a", "b")), Inner(float("inf"), ())), (1, 2.0))
    plain = to_plain(value)
    inner = [{"share": 0.5, "names": ["a", "b"]}, {"share": None, "names": []}]
    assert plain == {"inner": inner, "pair": [1, 2.0], "none": None}
    back = from_plain(Outer, plain)
    assert back.inner[0] == value.inner[0]
    assert back.pair == value.pair
    assert math.isnan(back.inner[1].share)


def test_plain_data_of_something_else_are_refused() -> None:
    with pytest.raises(BadInput, match=r"no Inner as pinprick writes it: see \['names'\]"):
        from_plain(Inner, {"share": 0.5})
    with pytest.raises(BadInput, match=r"no Inner as pinprick writes it: see .'list'"):
        from_plain(Inner, [])
