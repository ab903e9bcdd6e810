"""``pinprick bench`` from the shell: the smoke plan from start to end, and what needs fixing."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest
import torch

from cli.conftest import Run
from pinprick.attacks import Greedy
from pinprick.bench.cell_file import rows_sha256
from pinprick.bench.row_schema import TIMES
from pinprick.bench.store import Store
from pinprick.problem import Problem
from pinprick.types import Images

SMOKE = Path(__file__).parents[2] / "plans" / "smoke.toml"
SMALL = """\
models = ["pinprick:fashion_cnn"]
data = ["fashion_sample[:2]"]
attacks = ["greedy"]
images_per_cell = 1
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def _digests(store: str) -> dict[str, str]:
    opened = Store(store)
    keys = opened.keys()
    return {key: rows_sha256(opened.read(key)[2], without=TIMES) for key in keys}


def test_help_where_there_is_no_command(run: Run) -> None:
    shell = run("bench")
    assert shell.status == 0
    assert "validate" in shell.out


def test_the_smoke_plan_runs_from_start_to_end(run: Run) -> None:
    shell = run("bench", "run", SMOKE, "--store", "smoke", "--json")
    assert shell.status == 0, shell.err
    summary = json.loads(shell.out)
    assert (summary["finished"], summary["failed"]) == (summary["cells"], 0)
    rows = Store("smoke").scan().collect()
    assert rows["error"].unique().to_list() == [""]
    assert set(rows["goal"].unique()) == {"untargeted", "least_likely", "random"}
    assert rows.filter(attack="greedy")["success"].all()
    again = run("bench", "run", SMOKE, "--store", "smoke")
    assert f"{summary['cells']} cells: 0 run now" in again.out
    status = run("bench", "status", SMOKE, "--store", "smoke")
    assert f"{summary['cells']} of {summary['cells']} cells are finished" in status.out


def test_validate_says_what_a_plan_takes(run: Run, small: Path) -> None:
    shell = run("bench", "validate", small)
    assert shell.status == 0, shell.err
    assert "2 cells: passes take at most" in shell.out
    (line,) = json.loads(run("bench", "validate", small, "--json").out)
    assert (line["attack"], line["images"], line["forwards"]) == ("greedy", 2, 501)


def test_one_cell_is_singular(run: Run, small: Path) -> None:
    small.write_text(SMALL.replace("images_per_cell = 1\n", ""))
    assert run("bench", "validate", small).out.splitlines()[-1].startswith("1 cell: passes take")
    assert run("bench", "run", small, "--store", "out").out.startswith("1 cell: 1 run now")


def test_status_names_damaged_files_and_a_run_writes_them_again(run: Run, small: Path) -> None:
    run("bench", "run", small, "--store", "out")
    before = _digests("out")
    path = Store("out").path(min(before))
    path.write_bytes(path.read_bytes()[:-9])
    status = run("bench", "status", small, "--store", "out")
    assert "1 of 2 cells are finished" in status.out
    assert f"damaged, not read: {path}" in status.out
    assert json.loads(run("bench", "status", small, "--store", "out", "--json").out)["damaged"]
    assert "1 run now, 1 finished before" in run("bench", "run", small, "--store", "out").out
    assert _digests("out") == before


def test_a_changed_setting_leaves_old_cells(run: Run, small: Path) -> None:
    run("bench", "run", small, "--store", "out")
    before = _digests("out")
    small.write_text(SMALL.replace('"greedy"', '{name = "greedy", max_pixels = 5}'))
    assert "2 run now, 0 finished before" in run("bench", "run", small, "--store", "out").out
    after = _digests("out")
    assert len(after) == 4
    assert {key: after[key] for key in before} == before


def test_errors_are_kept_said_and_retried_on_demand_alone(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Greedy, "__call__", _fail)
        shell = run("bench", "run", small, "--store", "out")
    assert shell.status == 2
    assert "errors in 2 cells; pinprick bench status prints them, --retry-errors" in shell.err
    assert Store("out").scan().collect()["error"].to_list() == ["ValueError: no luck"] * 2
    status = run("bench", "status", small, "--store", "out")
    assert "error in 2 cells, 2 rows: ValueError: no luck" in status.out
    (error,) = json.loads(run("bench", "status", small, "--store", "out", "--json").out)["errors"]
    assert error == {"message": "ValueError: no luck", "cells": 2, "rows": 2}
    assert "0 run now, 2 finished before" in run("bench", "run", small, "--store", "out").out
    again = run("bench", "run", small, "--store", "out", "--retry-errors")
    assert "2 run now" in again.out
    assert again.status == 0
    assert Store("out").scan().collect()["error"].to_list() == [""] * 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_cells_for_a_gpu_are_refused_without_one(run: Run, small: Path) -> None:
    small.write_text(SMALL + 'device = "cuda"\n')
    shell = run("bench", "run", small, "--store", "out")
    assert shell.status == 2
    assert "cannot be run here: the device 'cuda' cannot be used" in shell.err
    assert Store("out").keys() == []


def _fail(attack: Greedy, problem: Problem) -> Images:
    raise ValueError("no luck")


def test_a_full_disk_is_one_line_and_what_is_finished_stays(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    write = Path.write_bytes

    def fill(path: Path, content: bytes) -> int:
        if ".parquet." in path.name and written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path)
        return write(path, content)

    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", fill)
        shell = run("bench", "run", small, "--store", "out")
    assert shell.status == 2
    assert shell.err.strip().endswith("No space left on device")
    assert len(shell.err.strip().splitlines()) == 1
    assert len(_digests("out")) == 1
    assert "1 run now, 1 finished before" in run("bench", "run", small, "--store", "out").out


def test_a_store_of_a_newer_version_is_refused(run: Run, small: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "store.json").write_text('{"format": 9}')
    for command in ("run", "status"):
        shell = run("bench", command, small, "--store", "new")
        assert shell.status == 2
        assert "the store new has format 9" in shell.err
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / "store.json"]


def test_a_store_that_cannot_be_written_is_refused_before_the_plan_is_read(run: Run) -> None:
    Path("file").write_text("x")
    shell = run("bench", "run", "none.toml", "--store", "file")
    assert shell.status == 2
    assert "cannot write" in shell.err


def test_what_needs_fixing_in_a_plan_is_one_line(run: Run, small: Path) -> None:
    small.write_text(SMALL.replace("greedy", "gredy"))
    for command in (("validate",), ("run", "--store", "out"), ("status", "--store", "out")):
        shell = run("bench", command[0], small, *command[1:])
        assert shell.status == 2
    assert "small.toml, line 3: no attack is called 'gredy'; did you mean greedy" in (
        run("bench", "validate", small).err
    )


def test_models_that_are_missing_can_be_skipped(run: Run, small: Path) -> None:
    small.write_text(SMALL.replace("models = [", 'models = ["file:not/there", '))
    assert run("bench", "run", small, "--store", "out").status == 2
    shell = run("bench", "run", small, "--store", "out", "--skip-missing")
    assert shell.status == 0, shell.err
    assert "small.toml, line 1: there is no file or folder not/there" in shell.err
    assert "2 cells: 2 run now" in shell.out
    status = run("bench", "status", small, "--store", "out", "--skip-missing")
    assert "2 of 2 cells are finished" in status.out
    small.write_text(SMALL.replace("pinprick:fashion_cnn", "file:not/there"))
    shell = run("bench", "validate", small, "--skip-missing")
    assert shell.status == 2
    assert "small.toml can be loaded here" in shell.err


def test_a_status_without_a_store_is_refused(run: Run, small: Path) -> None:
    shell = run("bench", "status", small, "--store", "none")
    assert "there is no store none" in shell.err
    assert not Path("none").exists()


def test_two_runs_on_one_store_at_once_give_each_cell_once(run: Run, small: Path) -> None:
    from functools import partial

    from pinprick.bench.cache import Cache
    from pinprick.bench.engines.run_cells import run_cells
    from pinprick.bench.plan_file import read_plan
    from pinprick.bench.run_cell import run_cell

    run("bench", "run", small, "--store", "alone")
    summaries = []
    cells = read_plan(small).cells()

    def work() -> None:
        cache = Cache()
        summaries.append(run_cells(cells, Store("shared"), partial(run_cell, loaded=cache)))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(summaries) == 2
    assert sum(summary.finished for summary in summaries) == 2
    assert _digests("shared") == _digests("alone")
