"""What a whole run makes after the plans: figures of photographs, proved optima, explanations.

A step is finished when it has rows of every attack's revision of today. Explanations are one step
per network and goal of ``interpretation.sh``.
"""

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from needs import EXPLANATIONS, FIGURES, LAST, OPTIMUM, Step

from pinprick.attacks import ATTACKS

_SCRIPT = Path(__file__).with_name("interpretation.sh")
_OUT = "pinprick-out/interpretation"
_IMAGES, _PHOTOGRAPHS = 100, 24
_GOALS, _GROUPINGS = ("untargeted", "least_likely"), ("connected", "pixels")
# per network and goal: ResNet-20 on a CPU, and photographs on an H200, from their rows
_SECONDS, _SECONDS_OF_PHOTOGRAPHS = 400, 800

Row = Mapping[str, Any]


def last_steps(names: Sequence[str] = LAST) -> list[Step]:
    """The steps with these names, and those that belong to plans with these names."""
    return [one for one in _every() if one.name in names or set(one.plans) & set(names)]


def _every() -> Iterator[Step]:
    for name in FIGURES:
        command = f"{sys.executable} docs/make.py {name}"
        yield Step(command, partial(_has_figure, name), (), name=name)
    command = f"{sys.executable} benchmarks/paper_optimum.py"
    yield Step(command, _has_optimum, ("claims",), 30, OPTIMUM)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    given = shlex.join([_OUT, str(_IMAGES), str(_PHOTOGRAPHS), device])
    for network, photographs in _networks().items():
        for goal in _GOALS:
            left = _not_explained(network, goal)
            only = f"ONLY=^{network}/{goal}/({'|'.join(left or _GROUPINGS)})$"
            command = f"env {shlex.quote(only)} bash plans/paper/{_SCRIPT.name} {given}"
            yield Step(
                command,
                partial(_is_explained, network, goal),
                ("interpretation",),
                _SECONDS_OF_PHOTOGRAPHS if photographs else _SECONDS,
                EXPLANATIONS,
            )


def _has_figure(name: str) -> bool:
    file = Path("results/paper_figures") / f"{name.removeprefix('paper_')}.json"
    return (Path("docs/images") / f"{name}.png").is_file() and _all_of_today(file)


def _has_optimum() -> bool:
    return _all_of_today(Path("results/optimum/paper.json"))


def _all_of_today(file: Path) -> bool:
    return file.is_file() and all(map(_of_today, _rows(file)))


def _is_explained(network: str, goal: str) -> bool:
    return not _not_explained(network, goal)


def _not_explained(network: str, goal: str) -> list[str]:
    """The groupings in which an attack of the script has old rows alone, or none has rows."""
    rows: list[Row] = []
    for file in Path("results/interpretation").glob("*.json"):
        about = json.loads(file.read_text(encoding="utf-8"))
        if (about["network"], about["goal"]) == (network, goal.replace("_", " ")):
            rows += [row for row in about["rows"] if row["attack"] in _attacks()]
    left = []
    for grouping in _GROUPINGS:
        known = [row for row in rows if row["settings"]["grouping"] == grouping]
        fresh = {row["attack"] for row in known if _of_today(row)}
        if not fresh or fresh != {row["attack"] for row in known}:
            left.append(grouping)
    return left


def _rows(file: Path) -> list[Row]:
    rows: list[Row] = json.loads(file.read_text(encoding="utf-8"))["rows"]
    return rows


def _of_today(row: Row) -> bool:
    """Whether the row is of its attack's revision of today."""
    attack = row["attack"]["name"] if isinstance(row["attack"], dict) else row["attack"]
    return bool(row.get("revision") == ATTACKS[attack.split(",")[0]].card.revision)


def _networks() -> dict[str, bool]:
    """The networks of the script; of each, whether it explains photographs."""
    lines = re.findall(r'^(.*)\bone ("[^"]+"|\S+) ', _SCRIPT.read_text("utf-8"), re.MULTILINE)
    return {name.strip('"'): "$photographs" in before for before, name in lines}


def _attacks() -> list[str]:
    """The attacks of the script, as it gives them."""
    found = re.search(r"^attacks=\((.*?)\)$", _SCRIPT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{_SCRIPT} has lost its list of attacks"
    return found[1].split()
