"""How good an attack is at least, on the Fashion-MNIST network and images that come with us.

A floor is what was measured with some room for another machine's rounding. It moves only together
with a line in the changelog.
"""

from typing import Any, NamedTuple

import pytest
import torch

from pinprick import Classifier, build, load_data, load_model, run_attack
from pinprick.data.dataset import Dataset


class Floor(NamedTuple):
    """What is asked of an attack.

    Attributes:
        spec: The attack and its settings.
        fooled: The fooling rate, at least.
        median: Median of the elements needed, at most; a grey image has as many as pixels.
    """

    spec: dict[str, Any]
    fooled: float
    median: float


FLOORS = {
    "auto": Floor({"name": "auto", "preset": "quick"}, 1.0, 6),
    "fmn": Floor({"name": "fmn", "steps": 100}, 1.0, 7),
    "cw_l0": Floor({"name": "cw_l0", "preset": "quick"}, 1.0, 7),
    "pgd0": Floor({"name": "pgd0", "k": 15, "steps": 30, "restarts": 1, "step_size": 0.5}, 0.8, 15),
    "pgd0, smallest k": Floor(
        {"name": "pgd0", "k": "smallest", "steps": 30, "restarts": 1, "step_size": 0.5}, 1.0, 7
    ),
    "sparse_pgd": Floor({"name": "sparse_pgd", "k": 15, "steps": 50}, 0.9, 15),
    "sparse_pgd, smallest k": Floor(
        {"name": "sparse_pgd", "k": "smallest", "steps": 30, "rounds": 8}, 1.0, 6
    ),
    "sapf": Floor({"name": "sapf", "preset": "quick", "k": 15}, 0.9, 15),
    "sparse_rs": Floor({"name": "sparse_rs", "k": 15, "queries": 400}, 0.85, 15),
    "sparse_rs, smallest k": Floor(
        {"name": "sparse_rs", "k": "smallest", "queries": 120, "rounds": 6}, 1.0, 11
    ),
    "brusle": Floor({"name": "brusle", "k": 15, "queries": 500}, 0.85, 15),
    "brusle, smallest k": Floor(
        {"name": "brusle", "k": "smallest", "queries": 300, "rounds": 8}, 0.95, 7
    ),
    "onepixel": Floor({"name": "onepixel", "k": 15, "preset": "quick"}, 0.2, torch.inf),
    "corner_search": Floor({"name": "corner_search", "preset": "quick"}, 0.95, 11),
    "jsma": Floor({"name": "jsma"}, 1.0, 11),
    "jsma both ways": Floor({"name": "jsma", "preset": "quick"}, 1.0, 9),
    "strattack": Floor({"name": "strattack", "preset": "quick"}, 1.0, 7),
    "sparse_evo": Floor({"name": "sparse_evo", "queries": 300}, 1.0, 13),
    "sa_moo": Floor({"name": "sa_moo", "k": 50, "queries": 300}, 0.75, 30),
}


@pytest.fixture(scope="module")
def network() -> Classifier:
    return load_model("pinprick:fashion_cnn")


@pytest.fixture(scope="module")
def sample() -> Dataset:
    return load_data("fashion_sample")[:32]


@pytest.mark.parametrize("name", FLOORS)
def test_is_as_good_as_it_was(name: str, network: Classifier, sample: Dataset) -> None:
    floor = FLOORS[name]
    result = run_attack(build(floor.spec), network, sample.images(), torch.as_tensor(sample.labels))
    assert result.fooling_rate >= floor.fooled
    assert result.needed_elements[result.correct].median() <= floor.median
