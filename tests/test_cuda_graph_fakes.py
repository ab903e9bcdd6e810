"""What recordings ask of torch, on any machine: no more than their thread, and memory back."""

import threading
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import cuda_graph


class FakeGraph:
    """Notes how each recording begins."""

    begun: list[dict[str, Any]]

    def capture_begin(self, **given: Any) -> None:
        self.begun.append(given)

    def capture_end(self) -> None:
        pass


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """How each recording began."""
    FakeGraph.begun = []
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    return FakeGraph.begun


@pytest.mark.plain  # a fake is no torch.cuda.CUDAGraph
def test_calls_of_other_threads_do_not_break_a_recording(begun: list[dict[str, Any]]) -> None:
    cuda_graph._captured(lambda: torch.zeros(1), pool="mine")
    assert begun == [{"pool": "mine", "capture_error_mode": "thread_local"}]


def test_nor_the_one_that_follows_a_failure(
    begun: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: torch.tensor([0.0]))

    def fails() -> Tensor:
        raise ValueError("waits for the device")

    with pytest.raises(ValueError, match="waits for the device"):
        cuda_graph._captured(fails, pool="mine")
    assert [given["capture_error_mode"] for given in begun] == ["thread_local"] * 2


@pytest.mark.parametrize(("threads", "modes"), [(1, ["error", 0]), (2, [])])
def test_waiting_is_refused_only_where_no_other_thread_may_wait(
    threads: int, modes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The debug mode is that of the whole process."""
    set_to: list[Any] = []
    monkeypatch.setattr(threading, "active_count", lambda: threads)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_to.append)
    with cuda_graph._waiting_refused():
        assert set_to == modes[:1]
    assert set_to == modes


@pytest.fixture
def emptied(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An entry each time that the cache of GPU memory is emptied."""
    found: list[None] = []
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "mine")
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: found.append(None))
    return found


def test_the_memory_of_recorded_steps_is_given_back(emptied: list[None]) -> None:
    with cuda_graph.cuda_steps(torch.device("cuda")) as steps:
        assert steps is not None
        steps._first = torch.cuda.CUDAGraph.__new__(torch.cuda.CUDAGraph)
        assert not emptied
    assert steps._first is None
    assert len(emptied) == 1


def test_nothing_is_given_back_where_nothing_was_recorded(emptied: list[None]) -> None:
    with cuda_graph.cuda_steps(torch.device("cuda")) as steps:
        assert steps is not None
    with cuda_graph.cuda_steps(torch.device("cpu")) as none:
        assert none is None
    assert not emptied
