"""One watched run per specification, and the contract's sentences as assertions."""

import time
from functools import cache
from unittest.mock import patch

from torch import Tensor

from contract.specifications import SPECS
from pinprick import Attack, AttackResult, build
from pinprick.contract.ground import ground_of
from pinprick.contract.one_run import differences, unsound
from pinprick.contract.watched_run import WatchedRun, watch


@cache
def baseline(name: str) -> WatchedRun:
    """The run of this specification, whose seconds are calls of the network; one per process."""
    attack = build(SPECS[name])
    net = ground_of(attack).watched()
    with patch.object(time, "perf_counter", lambda: float(net.calls)):
        return watch(attack, net)


def assert_sound(attack: Attack, result: AttackResult, images: Tensor) -> None:
    assert list(unsound(attack, result, images)) == []


def assert_same(first: AttackResult, second: AttackResult) -> None:
    assert list(differences(first, second)) == []
