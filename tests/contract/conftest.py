"""What the tests of the contract are given: a specification, its attack, its watched run."""

import pytest

from contract.baseline import baseline
from contract.specifications import SPECS
from pinprick import Attack, build
from pinprick.contract.watched_run import WatchedRun


@pytest.fixture(params=sorted(SPECS))
def spec(request: pytest.FixtureRequest) -> str:
    """The name of a specification."""
    name: str = request.param
    return name


@pytest.fixture
def attack(spec: str) -> Attack:
    return build(SPECS[spec])


@pytest.fixture
def base(spec: str) -> WatchedRun:
    return baseline(spec)
