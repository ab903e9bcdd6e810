"""The block of an attack's page and the excerpt of README, from rows worked out by hand."""

import json
import math
from typing import Any

import pytest
from bench_frame import cell, frame

from pinprick.attacks import Greedy, SparseRS
from pinprick.attacks.build import build, describe
from pinprick.report.docs_attack_numbers import (
    NOT_MEASURED,
    attack_block,
    attack_numbers,
    settings_words,
    task_table,
)

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF = math.inf
GREEDY: dict[str, Any] = {"revision": Greedy.card.revision}


def about(attack: Any, **more: Any) -> dict[str, Any]:
    """What a cell says about an attack."""
    plain = describe(attack)
    return {
        "attack": plain["name"],
        "settings": json.dumps(plain),
        "revision": attack.card.revision,
        "max_forwards": None,
        "max_backwards": None,
        **more,
    }


def test_numbers_of_an_attack_by_hand() -> None:
    rows = frame(cell("greedy", [0, 2, 4, 6], **GREEDY), cell("jsma", [0, 2, 6, INF]))
    (one,) = (one for one in attack_numbers(*rows) if one.attack == "greedy")
    assert (one.correct, one.images, one.fooling_rate.value) == (3, 4, 1.0)
    assert (one.units["pixels"].mean, one.units["pixels"].median) == (4, 4)
    assert (one.units["elements"].mean, one.units["elements"].median) == (12, 12)
    assert (one.forwards, one.backwards) == (10, 5)
    assert one.units["pixels"].optimality.value == 1


def captions(block: str) -> list[str]:
    return [line for line in block.splitlines() if line.endswith(":")]


def test_a_block_has_a_line_per_model_and_a_table_per_goal() -> None:
    rows = frame(
        cell("greedy", [1, 2, 3], **GREEDY),
        cell("greedy", [2, 4, 6], model="file:models/other", **GREEDY),
        cell("greedy", [5, 5, 5], goal="least_likely", **GREEDY),
    )
    block = attack_block(attack_numbers(*rows), "greedy")
    assert block.count("| net | 3 of 3 | 100.0 % |") == 2
    assert block.count("| other | 3 of 3 | 100.0 % | 4.00 | 4 |") == 1
    assert captions(block) == ["Pixels, least likely; defaults:", "Pixels, untargeted; defaults:"]


def test_a_table_holds_the_runs_in_its_unit_and_shared_settings_stand_above_it() -> None:
    of = {"revision": SparseRS.card.revision, "max_passes": 9}
    plain = {"name": "sparse_rs", "unit": "elements"}
    rows = frame(
        cell("sparse_rs", [1, 2, 3], settings=plain, **of),
        cell("sparse_rs", [1, 2, 3], settings={**plain, "k": 7}, **of),
        cell("sparse_rs", [1, 2, 3], settings={**plain, "unit": "pixels"}, **of),
    )
    block = attack_block(attack_numbers(*rows), "sparse_rs")
    assert captions(block) == [
        "Elements, untargeted; `unit=elements`, at most 9 passes:",
        "Pixels, untargeted; at most 9 passes:",
    ]
    assert [line.split(" | ")[:2] for line in block.splitlines() if line.startswith("| net")] == [
        ["| net", "defaults"],
        ["| net", "`k=7`"],
        ["| net", "3 of 3"],
    ]


def test_models_of_the_same_short_name_are_written_in_full() -> None:
    rows = frame(
        cell("greedy", [1], model="pinprick:net", **GREEDY),
        cell("greedy", [1], model="file:net", **GREEDY),
        cell("greedy", [1], model="file:models/other", **GREEDY),
    )
    assert [line.split(" | ")[0] for line in task_table(attack_numbers(*rows)).splitlines()] == [
        "| model",
        "| ---",
        "| file:net on some/test",
        "| other",
        "| pinprick:net on some/test",
    ]


def test_failures_make_the_mean_infinite_and_the_mean_over_fooled_stands_beside_it() -> None:
    block = attack_block(attack_numbers(*frame(cell("greedy", [2, 4, INF], **GREEDY))), "greedy")
    assert "| 66.7 % | ∞ (3.00) | 4 |" in block


def test_an_attack_without_rows_is_not_measured() -> None:
    assert attack_block(attack_numbers(*frame(cell("greedy", [1]))), "jsma") == NOT_MEASURED
    assert attack_block([], "greedy") == "Not measured."


def test_settings_are_named_by_preset_difference_limit_and_revision() -> None:
    quick = build({"name": "sparse_rs", "preset": "quick"})
    assert settings_words(about(SparseRS())) == ()
    assert settings_words(about(quick)) == ("preset quick",)
    mixed = build({"name": "sparse_rs", "preset": "quick", "k": 7})
    assert settings_words(about(mixed)) == ("preset quick", "`k=7`")
    assert settings_words(about(SparseRS(k=7))) == ("`k=7`",)
    limited = about(SparseRS(), max_forwards=2000)
    assert settings_words(limited) == ("at most 2000 forwards",)
    assert settings_words(about(SparseRS(), max_passes=2000)) == ("at most 2000 passes",)
    older = about(SparseRS(), revision=SparseRS.card.revision - 1)
    assert settings_words(older)[0].startswith(f"revision {SparseRS.card.revision - 1}; now it is")
