"""What one watched run of every attack shows."""

import pytest
import torch

from pinprick import ATTACKS
from pinprick.contract.check_attack import Clause
from pinprick.contract.one_run import ONE_RUN
from pinprick.contract.watched_run import WatchedRun

# Attacks that may pass by an image with fewer changes.
NOT_BY_COUNT = ("onepixel", "sa_moo", "wifgsm_printed")


@pytest.mark.parametrize("clause", ONE_RUN, ids=lambda clause: clause.__name__)
def test_keeps_the_clause(base: WatchedRun, clause: Clause) -> None:
    assert list(clause(base)) == []


def test_is_in_the_table(base: WatchedRun) -> None:
    assert ATTACKS[base.attack.card.name] is type(base.attack)


def test_the_trace_goes_down_and_ends_at_the_result(base: WatchedRun) -> None:
    facts, result, trace = base.attack.facts(), base.result, base.result.trace
    assert trace is not None
    owner = torch.arange(len(result)).repeat_interleave(trace.steps)
    same = owner[1:] == owner[:-1]
    assert (trace.forwards.diff()[same] >= 0).all()
    assert (trace.backwards.diff()[same] >= 0).all()
    for name in ("margin", "pixels", "elements"):
        values = getattr(trace, name)
        assert (values[1:] <= values[:-1])[same].all(), name
    assert (trace.forwards <= result.forwards[owner]).all()
    assert (trace.backwards <= result.backwards[owner]).all()
    last = int(result.forwards.max())
    margin = result.goal.margin(result.adversarial_logits).float()
    for unit, needed in (("pixels", result.needed_pixels), ("elements", result.needed_elements)):
        fewest = trace.fewest_after(last, unit)  # type: ignore[arg-type]
        assert (fewest <= needed).all()
        if facts.kind == "minimal" and facts.unit == unit and facts.name not in NOT_BY_COUNT:
            assert torch.equal(fewest.double(), needed)
    assert (trace.margin_after(last) <= margin).all()
