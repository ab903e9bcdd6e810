"""A unit that is mistyped is refused wherever one is taken, and so are budgets that are none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from attacked_images import attacked

from pinprick import BadInput, Units, best_of, plot_curves, polish
from pinprick.attacks import Greedy
from pinprick.attacks.build import with_unit
from pinprick.oracle import fewest_for_target
from pinprick.robust import stay_correct
from pinprick.trace import Trace

pytestmark = pytest.mark.plain  # whole numbers where hints say float

RUN = attacked(3, 5)
NONE: Any = None  # never looked at: the unit is checked first


def trace() -> Trace:
    one = torch.ones(1, dtype=torch.long)
    return Trace(one, one, one, one.float(), one.float(), one.float())


TAKE_A_UNIT: dict[str, Callable[[Any], object]] = {
    "robust_accuracy": lambda unit: RUN.robust_accuracy([1, 5], unit=unit),
    "robust_accuracy_curve": lambda unit: RUN.robust_accuracy_curve(unit),
    "plot_curves": lambda unit: plot_curves(RUN, unit=unit),
    "best_of": lambda unit: best_of({"a": RUN}, unit),
    "polish": lambda unit: polish(RUN, NONE, unit=unit),
    "fewest_after": lambda unit: trace().fewest_after(1, unit),
    "with_unit": lambda unit: with_unit(Greedy(), unit),
    "Units": Units,
    "stay_correct": lambda unit: stay_correct(Greedy(), NONE, NONE, NONE, unit=unit),
    "fewest_for_target": lambda unit: fewest_for_target(NONE, NONE, NONE, unit=unit),
}


@pytest.mark.parametrize("name", TAKE_A_UNIT)
@pytest.mark.parametrize("unit", ["pixel", "element", None, ["pixels"]])
def test_a_mistyped_unit_is_refused_with_the_names(name: str, unit: Any) -> None:
    with pytest.raises(BadInput, match=r"^unit must be one of 'elements', 'pixels', got "):
        TAKE_A_UNIT[name](unit)


@pytest.mark.parametrize("budgets", [-1, [1, -1], "5", ["5"], None, True, float("nan"), [[1]]])
def test_budgets_are_numbers_from_0_on(budgets: Any) -> None:
    with pytest.raises(BadInput, match=r"^budgets must be numbers of units of at least 0, got "):
        RUN.robust_accuracy(budgets)


@pytest.mark.parametrize("kind", [list, tuple, np.array, torch.tensor])
def test_budgets_come_in_any_kind_of_list(kind: Callable[[Any], Any]) -> None:
    assert RUN.robust_accuracy(kind([3, 9])) == [0.5, 0.0]
    assert RUN.robust_accuracy(kind([])) == []
    one: Any = np.int64(3)
    assert RUN.robust_accuracy(one) == 0.5
