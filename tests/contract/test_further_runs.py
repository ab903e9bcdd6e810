"""What further runs of every attack show: other seeds, neighbours, targets, masks and limits."""

import pytest

from pinprick.contract.check_attack import Clause
from pinprick.contract.further_runs import FURTHER_RUNS
from pinprick.contract.watched_run import WatchedRun

pytestmark = pytest.mark.plain


@pytest.mark.parametrize("clause", FURTHER_RUNS, ids=lambda clause: clause.__name__)
def test_keeps_the_clause(base: WatchedRun, clause: Clause) -> None:
    assert list(clause(base)) == []
