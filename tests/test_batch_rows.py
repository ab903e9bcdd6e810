"""Values with one row per image: cutting, moving and joining them."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pinprick.batch_rows import BatchRows


class Size(NamedTuple):
    """A tuple that is one value."""

    height: int
    width: int


@dataclass(frozen=True, eq=False)
class Inner(BatchRows):
    """One number per image."""

    numbers: Tensor


@dataclass(frozen=True, eq=False)
class Outer(BatchRows):
    """One attribute of each kind."""

    SHARED = ("table",)

    numbers: Tensor
    names: tuple[str, ...]
    none: Tensor | None
    inner: Inner
    stages: dict[str, Inner]
    settings: dict[str, tuple[int, ...]]
    size: Size
    table: Tensor
    unnamed: tuple[str, ...] = ()

    @cached_property
    def total(self) -> float:
        return float(self.numbers.sum())


def outer(count: int) -> Outer:
    numbers = torch.arange(count)
    return Outer(
        numbers=numbers,
        names=tuple(f"image {i}" for i in range(count)),
        none=None,
        inner=Inner(numbers + 100),
        stages={"first": Inner(numbers + 200)},
        settings={"sizes": (1, 2, 3)},
        size=Size(4, 5),
        table=torch.arange(7),
    )


def assert_rows(value: Outer, rows: list[int]) -> None:
    """Every attribute holds just these rows, in order, and what is shared is whole."""
    assert value.numbers.tolist() == rows
    assert value.names == tuple(f"image {i}" for i in rows)
    assert value.none is None
    assert value.inner.numbers.tolist() == [i + 100 for i in rows]
    assert value.stages["first"].numbers.tolist() == [i + 200 for i in rows]
    assert value.settings == {"sizes": (1, 2, 3)}
    assert value.size == Size(4, 5)
    assert value.table.tolist() == list(range(7))
    assert value.unnamed == ()


@given(st.lists(st.integers(0, 5), max_size=8))
def test_a_cut_has_the_chosen_rows_in_order(rows: list[int]) -> None:
    assert_rows(outer(6)[torch.tensor(rows, dtype=torch.long)], rows)


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_a_mask_chooses_the_rows_where_it_is_true(mask: list[bool]) -> None:
    assert_rows(outer(len(mask))[torch.tensor(mask)], [i for i, yes in enumerate(mask) if yes])


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 3))
def test_a_slice_chooses_as_in_a_list(start: int, stop: int, step: int) -> None:
    assert_rows(outer(6)[start:stop:step], list(range(6))[start:stop:step])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_joining_gives_back_what_was_cut(sizes: list[int]) -> None:
    whole, parts, first = outer(sum(sizes)), [], 0
    for size in sizes:
        parts.append(whole[first : first + size])
        first += size
    assert_rows(Outer.join(parts), list(range(sum(sizes))))


def test_what_one_part_lacks_is_none_in_all() -> None:
    some, none = outer(2), outer(1)
    vars(some)["none"] = torch.zeros(2)
    assert Outer.join([some, none]).none is Outer.join([none, some]).none is None
    joined = Outer.join([some, some]).none
    assert joined is not None
    assert joined.tolist() == [0, 0, 0, 0]


def test_all_tensors_move_and_nothing_else_changes() -> None:
    moved = outer(3).to("meta")
    tensors = (moved.numbers, moved.inner.numbers, moved.stages["first"].numbers, moved.table)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert moved.names == outer(3).names
    assert (moved.settings, moved.size, moved.none) == ({"sizes": (1, 2, 3)}, Size(4, 5), None)


def test_what_was_computed_of_all_images_is_computed_anew_of_some() -> None:
    whole = outer(4)
    assert whole.total == 6
    assert whole[torch.tensor([1, 2])].total == 3
    assert Outer.join([whole, whole]).total == 12
    assert list(whole.tensors()) == ["numbers", "table"]


def test_an_object_with_an_init_of_its_own_is_cut_without_it() -> None:
    class Search(BatchRows):
        def __init__(self, count: int) -> None:
            self.left, self._limit = torch.full((count,), 9), count

    search = Search(5)
    search.left -= torch.arange(5)
    part = search[torch.tensor([4, 0])]
    assert isinstance(part, Search)
    assert part.left.tolist() == [5, 9]
    assert part._limit == 5
    part.left[0] = 0
    assert search.left.tolist() == [9, 8, 7, 6, 5]


def test_a_row_that_is_not_there_is_an_error() -> None:
    with pytest.raises(IndexError):
        outer(2)[torch.tensor([2])]
