"""``pinprick bench show`` from the shell: a small store in all formats, and what needs fixing."""

import csv
from pathlib import Path

import pytest

from cli.conftest import Run
from pinprick.cli.bench_where import read_where

pytestmark = pytest.mark.plain  # whole numbers where hints say float

PLAN = """\
models = ["pinprick:fashion_cnn"]
data = ["fashion_sample[:2]"]
attacks = ["greedy", {name = "sparse_rs", k = 8, queries = 20}]
"""


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Path:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    assert run("bench", "run", plan, "--store", tmp_path / "store").status == 0
    return tmp_path / "store"


def test_a_store_is_shown_in_every_format(run: Run, store: Path) -> None:
    shell = run("bench", "show", store)
    assert shell.status == 0, shell.err
    assert shell.out.startswith("Attacks by optimality in pixels: fashion_sample")
    assert "worst case of greedy, sparse_rs" in shell.out
    assert "| rank | attack |" in run("bench", "show", store, "--markdown").out
    assert r"\toprule" in run("bench", "show", store, "--latex").out
    attacks = run("bench", "show", store, "--csv", "attacks").out
    assert {line["attack"] for line in csv.DictReader(attacks.splitlines())} == {
        "greedy",
        "sparse_rs",
    }
    (model,) = csv.DictReader(run("bench", "show", store, "--csv", "models").out.splitlines())
    assert model["model"] == "pinprick:fashion_cnn"
    details = run("bench", "show", store, "--csv", "details").out
    assert {line["attack"] for line in csv.DictReader(details.splitlines())} == {
        "greedy",
        "sparse_rs",
    }
    assert "there is no transfer matrix" in run("bench", "show", store, "--csv", "transfer").err
    without = run("bench", "show", store, "--transfer")
    assert (without.status, without.out) == (0, shell.out)
    assert "there is no transfer matrix" in without.err
    more = run("bench", "show", store, "--baseline", "greedy", "--unit", "elements", "--k", "7")
    assert "at 7 elements" in more.out
    assert "speed-up in passes over greedy" in more.out
    assert "p (McNemar)" in more.out
    alone = run("bench", "show", store, "--attacks", "greedy", "--where", "device=cpu")
    assert "sparse_rs" not in alone.out


def test_values_of_where_may_have_commas_in_brackets() -> None:
    draw, settings = "some/test[random=8,seed=0]", '{"name":"a","ks":[1,2],"unit":"pixels"}'
    given = [f"data={draw}, other", f"settings={settings}", "data=a]b,c"]
    assert read_where(given) == {"data": [draw, "other", "a]b", "c"], "settings": [settings]}


def test_damaged_files_are_counted_on_stderr(run: Run, store: Path) -> None:
    first, *_ = sorted((store / "cells").rglob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-20])
    for options in ((), ("--best-so-far",)):
        shell = run("bench", "show", store, *options)
        assert shell.status == 0
        assert "1 file is damaged and not read; see pinprick bench status" in shell.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--markdown", "--latex"], "give one of --markdown, --latex and --csv"),
        (["--where", "device"], "--where takes column=value"),
    ],
)
def test_options_that_do_not_fit_need_fixing(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    shell = run("bench", "show", tmp_path, *arguments)
    assert shell.status == 2
    assert message in shell.err


def test_a_folder_that_is_no_store_needs_fixing(run: Run, tmp_path: Path) -> None:
    for folder, message in (("missing", "there is no store"), (".", "has no finished cells")):
        shell = run("bench", "show", tmp_path / folder)
        assert shell.status == 2
        assert message in shell.err
