"""Limits of passes and of time: what is done within them is as without them."""

import time

import pytest
import torch

from contract.baseline import Baseline, Watched, assert_same, assert_sound

pytestmark = pytest.mark.plain


@pytest.mark.parametrize("passes", ["forwards", "backwards"])
def test_keeps_to_the_referees_limit(base: Baseline, passes: str) -> None:
    spent = getattr(base.result, passes)
    if not spent.any():
        pytest.skip(f"makes no {passes}")
    limits = {int(spent.max()) - 1}
    if passes == "forwards":
        limits |= {0, int(spent.median())}
    for limit in limits:
        held = base.rerun(**{f"max_{passes}": limit})
        over = spent > limit
        assert (getattr(held, passes) <= limit).all()
        assert torch.equal(held.out_of_budget, over)
        assert_same(held[~over], base.result[~over])
        assert_sound(base.attack, held, base.images)
        for row in (over & ~held.success).nonzero().flatten().tolist():
            assert held.remarks[row] == "out of budget"


def test_keeps_to_the_referees_time(base: Baseline, monkeypatch: pytest.MonkeyPatch) -> None:
    net, free = Watched(), base.result
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
