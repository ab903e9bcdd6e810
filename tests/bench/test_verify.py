"""Verification: a sound store passes, and every kind of tampering is found."""

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from pinprick.attacks import Greedy
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import NO_VICTIMS
from pinprick.bench.row_schema import ROWS
from pinprick.bench.rows import error_table
from pinprick.bench.run_cell import run_cell
from pinprick.bench.store import Store
from pinprick.bench.verify import verify_store
from pinprick.bench.weights_command import weights_command
from pinprick.errors import BadInput, UnknownName
from pinprick.jobs.progress import Progress

MODEL, VICTIM, DATA = "pinprick:fashion_cnn", "pinprick:mnist_cnn", "fashion_sample[0:5]"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Cell, Cell]:
    """A store of an untargeted and a targeted cell of a few images, in batches of three."""
    cache = Cache()
    attack = Greedy(max_pixels=15)
    cell = Cell(
        attack=attack.describe(),
        revision=attack.facts().revision,
        model=MODEL,
        weights=cache.weights(MODEL),
        data=DATA,
        data_hash=cache.images(MODEL, DATA, 0, 5).sha256,
        first=0,
        last=5,
        batch_size=3,
        threads=torch.get_num_threads(),
        victims=((VICTIM, cache.weights(VICTIM)),),
    )
    targeted = replace(cell, goal="least_likely")
    store = Store(tmp_path_factory.mktemp("store"))
    store.prepare()
    for one in (cell, targeted):
        store.write(one, *run_cell(one, cache))
    return store, cell, targeted


@pytest.fixture
def copy(made: tuple[Store, Cell, Cell], tmp_path: Path) -> Store:
    shutil.copytree(made[0].folder, tmp_path / "copy")
    return Store(tmp_path / "copy")


def change(store: Store, cell: Cell, index: int, edit: Callable[[Row], Row]) -> None:
    """Change one row and write the file anew, with the right hash of the rows."""
    _, origin, table = store.read(cell.key)
    rows = table.to_pylist()
    rows[index] |= edit(rows[index])
    store.write(cell, pa.Table.from_pylist(rows, schema=ROWS), origin)


def fooled(store: Store, cell: Cell) -> int:
    """The index of an image with at least two changed elements."""
    rows = store.read(cell.key)[2].to_pylist()
    return next(index for index, row in enumerate(rows) if (row["elements"] or 0) > 1)


def test_a_store_as_it_was_made_is_verified(made: tuple[Store, Cell, Cell]) -> None:
    store, cell, targeted = made
    outcome = verify_store(store.folder)
    assert not outcome.failed
    assert (outcome.rows, outcome.verified, outcome.errors, outcome.unsaved) == (10, 10, 0, 0)
    assert outcome.plain()["not_verified"] == outcome.plain()["within_noise"] == []
    assert fooled(store, cell) >= 0
    assert store.read(targeted.key)[2].column("target").null_count == 0


def test_rows_that_a_victim_could_not_judge_are_verified_without_it(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    cell = made[1]
    remark = f"{NO_VICTIMS}{VICTIM}: RuntimeError: no memory"
    unjudged = {"victims": None, "victims_clean": None}
    change(copy, cell, 0, lambda _: {**unjudged, "remark": remark})
    outcome = verify_store(copy.folder)
    assert (outcome.failed, outcome.verified) == (False, 10)
    assert copy.failed(cell)
    change(copy, cell, 0, lambda _: {**unjudged, "remark": ""})
    assert {one.column for one in verify_store(copy.folder).differences} == {
        f"victims {VICTIM}",
        f"victims_clean {VICTIM}",
    }


TAMPERED: list[tuple[str, Callable[[Row], Row]]] = [
    ("adversarial_class", lambda row: {"adversarial_class": row["label"]}),
    ("clean_class", lambda row: {"clean_class": (row["clean_class"] + 1) % 10}),
    ("correct", lambda row: {"correct": not row["correct"]}),
    ("skipped", lambda row: {"skipped": not row["skipped"]}),
    ("success_8bit", lambda row: {"success_8bit": not row["success_8bit"]}),
    ("label", lambda row: {"label": (row["label"] + 1) % 10}),
    ("pixels", lambda row: {"pixels": row["pixels"] - 1}),
    ("elements", lambda row: {"elements": row["elements"] - 1}),
    ("l2", lambda row: {"l2": row["l2"] * 0.999}),
    ("elements", lambda row: {"positions": row["positions"][1:], "values": row["values"][1:]}),
    ("l1", lambda row: {"values": [0.5 * value + 0.1 for value in row["values"]]}),
    ("positions", lambda row: {"positions": [784, *row["positions"][1:]]}),
    ("positions", lambda row: {"values": [1.5, *row["values"][1:]]}),
    ("positions", lambda row: {"positions": None}),
    ("positions", lambda row: {"shape": [1, 14, 56]}),
    (f"victims {VICTIM}", lambda row: {"victims": [(row["victims"][0] + 1) % 10]}),
    (f"victims {VICTIM}", lambda row: {"victims": []}),
    (f"victims_clean {VICTIM}", lambda row: {"victims_clean": [11]}),
    ("index", lambda row: {"index": 7}),
    ("cell", lambda row: {"cell": "another"}),
]


def test_every_row_that_was_tampered_with_is_found(
    made: tuple[Store, Cell, Cell], tmp_path: Path
) -> None:
    source, cell, _ = made
    index, (_, origin, table) = fooled(source, cell), source.read(cell.key)
    store = Store(tmp_path)
    store.prepare()
    expected = {}
    for seed, (column, edit) in enumerate(TAMPERED):
        other = replace(cell, seed=seed)  # which decides nothing about the rows of this attack
        rows = [row | {"cell": other.key} for row in table.to_pylist()]
        rows[index] |= edit(rows[index])
        store.write(other, pa.Table.from_pylist(rows, schema=ROWS), origin)
        expected[other.key] = column
    outcome = verify_store(tmp_path)
    found: dict[str, set[str]] = {key: set() for key in expected}
    for one in outcome.differences:
        assert one.index == index
        found[one.cell.key].add(one.column)
    missed = [column for key, column in expected.items() if column not in found[key]]
    assert missed == []
    assert outcome.failed


def test_a_subnormal_change_counts_as_it_did_in_the_run(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    """A pass takes subnormal numbers as zero; counting changes must not."""
    index = fooled(copy, made[1])
    black = (Cache().images(MODEL, DATA, 0, 5).images[index].flatten() == 0).nonzero()

    def edit(row: Row) -> Row:
        more = next(at for at in black.flatten().tolist() if at not in row["positions"])
        return {
            "positions": [*row["positions"], more],
            "values": [*row["values"], 1e-40],
            "elements": row["elements"] + 1,
            "pixels": row["pixels"] + 1,
        }

    change(copy, made[1], index, edit)
    assert verify_store(copy.folder).findings == []


def test_positions_moved_to_other_pixels_are_found(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    index = fooled(copy, made[1])
    change(copy, made[1], index, lambda row: {"positions": range(len(row["positions"]))})
    assert {one.index for one in verify_store(copy.folder).differences} == {index}


def test_a_failure_sold_as_success_is_found(made: tuple[Store, Cell, Cell], copy: Store) -> None:
    rows = copy.read(made[2].key)[2].to_pylist()
    index = next(row["index"] for row in rows if not row["success"])
    change(copy, made[2], index, lambda row: {"success": True, "pixels": 1, "elements": 1})
    columns = {one.column for one in verify_store(copy.folder).differences}
    assert {"success", "pixels", "elements"} <= columns


def test_a_target_other_than_the_goal_says_is_found(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    change(copy, made[2], 1, lambda row: {"target": row["label"]})
    found = {(one.index, one.column) for one in verify_store(copy.folder).differences}
    assert (1, "target") in found


def test_a_file_whose_rows_do_not_match_their_hash_is_damaged(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    path = copy.path(made[1].key)
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["forwards"] += 1
    changed = pa.Table.from_pylist(rows, schema=table.schema)
    pq.write_table(changed, path)
    outcome = verify_store(copy.folder)
    assert outcome.failed
    assert outcome.damaged == [path]
    assert (outcome.rows, outcome.differences) == (5, [])


def test_rows_without_a_column_are_damaged(made: tuple[Store, Cell, Cell], copy: Store) -> None:
    _, origin, table = copy.read(made[1].key)
    copy.write(made[1], table.drop_columns(["l2"]), origin)
    assert verify_store(copy.folder).damaged == [copy.path(made[1].key)]


def test_a_difference_within_the_numerical_noise_is_listed_apart(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    index = fooled(copy, made[1])
    change(copy, made[1], index, lambda row: {"noise": 1e9, "adversarial_class": row["label"]})
    outcome = verify_store(copy.folder)
    assert not outcome.failed
    assert {one.column for one in outcome.within_noise} == {"margin", "adversarial_class"}
    assert {one.index for one in outcome.within_noise} == {index}


@pytest.mark.parametrize(("shifted", "apart"), [(range(5), True), (range(1), False)])
def test_rows_of_another_kind_of_device_may_differ_by_what_their_margins_differ(
    made: tuple[Store, Cell, Cell], copy: Store, shifted: range, apart: bool
) -> None:
    """One margin alone that differs says nothing about the devices."""
    cell = replace(made[1], device="cuda")
    index = fooled(copy, made[1])
    _, origin, table = copy.read(made[1].key)
    rows = [row | {"cell": cell.key} for row in table.to_pylist()]
    for row in shifted:
        rows[row]["margin"] += 1e6
    rows[index]["adversarial_class"] = rows[index]["label"]
    copy.write(cell, pa.Table.from_pylist(rows, schema=ROWS), origin)
    outcome = verify_store(copy.folder)
    assert bool(outcome.differences) != apart
    assert ("adversarial_class" in {one.column for one in outcome.within_noise}) == apart


@pytest.mark.parametrize(("device", "apart"), [("cuda", True), ("cpu", False)])
def test_a_single_vote_may_go_otherwise_on_another_kind_of_device(
    made: tuple[Store, Cell, Cell], tmp_path: Path, device: str, apart: bool
) -> None:
    cache, name = Cache(), "pinprick:fashion_cnn_ablation"
    cell = replace(
        made[1], model=name, weights=cache.weights(name), victims=(), last=3, batch_size=3
    )
    cell = replace(cell, data_hash=cache.images(name, DATA, 0, 3).sha256)
    table, origin = run_cell(cell, cache)
    stored, store = replace(cell, device=device), Store(tmp_path / "store")
    rows = [row | {"cell": stored.key} for row in table.to_pylist()]
    row = max((row for row in rows if row["success"]), key=lambda row: row["margin"])
    assert row["margin"] < -10 * row["noise"]  # a vote weighs more than rounding
    row["adversarial_class"] = row["label"]
    store.prepare()
    store.write(stored, pa.Table.from_pylist(rows, schema=ROWS), origin)
    outcome = verify_store(store.folder)
    assert bool(outcome.differences) != apart
    assert ("adversarial_class" in {one.column for one in outcome.within_noise}) == apart


@pytest.mark.parametrize("made_up", ["noise", "margin"])
def test_noise_that_no_arithmetic_has_excuses_nothing(
    made: tuple[Store, Cell, Cell], copy: Store, made_up: str
) -> None:
    """Of a row with a wide margin, and of all margins of a cell of another kind of device."""
    cell = replace(made[1], device="cuda")
    _, origin, table = copy.read(made[1].key)
    rows = [row | {"cell": cell.key, made_up: 1e9} for row in table.to_pylist()]
    sure = max(rows, key=lambda row: row["clean_confidence"])
    sure["clean_class"] = (sure["clean_class"] + 1) % 10
    copy.write(cell, pa.Table.from_pylist(rows, schema=ROWS), origin)
    found = verify_store(copy.folder).differences
    assert [(one.index, one.column) for one in found] == [(sure["index"], "clean_class")]


def test_a_count_within_the_numerical_noise_still_fails(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    index = fooled(copy, made[1])
    change(copy, made[1], index, lambda row: {"noise": 1e9, "pixels": row["pixels"] - 1})
    assert [one.column for one in verify_store(copy.folder).differences] == ["pixels"]


def test_rows_without_their_weights_are_not_verified(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    store, cell, _ = made
    lost = replace(cell, weights="0" * 64)
    _, origin, table = store.read(cell.key)
    keys = pa.array([lost.key] * 5)
    copy.write(lost, table.set_column(0, "cell", keys), origin)
    outcome = verify_store(copy.folder)
    assert not outcome.failed
    assert (outcome.rows, outcome.verified) == (15, 10)
    [missing] = outcome.not_verified
    assert (missing.name, missing.sha256, missing.rows) == (MODEL, "0" * 64, 5)
    assert missing.command == f"pip install pinprick=={origin.version}"


def test_a_store_of_which_nothing_can_be_verified_fails(
    made: tuple[Store, Cell, Cell], tmp_path: Path
) -> None:
    _, origin, table = made[0].read(made[1].key)
    lost = replace(made[1], model="file:gone.safetensors")
    store = Store(tmp_path)
    store.prepare()
    store.write(lost, table.set_column(0, "cell", pa.array([lost.key] * 5)), origin)
    outcome = verify_store(tmp_path)
    assert outcome.failed
    assert outcome.verified == 0
    assert "gone.safetensors" in outcome.not_verified[0].reason


def test_a_program_that_is_not_trusted_needs_no_other_file(
    made: tuple[Store, Cell, Cell], tmp_path: Path
) -> None:
    program = tmp_path / "net.ts"
    program.touch()
    _, origin, table = made[0].read(made[1].key)
    lost = replace(made[1], model=f"file:{program}")
    store = Store(tmp_path / "store")
    store.prepare()
    store.write(lost, table.set_column(0, "cell", pa.array([lost.key] * 5)), origin)
    [missing] = verify_store(store.folder).not_verified
    assert "--trust" in missing.reason
    assert missing.command == ""


def test_a_store_without_cells_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    with pytest.raises(BadInput, match="nothing to verify"):
        verify_store(tmp_path)


def test_a_victim_without_its_weights_leaves_the_rest_verified(
    made: tuple[Store, Cell, Cell], tmp_path: Path
) -> None:
    _, origin, table = made[0].read(made[1].key)
    lost = replace(made[1], victims=((VICTIM, "0" * 64),))
    rows = [row | {"cell": lost.key} for row in table.to_pylist()]
    store = Store(tmp_path)
    store.prepare()
    store.write(lost, pa.Table.from_pylist(rows, schema=ROWS), origin)
    outcome = verify_store(tmp_path)
    assert (outcome.verified, outcome.findings) == (5, [])
    assert [one.name for one in outcome.not_verified] == [VICTIM]


def test_other_images_than_those_of_the_cell_are_not_verified(
    made: tuple[Store, Cell, Cell], tmp_path: Path
) -> None:
    _, origin, table = made[0].read(made[1].key)
    lost = replace(made[1], data_hash="0" * 64)
    store = Store(tmp_path)
    store.prepare()
    store.write(lost, table.set_column(0, "cell", pa.array([lost.key] * 5)), origin)
    [missing] = verify_store(tmp_path).not_verified
    assert (missing.name, missing.command) == (DATA, "")


def test_rows_with_an_error_have_nothing_to_verify(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    _, origin, table = copy.read(made[1].key)
    failed = error_table(made[1].key, range(3, 5), "out of memory")
    copy.write(made[1], pa.concat_tables([table[:3], failed]), origin)
    outcome = verify_store(copy.folder)
    assert (outcome.errors, outcome.verified, outcome.findings) == (2, 8, [])


def test_some_cells_are_verified_by_the_values_of_their_columns(
    made: tuple[Store, Cell, Cell], copy: Store
) -> None:
    change(copy, made[1], 0, lambda row: {"clean_class": 11})
    outcome = verify_store(copy.folder, where={"goal": ["least_likely"]})
    assert (outcome.rows, outcome.verified, outcome.findings) == (5, 5, [])
    outcome = verify_store(copy.folder, where={"goal": ["untargeted"], "model": [MODEL]})
    assert (outcome.rows, [one.column for one in outcome.differences]) == (5, ["clean_class"])
    with pytest.raises(UnknownName, match="untargeted"):
        verify_store(copy.folder, where={"goal": ["untargetted"]})


def test_progress_counts_every_image(made: tuple[Store, Cell, Cell]) -> None:
    done: list[int] = []

    class Counting(Progress):
        def count_images(self, total: int, title: str) -> Any:
            assert total == 10
            return nullcontext(done.append)

    verify_store(made[0].folder, progress=Counting())
    assert sum(done) == 10


def test_weights_are_trained_installed_or_fetched_by_the_command_that_is_named(
    tmp_path: Path,
) -> None:
    shipped = Path(__file__).parents[2] / "src/pinprick/zoo/weights/mnist_cnn_pgd_at"
    shutil.copytree(shipped, tmp_path / "net")
    command = weights_command(f"file:{tmp_path / 'net'}", "0.1.0")
    assert command == (
        "pinprick train --data mnist --net mnist_cnn --recipe pgd_at --epochs 12 --seed 0 "
        f"--out {tmp_path / 'net'}"
    )
    assert weights_command("pinprick:mnist_cnn", "0.3.0") == "pip install pinprick==0.3.0"
    assert weights_command("torchvision:resnet18", "0.1.0") == (
        "pinprick check --model torchvision:resnet18"
    )
    assert "from where the rows were made" in weights_command("file:gone/model.pt", "0.1.0")
