"""Mutation testing: the share of small changes to the code that the tests catch.

A mutant is the program with one small change: another comparison, another constant, a condition
that is always true, a call left out. A seeded sample of mutants is built into the modules, each
behind a switch. All tests run once with the switches off. This shows which tests reach which
mutant. Then each mutant is active once, and the tests that reach it run until one fails.

  caught       a test failed, the process ended, or a test took 10 times its usual time
  survived     every test that reaches the mutant passed
  cut off      not caught within --limit seconds
  not reached  no test reaches the mutant
  gone         the mutant is in --sample, but not in this tree

The share is caught mutants over all mutants of the sample except those that are gone.
Processes that a test starts run without the mutant. Start again with the same --out to resume.
"""

import argparse
import hashlib
import importlib
import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mutants import changes, suite
from mutants.forks import Send, fork, spread
from mutants.record import Record, load_map, load_options, load_sample, save_map
from mutants.suite import Loop, Test
from mutants.switch import Finder, Switch

FAILURES = (
    pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR,
)  # fmt: skip
HERE = Path(__file__).resolve().parents[2]
TARGETS = ",".join(
    f"src/pinprick/{path}"
    for path in (
        "goal.py", "problem.py", "random.py", "run.py", "result.py", "batch_rows.py", "parts",
        "attacks/ifgsm.py", "attacks/sigma_zero.py", "attacks/wifgsm.py",
        "attacks/pinprick.py", "attacks/pinprick", "attacks/sparse_rs.py", "attacks/sparse_rs",
    )
)  # fmt: skip


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="file of results (JSON)")
    parser.add_argument("--root", type=Path, default=HERE, help="tree to measure")
    parser.add_argument(
        "--tests", default="-m 'not gpu and not slow'", help="arguments of pytest: which tests"
    )
    parser.add_argument(
        "--targets", default=TARGETS, help="files and folders to change, those that exist"
    )
    parser.add_argument("--count", type=int, default=300, help="size of the sample")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--sample", type=Path, help="take the sample of this file of results")
    parser.add_argument(
        "--known", type=Path, help="what is caught in this file of results is caught here too"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument(
        "--warm", default="torch,torchvision,matplotlib.pyplot", help="modules to import once"
    )
    return parser.parse_args(arguments)


def find_files(root: Path, targets: Sequence[str]) -> list[str]:
    """Python files of the targets that exist, relative to the root."""
    found = []
    for target in targets:
        path = root / target
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.exists() else []
    return [str(path.relative_to(root)) for path in found]


def digest(root: Path) -> str:
    """A hash of code and tests, so that a run of other code is not resumed."""
    found = hashlib.sha256()
    for path in sorted(path for part in ("src", "tests") for path in (root / part).rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()


def prepare(root: Path, warm: str, folder: str) -> None:
    """Sets one thread per process and no accelerator. Temporary files go to the folder."""
    os.chdir(root)
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "CUDA_VISIBLE_DEVICES": "",
        "HYPOTHESIS_STORAGE_DIRECTORY": folder,
    }
    tempfile.tempdir = folder
    sys.path.insert(0, str(root / "src"))
    for name in filter(None, warm.split(",")):
        with suppress(ImportError):
            importlib.import_module(name)


class Measurement:
    """The sample built into the modules of a tree, and the steps that judge it."""

    def __init__(self, root: Path, record: Record, given: argparse.Namespace) -> None:
        self.record, self.jobs, self.limit, self.tests = (
            record,
            given.jobs,
            given.limit,
            given.tests,
        )
        self.switch = Switch()
        here = {i: mutant for i, mutant in enumerate(record.sample) if not record.is_gone(i)}
        files = sorted({mutant.file for mutant in here.values()})
        self.marks = {file: ~number for number, file in enumerate(files)}
        modules = {
            str(root / file): changes.build(root, file, mark, here)
            for file, mark in self.marks.items()
        }
        Finder(modules, self.switch).install()

    def run(self) -> None:
        """Maps the tests, then judges all mutants.

        A fork collects the tests once. Mutants that act on import need a process of their own
        that imports them while active, so this process imports none of the modules.
        """
        sys.stdout.flush()
        if (pid := fork()) == 0:
            status = 1
            os.dup2(2, 1)  # pytest prints progress, not results
            try:
                options = [*suite.OPTIONS, *shlex.split(self.tests)]
                status = int(pytest.main(options, plugins=[Loop(self._first)]) in FAILURES)
            except Exception:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        if os.waitpid(pid, 0)[1] or not self.record.map.exists():
            sys.exit("the tests could not be run: see above")
        self.record.load_results(self.record.path)
        tests, at_import = load_map(self.record.map)
        self._judge(tests, at_import)

    def _first(self, loop: Loop, items: dict[str, pytest.Item]) -> None:
        if not self.record.map.exists():
            at_import = set(self.switch.reached)
            mapped = suite.map_tests(loop, items, self.switch, self.jobs)
            save_map(self.record.map, mapped, at_import)
        tests, at_import = load_map(self.record.map)
        self._judge(tests, at_import, (loop, items))

    def _judge(
        self,
        tests: Sequence[Test],
        at_import: set[int],
        collected: tuple[Loop, dict[str, pytest.Item]] | None = None,
    ) -> None:
        pending = [
            i
            for i in range(len(self.record.sample))
            if i not in self.record.results and (i in at_import) == (collected is None)
        ]

        def one(at: int) -> dict[str, Any]:
            number = pending[at]

            def run(chosen: Sequence[Test], send: Send) -> None:
                self.switch.active = number
                if collected is None:
                    suite.run_from_import(chosen, send)
                else:
                    suite.run_until_caught(*collected, chosen, send)

            mark = self.marks[self.record.sample[number].file]
            fitting = suite.tests_for(number, mark, tests, at_import=collected is None)
            if not fitting:
                return {"number": number, "outcome": "not reached"}
            return {"number": number, **suite.judge(run, fitting, self.limit)}

        for result in spread(len(pending), one, self.jobs):
            number = result.pop("number")
            self.record.add(number, result)
            done = f"{len(self.record.results)} of {len(self.record.sample)}"
            by = result.get("by", "")
            print(f"{done}: mutant {number} {result['outcome']} {by}", file=sys.stderr)


def take_sample(given: argparse.Namespace, root: Path, options: dict[str, Any]) -> Record:
    """The sample from --out, from --sample or drawn anew, with the results already known."""
    out = given.out.resolve()
    resumed = out.exists()
    if resumed and load_options(out) != options:
        raise SystemExit(f"{out} holds results of other code or other options: use another --out")
    offered = changes.list_mutants(root, find_files(root, given.targets.split(",")))
    if resumed or given.sample:
        wanted = load_sample(out if resumed else given.sample)
        if None in changes.find_again(wanted, offered, changes.KEYS[:1]):  # code has moved
            offered = changes.list_mutants(root, find_files(root, ["src"]))
    else:
        wanted = changes.draw(offered, given.count, given.seed)
    found = changes.find_again(wanted, offered)
    sample = [mutant or before for mutant, before in zip(found, wanted, strict=True)]
    record = Record(out, options, sample)
    if given.known:
        record.load_results(given.known, caught_only=True)
    if resumed:
        record.load_results(out)
    else:
        record.map.unlink(missing_ok=True)
    record.results |= {i: {"outcome": "gone"} for i, mutant in enumerate(found) if mutant is None}
    record.save()
    print(f"{len(offered)} mutants, {len(sample)} of them in the sample")
    return record


def main() -> None:
    given = parse(sys.argv[1:])
    root = given.root.resolve()
    names = ("tests", "limit", "targets", "count", "seed")
    options = {name: getattr(given, name) for name in names} | {"code": digest(root)}
    record = take_sample(given, root, options)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        prepare(root, given.warm, folder)
        Measurement(root, record, given).run()
    tests, _ = load_map(record.map)
    failing = sum(not test.passed for test in tests)
    print(f"pytest {given.tests}: {len(tests)} tests; {failing} fail without a mutant: not used")
    print(f"at most {given.limit:g} s of tests per mutant")
    print(record.table())
    print(record.uncaught())


if __name__ == "__main__":
    main()
