"""The rule of imports, the table of attacks, and the public names."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import pinprick
from pinprick.attacks import ATTACKS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pinprick"

LEVELS = (  # a room may import from rooms on the lines above it, and from itself
    (
        "arithmetic",
        "conversion_line",
        "errors",
        "freed_memory",
        "progress_bar",
        "subnormal",
        "types",
    ),
    ("backward", "batch_rows", "files", "metrics", "model", "own_code", "settings", "speed_names"),
    (
        *("bfloat16_copy", "compiled_model", "data", "feature_layer", "goal"),
        *("json_text", "random", "replay"),
        *("scores", "threads"),
    ),
    ("confirmed_search", "cuda_graph", "oracle", "recorded_step", "trace", "watch", "zoo"),
    ("result", "speed"),
    ("problem",),
    ("parts", "result_file", "results_by_name"),
    ("attacks", "worst_case"),
    ("intake",),
    ("labelled_batches", "numerical_noise", "saved_batches"),
    ("run",),
    ("bounds", "contract", "polishing", "robust"),
    ("checks", "explain", "selftest", "train"),
    ("report",),
    ("jobs",),
    ("bench",),
    ("pages",),
    ("web",),
    ("cli",),
    ("__main__",),
)
SHORTCUTS = {  # methods that hand on to a higher room, which they import when they are called
    "pinprick.result": {
        "pinprick.report.notebook_html",
        "pinprick.report.result_pictures",
        "pinprick.report.result_tables",
    },
    "pinprick.explain.noise.explanation": {"pinprick.report.notebook_html"},
}
RANKS = {room: number for number, level in enumerate(LEVELS) for room in level}


def files() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Modules of the package that are imported anywhere below, inside functions as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("pinprick"))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pinprick"):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                path = SOURCE.parent / Path(*inner.split("."))
                if path.is_dir() or path.with_suffix(".py").exists():
                    yield inner
                elif inner != "pinprick.__version__":
                    yield str(node.module)


def room_of(module: str) -> str:
    return module.split(".")[1]


def rank_of(module: str) -> int:
    assert room_of(module) in RANKS, f"{module} has no line in the rule of imports yet"
    return RANKS[room_of(module)]


@pytest.mark.parametrize("path", files(), ids=module_of)
def test_no_arrow_turns_round(path: Path) -> None:
    module = module_of(path)
    for wanted in imports_of(ast.parse(path.read_text())):
        assert wanted != "pinprick", f"{module} takes a public name; import its own module"
        if room_of(wanted) != room_of(module) and wanted not in SHORTCUTS.get(module, ()):
            assert rank_of(wanted) < rank_of(module), f"{module} imports {wanted}"


def test_the_report_asks_no_model() -> None:
    for path in (SOURCE / "report").glob("*.py"):
        tree = ast.parse(path.read_text())
        assert not set(imports_of(tree)) & {"pinprick.run", "pinprick.problem"}, path.name
        for call in (node.func for node in ast.walk(tree) if isinstance(node, ast.Call)):
            assert not (isinstance(call, ast.Name) and call.id == "model"), path.name
            assert not (isinstance(call, ast.Attribute) and call.attr == "frozen"), path.name


def test_the_rule_lists_the_rooms_that_exist() -> None:
    assert set(RANKS) == {room_of(module_of(path)) for path in files()}


def test_no_file_imports_itself_in_a_circle() -> None:
    """Only what is imported when a file is loaded counts, not what a function brings in."""
    arrows = {}
    for path in files():
        top = ast.Module(ast.parse(path.read_text()).body, type_ignores=[])
        top.body = [node for node in top.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        arrows[module_of(path)] = set(imports_of(top)) - {module_of(path)}
    while arrows:
        free = {module for module, wanted in arrows.items() if not wanted & arrows.keys()}
        assert free, f"a circle of imports among {sorted(arrows)}"
        arrows = {module: wanted for module, wanted in arrows.items() if module not in free}


def test_imports_are_absolute() -> None:
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), module_of(path)


def test_every_file_says_what_it_is() -> None:
    for path in [*files(), SOURCE / "__init__.py"]:
        assert ast.get_docstring(ast.parse(path.read_text())), module_of(path)


def test_dataclasses_cannot_be_changed() -> None:
    """Settings and plans are shared between parts; only counters of trainings may change."""
    changed = set()
    for name in map(module_of, files()):
        if rank_of(name) > rank_of("pinprick.train"):
            continue  # importing the drawing of figures takes seconds
        for cls in vars(import_module(name)).values():
            if isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == name:
                one: Any = object.__new__(cls)
                try:
                    one.anything = 0
                except FrozenInstanceError:
                    continue
                changed.add(f"{name}.{cls.__name__}")
    assert changed == {
        "pinprick.train.generator_loop.GeneratorProgress",
        "pinprick.train.progress.Progress",
    }


def test_every_attack_file_is_in_the_table() -> None:
    found = {
        path.stem if path.name != "__init__.py" else path.parent.name
        for path in (SOURCE / "attacks").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    homes = {
        cls.__module__.removeprefix("pinprick.attacks.").split(".")[0] for cls in ATTACKS.values()
    }
    assert homes == found - {"attacks", "card", "build", "own_class", "papers"}


def test_the_table_is_in_order() -> None:
    module = import_module("pinprick.attacks")
    for name, cls in ATTACKS.items():
        assert cls.card.name == name
        assert name.isidentifier()
        assert name == name.lower()
        assert cls.__name__ in module.__all__


def test_public_names_are_listed_once_and_resolve() -> None:
    assert list(pinprick.__all__) == sorted(pinprick._HOME)
    for name in pinprick.__all__:
        assert getattr(pinprick, name) is not None
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        name.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert typed == {name: f"pinprick.{home}" for name, home in pinprick._HOME.items()}


def test_the_public_names_can_be_listed() -> None:
    assert set(dir(pinprick)) == {*pinprick.__all__, "__version__"}


@pytest.mark.parametrize(
    "public", ["Attack", "AttackResult", "Card", "Goal", "Problem", "Units", "setting"]
)
def test_what_an_author_needs_says_what_it_does(public: str) -> None:
    cls = getattr(pinprick, public)
    assert cls.__doc__
    for name in dir(cls):
        one = getattr(cls, name)
        if not name.startswith("_") and (callable(one) or hasattr(one, "__get__")):
            assert one.__doc__, f"{public}.{name} has no docstring"


def test_a_name_that_is_not_there_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="module 'pinprick' has no attribute 'sparsefool'"):
        pinprick.sparsefool  # noqa: B018


def test_the_package_is_typed_and_knows_its_version() -> None:
    assert (SOURCE / "py.typed").exists()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pinprick.__version__ == project["version"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("pinprick", {"torch", "numpy"}),
        ("pinprick.bench.store_index, pinprick.report.leaderboard", {"torch"}),
    ],
)
def test_importing_the_package_or_reading_a_store_does_not_wait_for_torch(
    name: str, absent: set[str]
) -> None:
    code = f"import sys, {name}; sys.exit(bool({absent} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        check=False,
    )
    assert done.returncode == 0
