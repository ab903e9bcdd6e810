"""Every attack on images of every kind."""

from itertools import combinations, product

import pytest

from contract.specifications import SPECS
from pinprick import Attack
from pinprick.contract.kinds_of_images import BLOCKS, CASES, breaches_on

pytestmark = pytest.mark.plain


def test_runs_on_every_kind_of_image(attack: Attack, spec: str) -> None:
    """The attacks take turns with the blocks, so that they have all pairs between them."""
    assert list(breaches_on(BLOCKS[sorted(SPECS).index(spec) % 4], attack)) == []


@pytest.mark.slow
def test_runs_on_every_pair_of_kinds(attack: Attack, spec: str) -> None:
    mine = sorted(SPECS).index(spec) % 4
    cases = [one for block in BLOCKS[:mine] + BLOCKS[mine + 1 :] for one in block]
    assert list(breaches_on(cases, attack)) == []


def test_the_cases_hold_every_pair_of_kinds() -> None:
    names = ("shape", "dtype", "mask", "classes", "targeted", "channels_last", "at_the_edges")
    for first, second in combinations(names, 2):
        pairs = {(getattr(one, first), getattr(one, second)) for one in CASES}
        ones, others = ({getattr(one, name) for one in CASES} for name in (first, second))
        assert pairs == set(product(ones, others)), (first, second)
    for block in BLOCKS:
        for name in names[:4]:
            assert {getattr(one, name) for one in block} == {0, 1, 2, 3}, name
