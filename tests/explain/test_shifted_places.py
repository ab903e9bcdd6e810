"""Groups that lie as the paper says, and by chance."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

FILE = Path(__file__).parents[2] / "benchmarks" / "shifted_places.py"


@pytest.fixture(scope="module")
def shifted() -> Any:
    spec = importlib.util.spec_from_file_location("shifted_places", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["shifted_places"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(*groups: tuple[str, tuple[int, int]]) -> Any:
    return SimpleNamespace(
        groups=[
            SimpleNamespace(
                shapley=SimpleNamespace(label=label),
                pixels=(pixel,),
                before=((0.0,),),
                after=((0.5,),),
            )
            for label, pixel in groups
        ]
    )


@pytest.fixture
def maps() -> tuple[torch.Tensor, torch.Tensor]:
    """The true class in the first row, the adversarial class in the second, of five."""
    true, adversarial = torch.zeros(5, 5), torch.zeros(5, 5)
    true[0], adversarial[1] = 1.0, 1.0
    return true, adversarial


def test_groups_lie_as_said_or_the_other_way_round(
    shifted: Any, maps: tuple[torch.Tensor, torch.Tensor]
) -> None:
    groups = told(
        ("obscuring", (0, 3)),
        ("leading", (1, 1)),
        ("leading", (0, 2)),
        ("mixed", (0, 0)),
        ("obscuring", (4, 4)),
    )
    found = shifted.places(groups, *maps, 0.2)
    assert (found.as_said, found.against) == (2, 1)


def test_by_chance_a_pixel_is_as_often_on_either_map(
    shifted: Any, maps: tuple[torch.Tensor, torch.Tensor]
) -> None:
    found = shifted.places(told(("obscuring", (0, 3)), ("leading", (1, 1))), *maps, 0.2)
    assert found.null_as_said == pytest.approx(2 * 5 / 25)
    assert found.null_against == pytest.approx(2 * 5 / 25)


def test_an_image_without_a_map_counts_for_nothing(
    shifted: Any, maps: tuple[torch.Tensor, torch.Tensor]
) -> None:
    found = shifted.places(told(("obscuring", (0, 3))), torch.zeros(5, 5), maps[1], 0.2)
    assert found == shifted.Places()


def test_places_of_several_images_add_up(shifted: Any) -> None:
    total = shifted.Places(1, 2, 3, 4) + shifted.Places(10, 20, 30, 40)
    assert total == shifted.Places(11, 22, 33, 44)
