"""The checks that read rows of the project's plans, and the attacks of its own in them."""

import math
import runpy
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from bench.cells import CELL, ORIGIN, cell_with
from pinprick.attacks import ATTACKS, Pinprick
from pinprick.attacks.build import build
from pinprick.attacks.pinprick.turns import Kind, Plan
from pinprick.bench.store import Store
from pinprick.zoo import shipped

ROOT = Path(__file__).parents[2]
NOT_RANKED = {"egs_tssa"}  # a generator serves one model


@pytest.fixture
def floors() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks/floors.py"))


@pytest.fixture
def parity() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks/parity/compare.py"))


@pytest.fixture
def compare(parity: dict[str, Any]) -> Any:
    return parity["compare"]


def test_every_attack_of_the_plan_has_a_floor(floors: dict[str, Any]) -> None:
    plan = tomllib.loads((ROOT / "plans/floors.toml").read_text())
    assert [floor.spec for floor in floors["FLOORS"]] == plan["attacks"]


@pytest.mark.parametrize(
    ("success", "elements", "verdict"),
    [
        ([True, True, False], [4, 6, None], "holds"),
        ([True, True, False], [4, 7, None], "BROKEN"),
        ([True, False, False], [1, None, None], "BROKEN"),
        ([False, False, False], [None, None, None], "BROKEN"),
    ],
)
def test_a_floor_holds_where_enough_images_are_fooled_with_few_elements(
    floors: dict[str, Any],
    tmp_path: Path,
    success: list[bool],
    elements: list[int | None],
    verdict: str,
) -> None:
    store = Store(tmp_path)
    store.prepare()
    cell = cell_with(attack=build("greedy").describe())
    table = pa.table(
        {
            "cell": [cell.key] * len(CELL),
            "index": pa.array(range(len(CELL)), pa.int64()),
            "correct": [True] * len(CELL),
            "success": success,
            "elements": pa.array(elements, pa.int64()),
        }
    )
    store.write(cell, table, ORIGIN)
    floor = floors["Floor"]({"name": "greedy"}, 2, 5.0)
    assert floors["check"](floor, store) == verdict
    assert floors["check"](floor._replace(spec={"name": "fmn"}), store) == "no rows"


def rows(fooled: list[bool], pixels: list[int]) -> pl.DataFrame:
    count = len(fooled)
    return pl.DataFrame(
        {
            "index": range(count),
            "success": fooled,
            "correct": [True] * count,
            "pixels": pixels,
            "forwards": [10] * count,
            "backwards": [0] * count,
            "seconds": [0.5] * count,
            "error": [""] * count,
        }
    )


def test_ours_is_worse_where_it_needs_clearly_more(compare: Any) -> None:
    few, more = rows([True] * 10, [4] * 10), rows([True] * 10, [5, 6] * 5)
    worse, better = compare(more, few, "pixels"), compare(few, more, "pixels")
    assert (worse["worse"], worse["better"]) == (True, False)
    assert (better["worse"], better["better"]) == (False, True)
    assert (better["ours"]["mean"], better["theirs"]["mean"]) == (4, 5.5)
    assert (better["ours_smaller"], better["theirs_smaller"]) == (10, 0)


def test_ours_is_worse_where_it_fools_fewer_beyond_chance(compare: Any) -> None:
    all_of_them, none = rows([True] * 10, [4] * 10), rows([False] * 10, [4] * 10)
    nearly = rows([False] * 2 + [True] * 8, [4] * 10)
    assert compare(none, all_of_them, "pixels")["worse"]
    assert not compare(nearly, all_of_them, "pixels")["worse"]
    assert not compare(all_of_them, none, "pixels")["worse"]


def test_a_product_of_a_plan_gives_a_pair_from_the_rows_of_both(
    parity: dict[str, Any], tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    specs: list[dict[str, Any]] = [{"name": "greedy"}, {"name": "fmn", "steps": 7}]
    store.prepare()
    for spec, elements in zip(specs, ([4, 5, 6], [6, 6, 8]), strict=True):
        cell = cell_with(attack=build(spec).describe())
        table: dict[str, Any] = dict.fromkeys(("l1", "l2", "linf", "seconds"), [0.5] * 3)
        table |= {"elements": elements, "pixels": elements, "forwards": [9] * 3}
        table |= {"cell": [cell.key] * 3, "index": [0, 1, 2], "backwards": [9] * 3}
        table |= {"success": [True] * 3, "correct": [True] * 3, "error": [""] * 3}
        store.write(cell, pa.table(table), ORIGIN)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'models = ["{CELL.model}"]\ndata = ["{CELL.data}"]\n'
        'attacks = ["greedy", {name = "fmn", steps = 7}]\n'
    )
    (row,) = parity["pairs"](plan, store)
    assert row["titles"] == {"ours": "Greedy pixels", "theirs": "FMN"}
    assert (row["images"], row["ours"]["mean"], row["theirs"]["mean"]) == (
        3,
        5,
        pytest.approx(20 / 3),
    )


def test_a_budget_attack_may_use_its_budget(compare: Any) -> None:
    few, more = rows([True] * 10, [4] * 10), rows([True] * 10, [5, 6] * 5)
    assert not compare(more, few, "pixels", minimal=False)["worse"]


def test_a_minimal_attack_beside_a_budget_counts_what_keeps_to_it(compare: Any) -> None:
    row = compare(rows([True] * 4, [1, 2, 3, 9]), rows([True] * 4, [2] * 4), "pixels", most=2)
    assert (row["ours"]["fooled"], row["theirs"]["fooled"]) == (2, 4)
    assert row["ours"]["mean"] == 1.5


def test_images_that_one_side_lacks_do_not_count(compare: Any) -> None:
    row = compare(rows([True] * 4, [4, 4, 90, 90]), rows([True] * 2, [4] * 2), "pixels")
    assert row["images"] == 2
    assert row["ours"]["mean"] == 4


def test_images_with_an_error_do_not_count(compare: Any) -> None:
    ours = rows([True] * 3, [4, 4, 90]).with_columns(error=pl.Series(["", "", "broken"]))
    row = compare(ours, rows([True] * 3, [4] * 3), "pixels")
    assert row["images"] == 2
    assert row["ours"]["mean"] == 4


def kinds_of(keep: Callable[[Kind], bool]) -> dict[str, Any]:
    return {"kinds": tuple(kind for kind in Plan().kinds if keep(kind))}


ABLATIONS: dict[str, dict[str, Any]] = {
    "WithoutSignedSteps": {"signed": 0},
    "WithoutTrims": {"first_trim": 0, "trim": 0.0},
    "WithoutAims": {"rivals": 0},
    "WithoutDraws": {"kinds": tuple(replace(kind, temperature=0.0) for kind in Plan().kinds)},
    "WithoutValueSteps": {"stride": 0.0},
    "WithoutAnnealsFirst": {"many": math.inf},  # no image has so many units
    "WithoutFastAnneals": kinds_of(lambda kind: kind.rate != 2.0),
    "WithoutSlowAnneals": kinds_of(lambda kind: kind.rate != 0.5),
    "WithoutAnnealing": kinds_of(lambda kind: kind.search != "anneal"),
    "AnnealingAlone": kinds_of(lambda kind: kind.search == "anneal"),
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_leaves_out_one_part(name: str) -> None:
    attack = build(f"{ROOT}/plans/ablation.py:{name}")
    assert isinstance(attack, Pinprick)
    assert attack.plan == replace(Plan(), **ABLATIONS[name])
    assert attack.plan != Plan()
    assert Pinprick.plan == Plan()


def test_the_plan_of_ablations_names_each_of_them_beside_the_whole_attack() -> None:
    classes = runpy.run_path(str(ROOT / "plans/ablation.py"))
    made = {
        name
        for name, value in classes.items()
        if isinstance(value, type) and issubclass(value, Pinprick) and value is not Pinprick
    }
    assert made == set(ABLATIONS)
    plan = tomllib.loads((ROOT / "plans/ablation.toml").read_text(encoding="utf-8"))
    for product in plan["product"]:
        names = [attack["name"] for attack in product["attacks"]]
        assert sorted(names) == sorted(
            ["pinprick", *(f"plans/ablation.py:{name}" for name in made)]
        )


def test_every_sparse_attack_is_on_the_leaderboard() -> None:
    plan = tomllib.loads((ROOT / "plans/leaderboard.toml").read_text(encoding="utf-8"))
    sparse = {name for name, attack in ATTACKS.items() if attack.card.norm == "l0"}
    assert {attack["name"] for attack in plan["attacks"]} == sparse - NOT_RANKED


def test_every_model_with_weights_here_is_on_the_leaderboard() -> None:
    planned = set()
    for name in ("leaderboard", "leaderboard_cpu"):
        plan = tomllib.loads((ROOT / f"plans/{name}.toml").read_text(encoding="utf-8"))
        planned |= {model for product in plan["product"] for model in product["models"]}
    here = {f"pinprick:{name}" for name in shipped.names()}
    here |= {f"file:models/{path.parent.name}" for path in ROOT.glob("models/*/card.json")}
    assert here <= planned
