"""A finished cell gives its result again, without an attack."""

from pathlib import Path

import pyarrow as pa
import pytest
import torch

from bench.conftest import WritePlan
from pinprick.attacks import Greedy
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import NO_VICTIMS
from pinprick.bench.plan_file import read_plan
from pinprick.bench.row_schema import ROWS
from pinprick.bench.run_cell import run_cell
from pinprick.bench.saved_result import saved_result
from pinprick.bench.store import Store
from pinprick.explain.explain_result import explain_result
from pinprick.goal import least_likely
from pinprick.run import run_attack

PLAN = """
    models = ["pinprick:fashion_cnn"]
    data = ["fashion_sample[2:8]"]
    attacks = [{name = "greedy"}]
    goals = ["GOAL"]
    batch_size = 3
    max_passes = 25
    dense = DENSE
    """


def stored(write_plan: WritePlan, cache: Cache, folder: Path, **words: str) -> tuple[Store, Cell]:
    text = PLAN
    for name, word in words.items():
        text = text.replace(name, word)
    (cell,) = read_plan(write_plan(text)).cells(cache)
    store = Store(folder / "store")
    store.prepare()
    store.write(cell, *run_cell(cell, cache))
    return store, cell


@pytest.mark.parametrize("goal", ["untargeted", "least_likely"])
def test_it_is_the_result_of_the_attack(
    write_plan: WritePlan, cache: Cache, tmp_path: Path, goal: str
) -> None:
    store, cell = stored(write_plan, cache, tmp_path, GOAL=goal, DENSE="true")
    model, given = cache.model_of(cell), cache.images_of(cell)
    with torch.no_grad(), model.frozen():
        targets = least_likely(model(given.images), given.labels)
    wanted = run_attack(
        Greedy(),
        model,
        given.images,
        given.labels,
        targets=targets if goal == "least_likely" else None,
        ids=given.ids,
        batch_size=3,
        max_passes=25,
    )
    found = saved_result(store, cell.key, cache)
    assert not wanted.success.all()
    for name in ("adversarial", "success", "forwards", "backwards", "ids"):
        assert torch.equal(getattr(found, name), getattr(wanted, name)), name
    assert torch.equal(found.out_of_budget, wanted.out_of_budget & ~wanted.success)
    assert torch.allclose(found.adversarial_logits, wanted.adversarial_logits, atol=1e-5)
    for name in ("remarks", "attack", "model", "seed"):
        assert getattr(found, name) == getattr(wanted, name), name
    assert found.noise is not None
    assert (found.goal.targets is None) == (goal == "untargeted")
    assert len(explain_result(found, model).explanations) == len(wanted)


def test_a_victim_that_failed_is_no_failure_of_the_attack(
    write_plan: WritePlan, cache: Cache, tmp_path: Path
) -> None:
    store, cell = stored(write_plan, cache, tmp_path, GOAL="untargeted", DENSE="true")
    wanted = saved_result(store, cell.key, cache)
    _, origin, table = store.read(cell.key)
    rows = table.to_pylist()
    for row in rows:
        note = f"{NO_VICTIMS}a: b"
        row["remark"] = f"{row['remark']}; {note}" if row["remark"] else note
    store.write(cell, pa.Table.from_pylist(rows, schema=ROWS), origin)
    found = saved_result(store, cell.key, cache)
    assert found.remarks == wanted.remarks
    assert torch.equal(found.out_of_budget, wanted.out_of_budget)


def test_only_images_that_are_asked_for(
    write_plan: WritePlan, cache: Cache, tmp_path: Path
) -> None:
    store, cell = stored(write_plan, cache, tmp_path, GOAL="untargeted", DENSE="true")
    assert saved_result(store, cell.key, cache, ids={7, 3, 99}).ids.tolist() == [3, 7]
    assert len(saved_result(store, cell.key, cache, ids=())) == 0


def test_images_without_a_saved_change_are_left_out(
    write_plan: WritePlan, cache: Cache, tmp_path: Path
) -> None:
    store, cell = stored(
        write_plan, cache, tmp_path, greedy="ifgsm", GOAL="untargeted", DENSE="false"
    )
    positions = store.read(cell.key)[2].column("positions").to_pylist()
    assert None in positions
    kept = sum(at is not None for at in positions)
    assert len(saved_result(store, cell.key, cache)) == kept
