"""``scripts/paper``: what a run does, and what comes after its plans."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from last_steps import last_steps
from needs import EXPLANATIONS, FIGURES, LAST, OPTIMUM, PLANS, Step, prepare

from generators.paper import FIGURES as DRAWN
from generators.paper import small_plans
from generators.paper.figures import ablations
from pinprick.attacks import ATTACKS
from pinprick.bench.cache import Cache
from pinprick.bench.run_cell import run_cell
from pinprick.bench.store import Store
from pinprick.own_code import import_own

ROOT = Path(__file__).parents[1]


def run() -> Any:
    return import_own(str(ROOT / "plans/paper/run.py"), "it")


def options(**changed: Any) -> Namespace:
    usual = {"plans": [], "small": False, "images": None, "where": None, "list": False}
    return Namespace(**{**usual, "store": None, "workers": None, **changed})


def names(steps: list[Step]) -> list[str]:
    return list(dict.fromkeys(step.name for step in steps))


def test_the_small_form_measures_and_writes_pages_and_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    chosen = ["table1", "table4"]  # cells of worker processes, and cells that are timed here
    small = {"plans": chosen, "small": True, "where": ["attack=ifgsm"], "workers": 1}
    run().measure(options(store=tmp_path / "store", **small))
    out = capfd.readouterr().out
    assert "times are of passes alone" in out
    assert f"left out: {', '.join(LAST)}" in out
    assert "failed=0" in out
    for name in DRAWN:
        assert (tmp_path / "images" / name).stat().st_size > 1000
    table1 = (tmp_path / "paper_table1.md").read_text(encoding="utf-8")
    assert any(line.startswith("| I-FGSM") and "n 4" in line for line in table1.splitlines())
    assert "A small run" in table1
    run().measure(options(store=tmp_path / "store", **small, list=True))
    assert "table1: 2 cells finished; nothing to do" in capfd.readouterr().out


@pytest.mark.slow
def test_a_sweep_of_the_small_form_fools_an_image(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A figure with a logarithmic axis needs a number."""
    monkeypatch.chdir(ROOT)
    store, cache = Store(tmp_path), Cache()
    store.prepare()
    for cell in run().load_plan("ablations", cache, small=True).cells(cache):
        store.write(cell, *run_cell(cell, cache))
    ablations(small_plans(tmp_path)["ablations"]).savefig(tmp_path / "ablations.png")


def test_last_steps_come_with_the_plans_of_their_pages() -> None:
    assert names(last_steps()) == list(LAST)
    assert names(last_steps(["claims"])) == [OPTIMUM]
    assert names(last_steps(["interpretation", "paper_figure4"])) == ["paper_figure4", EXPLANATIONS]
    assert last_steps(["table1", "table2"]) == []
    assert not set(LAST) & set(PLANS)


def test_explanations_are_a_step_per_network_and_goal_of_the_script() -> None:
    commands = [step.command for step in last_steps([EXPLANATIONS])]
    assert len(commands) == 12
    assert all(
        "bash plans/paper/interpretation.sh pinprick-out/interpretation" in c for c in commands
    )
    assert any("ONLY=^ResNet-18, PGD-AT/least_likely/" in command for command in commands)


def write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_a_last_step_is_finished_when_its_rows_are_of_todays_revisions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    figure, optimum = last_steps([FIGURES[0], OPTIMUM])
    assert not figure.done()
    assert not optimum.done()
    today = ATTACKS["wifgsm"].card.revision
    row = {"attack": "wifgsm", "revision": today}
    write(tmp_path / "results/paper_figures/figure1.json", {"rows": [row]})
    write(
        tmp_path / "results/optimum/paper.json", {"rows": [{**row, "attack": {"name": "wifgsm"}}]}
    )
    assert not figure.done()  # the picture is missing
    assert optimum.done()
    write(tmp_path / "docs/images/paper_figure1.png", "a picture")
    assert figure.done()
    old = [row, {**row, "revision": today - 1}]
    write(tmp_path / "results/paper_figures/figure1.json", {"rows": old})
    write(tmp_path / "results/optimum/paper.json", {"rows": old})
    assert not figure.done()
    assert not optimum.done()


def test_explanations_name_the_groupings_that_lack_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def step() -> Step:
        found = last_steps([EXPLANATIONS])
        return next(one for one in found if "^ResNet-20/least_likely/" in one.command)

    def explained(grouping: str, revision: int | None) -> dict[str, Any]:
        return {"attack": "wifgsm", "revision": revision, "settings": {"grouping": grouping}}

    def store(*rows: dict[str, Any]) -> None:
        about = {"network": "ResNet-20", "goal": "least likely", "rows": rows}
        write(tmp_path / "results/interpretation/any.json", about)

    today = ATTACKS["wifgsm"].card.revision
    assert "/(connected|pixels)$" in step().command
    store(explained("connected", today), explained("pixels", None))
    assert "/(pixels)$" in step().command
    assert not step().done()
    store(*(explained(name, today) for name in ("connected", "pixels")), explained("pixels", None))
    assert step().done()


def test_a_last_step_that_leaves_rows_of_old_revisions_is_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    prepare([Step("echo made", lambda: False, (), name=OPTIMUM)])
    assert "this ran, and still lacks rows of today: echo made" in capfd.readouterr().out


@pytest.mark.parametrize("given", [["--small"], ["--images", "4"], ["--where", "attack=wifgsm"]])
def test_a_part_of_the_cells_has_no_last_steps(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["paper", *given, OPTIMUM])
    with pytest.raises(SystemExit) as stopped:
        run().main()
    assert stopped.value.code == 2
    assert "optimum is a last step, and not for --small" in capsys.readouterr().err


def test_help_says_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["paper", "--help"])
    with pytest.raises(SystemExit):
        run().main()
    said = " ".join(capsys.readouterr().out.split())
    assert "They leave out the last steps: paper_figure1" in said
