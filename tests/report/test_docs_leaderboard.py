"""The page of the leaderboard: one board per dataset and unit, without the other unit's attacks."""

import math
import re
from typing import Any

import pytest
from bench_frame import cell, frame

from pinprick.report.docs_leaderboard import (
    attack_table,
    attackbench_table,
    boards,
    dataset_name,
    leaderboard_figure,
    mean_optimality,
    model_table,
)
from pinprick.report.docs_leaderboard_answer import answer

pytestmark = pytest.mark.plain  # whole numbers where hints say float

GREY, COLOUR = "mnist/test[0:3]", "cifar10/test[0:3]"


def run(attack: str, data: str, needed: list[float], **settings: Any) -> list[dict[str, Any]]:
    return cell(attack, needed, data=data, settings=settings)


STORE = frame(
    run("both", GREY, [2, 4, 6], unit="elements"),
    run("one", GREY, [2, 4, 8]),
    run("both", COLOUR, [2, 4, 6], unit="elements"),
    run("both", COLOUR, [1, 4, 6], unit="pixels"),
    run("one", COLOUR, [4, 8, 8]),
)


def test_a_board_has_no_attack_of_the_other_unit_where_both_were_run() -> None:
    for unit in ("elements", "pixels"):
        found = boards(*STORE, unit)
        assert list(found) == ["cifar10", "mnist"]
        for group in found.values():
            assert sorted(line.attack for line in group.attacks) == ["both", "one"]
    colour = {line.attack: line for line in boards(*STORE, "pixels")["cifar10"].attacks}
    assert colour["both"].median == 4
    assert colour["one"].optimality.value == pytest.approx(1 - (3 + 2) / (5 + 2))


def test_models_are_under_the_worst_case_of_attacks_in_both_units() -> None:
    found = boards(*STORE, "pixels", all_attacks=True)["cifar10"]
    assert len(found.stated) == 3


def test_tables_have_a_column_per_dataset_and_the_mean_over_them() -> None:
    head, _, first, second = attack_table(boards(*STORE, "pixels")).splitlines()
    assert head == "| attack | cifar10 | mnist | mean | passes |"
    assert first.startswith("| `both` | 1: 1.00 [1.00, 1.00] | 1: 1.00")
    assert first.endswith("| 1.000 | 10 + 5 |")
    assert second.startswith("| `one` |")


def test_an_attack_that_is_not_on_all_data_has_no_mean_and_comes_last() -> None:
    partly = frame(
        run("partly", GREY, [1, 2, 3]),
        run("whole", GREY, [2, 4, 6]),
        run("whole", COLOUR, [2, 4, 6]),
    )
    found = boards(*partly, "pixels")
    last = attack_table(found).splitlines()[-1]
    assert last.startswith("| `partly` | - | 1: ")
    assert last.endswith("| - | 10 + 5 |")
    assert math.isnan(mean_optimality({}, found))


def test_models_are_listed_with_the_number_of_attacks_they_are_under() -> None:
    lines = model_table(boards(*STORE, "pixels")).splitlines()
    assert lines[0].startswith("| data | rank | model | clean | at 10 | at 24 |")
    assert lines[2].startswith("| cifar10 | 1 | `net` | 100.0 [44, 100] |")
    assert lines[2].endswith("| 3 | 2 |")


def test_the_answer_names_the_best_attacks_and_models() -> None:
    every = boards(*STORE, "pixels", all_attacks=True)
    text = answer({unit: boards(*STORE, unit) for unit in ("elements", "pixels")}, every)
    lines = re.sub(r"\n +", " ", text).splitlines()
    assert [line[:2] for line in lines] == ["1.", "2.", "3.", "4.", "5."]
    assert "`both` has the highest mean optimality, 1.000, of 2 attacks" in lines[0]
    assert "Next: `one` (" in lines[0]
    assert lines[3].endswith("on every dataset: `both`.")
    assert "`net` 0.0 % (cifar10)" in lines[4]


def test_published_values_stand_beside_ours() -> None:
    store = frame(run("sigma_zero", COLOUR, [1, 2, 3]), run("greedy", COLOUR, [2, 2, 3]))
    lines = attackbench_table(boards(*store, "elements")).splitlines()
    assert "| `sigma_zero` | 1.000 [1.000, 1.000] | 1.000 | 100.0 % | 0.972 | 100.0 % |" in lines[2]
    assert "| - | - |" in lines[3]


def test_the_figure_has_one_panel_per_unit() -> None:
    figure = leaderboard_figure({unit: boards(*STORE, unit) for unit in ("elements", "pixels")})
    labels = [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]
    assert labels == [["both", "one"], ["both", "one"]]


def test_the_name_of_a_dataset_is_short() -> None:
    assert dataset_name("cifar10/test[0:200]") == "cifar10"
    assert dataset_name("csv:nips2017/images.csv[split=test]") == "nips2017"
