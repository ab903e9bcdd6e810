"""``pinprick bench verify``, ``diff`` and ``merge`` from the shell."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from bench.cells import CELL, ORIGIN, cell_with, rows_of

from cli.conftest import Run
from pinprick.bench.row_schema import ROWS
from pinprick.bench.store import Store

PLAN = """
data = ["fashion_sample/test[0:2]"]
models = ["pinprick:fashion_cnn"]

[[product]]
attacks = [{name = "greedy", max_pixels = 4}]
"""


def write(folder: str, *, pixels: int = 2, seed: int = 0) -> Store:
    """A store of one cell whose model is not there."""
    cell = cell_with(seed=seed)
    store = Store(folder)
    store.prepare()
    store.write(cell, rows_of(cell, pixels=pixels), ORIGIN)
    return store


def test_a_store_is_verified_until_a_row_was_tampered_with(run: Run) -> None:
    Path("plan.toml").write_text(PLAN)
    run("bench", "run", "plan.toml", "--store", "made")
    shell = run("bench", "verify", "made")
    assert (shell.status, shell.out) == (0, "2 of 2 rows verified, 0 differ; 0 files are damaged\n")
    store = Store("made")
    (key,) = store.keys()
    cell, origin, table = store.read(key)
    rows = table.to_pylist()
    rows[1]["clean_class"] = (rows[1]["clean_class"] + 1) % 10
    store.write(cell, pa.Table.from_pylist(rows, schema=ROWS), origin)
    shell = run("bench", "verify", "made")
    assert shell.status == 2
    assert shell.out.startswith(f"differs: {cell.title}, image 1: clean_class ")
    assert "2 of 2 rows verified, 1 differ" in shell.out
    only = run("bench", "verify", "made", "--where", "attack=greedy", "--where", "device=cpu")
    assert (only.status, only.out) == (shell.status, shell.out)
    wrong = run("bench", "verify", "made", "--where", "attack=gredy")
    assert wrong.status == 2
    assert "greedy" in wrong.err
    (found,) = json.loads(run("bench", "verify", "made", "--json").out)["differences"]
    assert (found["cell"], found["index"], found["column"]) == (key, 1, "clean_class")


def test_weights_that_are_not_there_are_named_with_hash_and_command(run: Run) -> None:
    write("made")
    shell = run("bench", "verify", "made")
    assert shell.status == 2  # as nothing could be verified
    assert f"3 rows need {CELL.model} with SHA-256 {CELL.weights}" in shell.out
    assert "get it with: pip install pinprick==0.1.0" in shell.out


def test_two_stores_are_compared(run: Run) -> None:
    write("a"), write("b"), write("c", pixels=3), write("c", seed=1)
    assert run("bench", "diff", "a", "b").out.startswith("1 cells are the same, 0 rows differ")
    assert run("bench", "diff", "a", "b").status == 0
    shell = run("bench", "diff", "a", "c")
    assert shell.status == 2
    assert f"differs: {CELL.title}, image 0: pixels 2, 3\n" in shell.out
    assert "only in c: greedy on" in shell.out
    assert "0 cells are the same, 2 rows differ, 1 cells are in one store only" in shell.out
    assert len(json.loads(run("bench", "diff", "a", "c", "--json").out)["rows"]) == 2


def test_stores_are_merged_unless_their_rows_differ(run: Run) -> None:
    write("a"), write("b", seed=1), write("c", pixels=3)
    shell = run("bench", "merge", "a", "b", "--into", "all")
    assert (shell.status, shell.out) == (0, "2 cells added to all, which had 0 before\n")
    document = json.loads(run("bench", "merge", "b", "--into", "all", "--json").out)
    assert document == {"added": 0, "known": 2, "damaged": []}
    refused = run("bench", "merge", "a", "c", "--into", "other")
    assert refused.status == 2
    assert "nothing was merged" in refused.err
    write("c", seed=2).path(CELL.key).write_bytes(b"half")
    left_out = run("bench", "merge", "c", "--into", "all")
    assert left_out.status == 2
    assert left_out.out.startswith("damaged, left out: c/cells/")
    assert left_out.out.endswith("1 cells added to all, which had 2 before\n")


@pytest.mark.parametrize("command", [["verify", "no"], ["diff", "no", "no"]])
def test_a_folder_without_a_store_is_refused(run: Run, command: list[str]) -> None:
    shell = run("bench", *command)
    assert shell.status == 2
    assert "no is not a store" in shell.err
