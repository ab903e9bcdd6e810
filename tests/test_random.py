"""Random numbers belong to an image, and are random."""

import math
import zlib
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from pinprick import Streams

whole = st.integers(-(2**63), 2**63 - 1)
IDS = torch.arange(64)


@given(seed=whole, ids=st.lists(whole, min_size=1, max_size=6), step=st.integers(0, 2**20 - 1))
def test_an_image_draws_the_same_alone_and_in_any_batch(
    seed: int, ids: list[int], step: int
) -> None:
    together = Streams(seed, torch.tensor(ids))
    for row, number in enumerate(ids):
        alone = Streams(seed, torch.tensor([number]))
        for draw in ("uniform", "normal"):
            first = getattr(together, draw)(2, 3, step=step, use="test")[row]
            assert torch.equal(first, getattr(alone, draw)(2, 3, step=step, use="test")[0])
        first = together.integers(7, 4, step=step, use="test")[row]
        assert torch.equal(first, alone.integers(7, 4, step=step, use="test")[0])


def mixed(x: int, *, last: bool = True) -> int:
    """Splitmix64's finaliser after a step of its counter, on whole numbers modulo 2**64."""
    x = x * 0x9E3779B97F4A7C15 % 2**64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31 if last else x


@given(seed=st.integers(-(2**65), 2**65), number=whole, step=st.integers(0, 2**20 - 1))
def test_draws_are_splitmix64_of_seed_id_step_use_and_position(
    seed: int, number: int, step: int
) -> None:
    """So they are the same on every machine and in every version."""
    key = mixed(number + mixed(seed))
    key = mixed(key + zlib.crc32(b"test") * 2**20 + step)
    bits = [mixed(key + at * 0x9E3779B97F4A7C15, last=False) >> 40 for at in range(3)]
    streams = Streams(seed, torch.tensor([number]))
    assert streams.integers(2**24, 3, step=step, use="test").tolist() == [bits]
    assert streams.uniform(3, step=step, use="test").tolist() == [[bit / 2**24 for bit in bits]]


@given(rows=st.lists(st.integers(0, 5), max_size=9))
def test_a_cut_draws_what_the_whole_draws(rows: list[int]) -> None:
    streams = Streams(3, torch.tensor([4, 8, 15, 16, 23, 42]))
    index = torch.tensor(rows, dtype=torch.long)
    whole = streams.uniform(5, step=1, use="test")
    assert torch.equal(streams[index].uniform(5, step=1, use="test"), whole[index])
    mask = torch.zeros(6, dtype=torch.bool).index_fill(0, index, True)
    assert torch.equal(streams[mask].uniform(5, step=1, use="test"), whole[mask])


@given(longer=st.integers(1, 50))
def test_a_longer_draw_begins_like_a_shorter_one(longer: int) -> None:
    streams = Streams(0, IDS)
    short = streams.uniform(4, step=0, use="test")
    assert torch.equal(streams.uniform(4 + longer, step=0, use="test")[:, :4], short)


@pytest.mark.parametrize("places", [1, 40, 3000])
def test_draws_made_ahead_are_those_made_one_by_one(places: int) -> None:
    """On and on, with a gap, backwards, and by cuts that leave many images or few."""
    whole = Streams(5, IDS)
    cuts = {"all": IDS, "most": IDS[3:], "few": IDS[7:12], "twice": IDS.repeat(2)}
    streams = {name: whole if name == "all" else whole[rows] for name, rows in cuts.items()}
    for step in (*range(20), *range(24, 60, 2), 7, 6, 100, 101, 102):
        for use in ("keys", "colours"):
            alone = Streams(5, IDS).uniform(places, step=step, use=use)
            for name, rows in cuts.items():
                drawn = streams[name].uniform(places, step=step, use=use)
                assert torch.equal(drawn, alone[rows])


@pytest.mark.parametrize(
    ("places", "hashed"),
    [
        (512, [(0, 1), (1, 2), (3, 2), (5, 2)]),  # two steps are 2**16 numbers
        (513, [(step, 1) for step in range(6)]),
    ],
)
def test_steps_are_drawn_ahead_where_two_or_more_fit(
    places: int, hashed: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    salt, seen = zlib.crc32(b"test") * 2**20, []

    def note(keys: torch.Tensor, salts: torch.Tensor, count: int) -> torch.Tensor:
        seen.append((int(salts[0]) - salt, len(salts)))
        return torch.zeros(len(keys), len(salts), count, dtype=torch.long)

    monkeypatch.setattr("pinprick.random._hash", note)
    streams = Streams(0, IDS)
    for step in range(6):
        assert streams.uniform(places, step=step, use="test").shape == (64, places)
    assert seen == hashed


def test_a_step_that_only_the_device_knows_draws_the_same_numbers() -> None:
    streams = Streams(7, IDS)
    for rows in (None, torch.tensor([3, 1])):
        part = streams if rows is None else streams[rows]
        for step in (0, 5, 6, 2**19):
            told = part.uniform(5, step=torch.tensor([step]), use="test")
            assert torch.equal(told, part.uniform(5, step=step, use="test"))
            whole = part.integers(99, 5, step=torch.tensor([step]), use="test")
            assert torch.equal(whole, part.integers(99, 5, step=step, use="test"))


def test_what_is_drawn_can_be_written_to() -> None:
    streams = Streams(0, IDS)
    for step in (0, 1, 2, 1):
        for drawn in (
            streams.uniform(3, step=step, use="test"),
            streams.integers(9, 3, step=step, use="test"),
        ):
            drawn.fill_(-1)
    fresh = Streams(0, IDS).integers(9, 3, step=2, use="test")
    assert torch.equal(streams.integers(9, 3, step=2, use="test"), fresh)


@pytest.mark.slow
def test_small_draws_of_many_steps_are_few_operations() -> None:
    """Each operation is a kernel to start on a GPU, which takes longer than the numbers."""
    streams, steps = Streams(0, IDS), 64
    with CountOperations() as counter:
        for step in range(steps):
            streams.uniform(9, step=step, use="test")
    assert counter.operations < 6 * steps


class CountOperations(TorchDispatchMode):
    """Counts what is computed while it is entered; views are free."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations += not func.is_view
        return func(*args, **(kwargs or {}))


def test_asking_twice_gives_the_same_and_asking_otherwise_another() -> None:
    streams = Streams(0, IDS)
    first = streams.uniform(8, step=0, use="start")
    assert torch.equal(streams.uniform(8, step=0, use="start"), first)
    others = (
        streams.uniform(8, step=1, use="start"),
        streams.uniform(8, step=0, use="restart"),
        Streams(1, IDS).uniform(8, step=0, use="start"),
        Streams(0, IDS + 1).uniform(8, step=0, use="start"),
    )
    for other in others:
        assert (other == first).double().mean() < 0.01


def test_any_whole_number_is_a_seed() -> None:
    first = Streams(2**64 + 7, IDS).uniform(3, step=0, use="test")
    assert torch.equal(first, Streams(7, IDS).uniform(3, step=0, use="test"))
    assert not torch.equal(first, Streams(-7, IDS).uniform(3, step=0, use="test"))


def chi_square(counts: torch.Tensor) -> float:
    expected = counts.sum() / len(counts)
    return ((counts - expected) ** 2 / expected).sum().item()


def test_uniform_numbers_are_uniform() -> None:
    draws = Streams(0, torch.arange(200)).uniform(1000, step=0, use="test")
    assert draws.min() >= 0
    assert draws.max() < 1
    bins = torch.histc(draws, bins=100, min=0, max=1)
    assert 60 < chi_square(bins) < 150  # 99 degrees of freedom: both ends are beyond 99.9 %


@pytest.mark.parametrize("axis", ["places", "images", "steps", "seeds"])
def test_neighbours_are_independent(axis: str) -> None:
    """Pairs of neighbours, along whatever they are neighbours in, fill the square evenly."""
    if axis == "places":
        draws = Streams(0, IDS).uniform(1000, step=0, use="test")
        first, second = draws[:, :-1], draws[:, 1:]
    elif axis == "images":
        draws = Streams(0, torch.arange(1000)).uniform(64, step=0, use="test")
        first, second = draws[:-1], draws[1:]
    elif axis == "steps":
        draws = torch.cat([Streams(0, IDS).uniform(30, step=s, use="test") for s in range(34)], 1)
        first, second = draws[:, :-30], draws[:, 30:]
    else:
        draws = torch.cat([Streams(s, IDS).uniform(30, step=0, use="test") for s in range(34)], 1)
        first, second = draws[:, :-30], draws[:, 30:]
    cells = (first * 8).floor() * 8 + (second * 8).floor()
    assert 30 < chi_square(torch.bincount(cells.flatten().long(), minlength=64).double()) < 105


def test_normal_numbers_have_the_moments_of_a_normal() -> None:
    draws = Streams(0, torch.arange(200)).normal(1000, step=0, use="test").double()
    assert draws.isfinite().all()
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        spread = math.sqrt({1: 1, 2: 2, 3: 15, 4: 96}[power] / draws.numel())
        assert abs((draws**power).mean().item() - moment) < 4 * spread


def test_whole_numbers_are_even_and_below_their_end() -> None:
    draws = Streams(0, torch.arange(100)).integers(7, 1000, step=0, use="test")
    assert draws.dtype == torch.long
    counts = torch.bincount(draws.flatten(), minlength=7).double()
    assert len(counts) == 7
    assert chi_square(counts) < 22.5  # six degrees of freedom, 99.9 %


def test_a_draw_without_a_shape_is_one_number_an_image() -> None:
    assert Streams(0, IDS).uniform(step=0, use="test").shape == (64,)
    assert Streams(0, IDS[:0]).uniform(3, step=0, use="test").shape == (0, 3)


def test_reseeded_streams_are_others_and_belong_to_the_image_too() -> None:
    streams = Streams(3, torch.arange(6))
    other = streams.reseeded(1)
    assert not torch.equal(other.uniform(5, step=0, use="a"), streams.uniform(5, step=0, use="a"))
    assert torch.equal(
        other.uniform(5, step=0, use="a"), streams.reseeded(1).uniform(5, step=0, use="a")
    )
    rows = torch.tensor([4, 0])
    for cut in (streams[rows].reseeded(1), other[rows]):
        drawn = cut.uniform(5, step=2, use="b")
        assert torch.equal(drawn, other.uniform(5, step=2, use="b")[rows])
    second = streams.reseeded(2).uniform(5, step=0, use="a")
    assert not torch.equal(other.uniform(5, step=0, use="a"), second)
