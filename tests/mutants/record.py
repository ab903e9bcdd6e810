"""The file of results, written after every mutant, and the table made from it."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mutants.changes import Mutant
from mutants.suite import Test


class Record:
    """The sample with the result of every mutant that has one."""

    def __init__(self, path: Path, options: dict[str, Any], sample: Sequence[Mutant]) -> None:
        self.path, self.options, self.sample = path, options, sample
        self.results: dict[int, dict[str, Any]] = {}
        self.map = path.with_name(path.name + ".map")

    def add(self, number: int, result: dict[str, Any]) -> None:
        self.results[number] = result
        self.save()

    def is_gone(self, number: int) -> bool:
        return self.results.get(number, {}).get("outcome") == "gone"

    def save(self) -> None:
        mutants = [
            {"number": i, **asdict(mutant), "result": self.results.get(i)}
            for i, mutant in enumerate(self.sample)
        ]
        _write(self.path, {"options": self.options, "mutants": mutants})

    def load_results(self, path: Path, *, caught_only: bool = False) -> None:
        """Adds the results of an earlier run on the same sample."""
        before = [(mutant.source, mutant.changed) for mutant in load_sample(path)]
        if before != [(mutant.source, mutant.changed) for mutant in self.sample]:
            raise SystemExit(f"{path} holds results of another sample")
        for number, mutant in enumerate(json.loads(path.read_text())["mutants"]):
            result = mutant["result"]
            if result and (result["outcome"] == "caught" or not caught_only):
                self.results[number] = result

    def table(self) -> str:
        """Share of the mutants caught, per file and in total."""
        lines = [f"{'file':<44}{'n':>5}{'caught':>8}  share  not caught"]
        files: dict[str, Counter[str]] = {}
        for number, mutant in enumerate(self.sample):
            outcome = self.results.get(number, {"outcome": "not run"})["outcome"]
            files.setdefault(mutant.file, Counter())[outcome] += 1
        total = sum(files.values(), Counter[str]())
        for file, counts in [*sorted(files.items()), ("total", total)]:
            n = counts.total() - counts["gone"]
            share = f"{counts['caught'] / n:6.1%}" if n else "     -"
            rest = ", ".join(f"{counts[k]} {k}" for k in sorted(counts) if k != "caught")
            lines.append(f"{file:<44}{n:>5}{counts['caught']:>8} {share}  {rest}")
        return "\n".join(lines)

    def uncaught(self) -> str:
        """One line per mutant that was not caught."""
        return "\n".join(
            f"{i}: {result['outcome']}: {m.file}:{m.line} {m.function}: {m.source} -> {m.changed}"
            for i, m in enumerate(self.sample)
            if (result := self.results.get(i, {"outcome": "not run"}))["outcome"] != "caught"
        )


def load_sample(path: Path) -> list[Mutant]:
    fields = Mutant.__dataclass_fields__
    mutants = json.loads(path.read_text())["mutants"]
    return [Mutant(**{name: mutant[name] for name in fields}) for mutant in mutants]


def load_options(path: Path) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(path.read_text())["options"]
    return options


def save_map(path: Path, tests: Iterable[Test], at_import: Iterable[int]) -> None:
    rows = [[test.id, test.seconds, test.passed, sorted(test.reached)] for test in tests]
    _write(path, {"at_import": sorted(at_import), "tests": rows})


def load_map(path: Path) -> tuple[list[Test], set[int]]:
    """The tests with what they reach, and the mutants that act on import."""
    stored = json.loads(path.read_text())
    tests = [Test(i, seconds, ok, frozenset(on)) for i, seconds, ok, on in stored["tests"]]
    return tests, set(stored["at_import"])


def _write(path: Path, value: object) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(json.dumps(value, indent=1))
    part.replace(path)
