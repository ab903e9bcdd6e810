"""Mutation testing, on a package of two functions and one test."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mutants import suite
from mutants.__main__ import parse, take_sample
from mutants.changes import draw, find_again, list_mutants
from mutants.forks import Send
from mutants.record import load_options
from mutants.suite import Test, judge

SHOP = """
RATE = 2

def total(price, log):
    log.append(price)
    return price * RATE

def never(price):
    return -price
"""
TESTS = """
from shop.prices import total

def test_total():
    assert total(3, []) == 6
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shop")
    for name, text in {"src/shop/prices.py": SHOP, "tests/test_prices.py": TESTS}.items():
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    return root


def test_a_mutant_is_caught_survives_or_is_not_reached(shop: Path) -> None:
    arguments = ["--root", str(shop), "--targets", "src/shop", "--tests", "tests"]
    arguments += ["--out", str(shop / "out.json"), "--jobs", "2", "--warm", ""]
    here = str(Path(__file__).parent)
    alone = os.environ | {"PYTHONPATH": here, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "mutants", *arguments]
    run = subprocess.run(command, env=alone, check=True, capture_output=True, text=True)
    mutants = json.loads((shop / "out.json").read_text())["mutants"]
    outcomes = [m["result"]["outcome"] for m in mutants]
    assert {(m["source"], m["changed"]): m["result"]["outcome"] for m in mutants} == {
        ("2", "3"): "caught",  # it acts when the module is imported
        ("log.append(price)", "pass"): "survived",
        ("price * RATE", "price / RATE"): "caught",
        ("-price", "price"): "not reached",
    }
    total = run.stdout.split("\ntotal")[1].splitlines()[0].split()
    assert total[:3] == ["4", "2", "50.0%"]

    given = parse(arguments)
    options = load_options(given.out)
    resumed = take_sample(given, shop, options)
    assert [resumed.results[i]["outcome"] for i in range(4)] == outcomes
    with pytest.raises(SystemExit, match="other code"):
        take_sample(given, shop, {**options, "code": "another"})

    (shop / "src/shop/prices.py").rename(shop / "src/cost.py")  # outside the targets
    moved = parse([*arguments, "--sample", str(given.out), "--out", str(shop / "moved.json")])
    record = take_sample(moved, shop, options)
    assert {mutant.file for mutant in record.sample} == {"src/cost.py"}
    assert not record.results


def test_the_seed_decides_the_sample() -> None:
    root = Path(__file__).parents[1]
    offered = list_mutants(root, ["src/pinprick/goal.py"])
    assert len(set(offered)) == len(offered) > 40
    assert draw(offered, 20, seed=1) == draw(offered, 20, seed=1) != draw(offered, 20, seed=2)
    assert find_again(offered, offered) == offered


def test_what_cannot_change_the_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def f(x: Shape[1], y: int | None) -> Shape[2]:\n"
        "    '''Three is 3.'''\n"
        "    assert x > 0\n"
        "    if not y:\n"
        "        raise ValueError(f'{x + 1} is too many', 5)\n"
        "    return list(zip(x, y, strict=True))\n"
    )
    found = {(m.source, m.changed) for m in list_mutants(tmp_path, ["a.py"])}
    assert found == {("not y", "True"), ("not y", "False"), ("not y", "y")}


def test_mutants_are_found_again_where_functions_moved(tmp_path: Path) -> None:
    first = "def f(x):\n    return x + 1\n\ndef g(x):\n    return x < 3\n"
    (tmp_path / "a.py").write_text(first)
    (tmp_path / "b.py").write_text(
        "'''Longer.'''\n\ndef h(x):\n    return x < 3\n\ndef f(x):\n    y = 5\n    return x + 1\n"
    )
    before = list_mutants(tmp_path, ["a.py"])
    found = find_again(before, list_mutants(tmp_path, ["b.py"]))
    assert [m and (m.file, m.line, m.function, m.changed) for m in found] == [
        ("b.py", 8, "f", "x - 1"),
        ("b.py", 8, "f", "0"),
        ("b.py", 4, "h", "x <= 3"),  # its function has another name, its statement is the same
        ("b.py", 4, "h", "x >= 3"),
        ("b.py", 4, "h", "4"),
    ]
    (tmp_path / "b.py").write_text("def f(x):\n    return x + 2\n")
    assert set(find_again(before, list_mutants(tmp_path, ["b.py"]))) == {None}


QUICK = [Test(f"test_{i}", 0.001, True, frozenset()) for i in range(3)]


def _fails(tests: Sequence[Test], send: Send) -> None:
    send({"test": len(tests) - 1})
    send({"outcome": "caught", "why": "failed", "by": tests[-1].id})


def _fails_in_company(tests: Sequence[Test], send: Send) -> None:
    if len(tests) > 1:
        _fails(tests, send)
    send({"outcome": "survived"})


def _hangs(tests: Sequence[Test], send: Send) -> None:
    send({"test": 1})
    time.sleep(60)


def _passes_for_ever(tests: Sequence[Test], send: Send) -> None:
    while True:
        send({"test": 0})
        time.sleep(0.02)


def _dies(tests: Sequence[Test], send: Send) -> None:
    send({"test": 2})
    os._exit(1)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (_fails, {"outcome": "caught", "why": "failed", "by": "test_2"}),
        (_fails_in_company, {"outcome": "survived"}),
        (_hangs, {"outcome": "caught", "why": "hang", "by": "test_1"}),
        (_passes_for_ever, {"outcome": "cut off"}),
        (_dies, {"outcome": "caught", "why": "process ended", "by": "test_2"}),
    ],
)
def test_a_mutant_is_judged_by_what_its_process_does(
    run: Callable[[Sequence[Test], Send], None],
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite, "HANG_LEAST", 0.2)
    judged = judge(run, QUICK, limit=0.4)
    assert expected.items() <= judged.items()
