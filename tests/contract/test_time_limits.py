"""A limit of time: what is done within it is as without it."""

import time

import pytest

from contract.baseline import assert_same, assert_sound
from pinprick.contract.watched_run import WatchedRun

pytestmark = pytest.mark.plain


def test_keeps_to_the_referees_time(base: WatchedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    net, free = base.ground.watched(), base.result
    monkeypatch.setattr(time, "perf_counter", lambda: float(net.calls))
    limit = max(1, int(free.seconds) - 1 if free.seconds < 9 else int(free.seconds) // 2)
    held = base.rerun(model=net, max_seconds=float(limit))
    assert held.seconds <= limit
    assert (held.forwards <= free.forwards).all()
    assert_sound(base.attack, held, base.images)
    assert_same(held[~held.out_of_time], free[~held.out_of_time])
    assert held.out_of_time.any() == (limit < free.seconds)
    for row in (held.out_of_time & ~held.success).nonzero().flatten().tolist():
        assert held.remarks[row] == "out of time"
