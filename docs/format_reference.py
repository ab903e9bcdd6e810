"""The fields of the files that Pinprick writes, from the classes and tables that declare them.

docs/reference/file_formats.md has two marks around each list:

    <!-- fields: cell -->
    <!-- end of fields -->
"""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import MISSING, fields

from pinprick.attacks.egs_tssa.saved_generator import GeneratorCard
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.plan import Product
from pinprick.bench.row_schema import COLUMNS
from pinprick.explain.noise import explanation
from pinprick.metrics.estimate import Estimate
from pinprick.metrics.paired_attacks import PairedTest
from pinprick.metrics.summary_row import SummaryRow
from pinprick.report.docs_measured import markdown_table
from pinprick.report.docs_reference import wrapped_list
from pinprick.report.row import Row
from pinprick.settings import meanings_of
from pinprick.trace import Trace
from pinprick.zoo.card import Ablation, ModelCard

_MARKED = re.compile(
    r"(?P<mark><!-- fields: (?P<name>[^>]+?) -->\n).*?(?=<!-- end of fields -->)", re.DOTALL
)
CLASSES: dict[str, type] = {
    "row": Row,
    "trace": Trace,
    "summary": SummaryRow,
    "estimate": Estimate,
    "pair": PairedTest,
    "explanation": explanation.Explanation,
    "group": explanation.Group,
    "effect": explanation.Effect,
    "shapley": explanation.ShapleyEffect,
    "ablation effect": explanation.AblationEffect,
    "place": explanation.MapLabel,
    "output": explanation.ModelOutput,
    "family": explanation.Family,
    "maps": explanation.MapTest,
    "cell": Cell,
    "origin": Origin,
    "model card": ModelCard,
    "ablation": Ablation,
    "generator card": GeneratorCard,
}


def fill_formats(page: str) -> str:
    """The page with everything between its marks made again."""
    return _MARKED.sub(lambda found: f"{found['mark']}{makers()[found['name']]()}\n", page)


def fields_on(page: str) -> list[str]:
    """The names of all lists, in the order of the page."""
    return [found["name"] for found in _MARKED.finditer(page)]


def makers() -> dict[str, Callable[[], str]]:
    """By name, the function that makes a list."""
    lists = {name: lambda cls=cls: _list(cls) for name, cls in CLASSES.items()}
    return {**lists, "columns": _columns, "plan": _plan_keys}


def own_meanings(cls: type) -> dict[str, str]:
    """What the class says of each of its own fields, in their order."""
    meanings = meanings_of(cls)
    return {name: meanings.get(name, "") for name in inspect.get_annotations(cls)}


def _list(cls: type) -> str:
    """Fields that share a meaning share a line."""
    names: dict[str, list[str]] = {}
    for name, meaning in own_meanings(cls).items():
        names.setdefault(meaning, []).append(name)
    return "\n".join(wrapped_list({"`, `".join(some): text for text, some in names.items()}))


def _columns() -> str:
    rows = [(f"`{name}`", _kind(kind), meaning) for name, (kind, meaning) in COLUMNS.items()]
    return markdown_table(("column", "type", "meaning"), rows)


def _kind(kind: object) -> str:
    """Such as "list of int64"."""
    words = str(kind).replace("list<item: ", "list of ").replace("list<element: ", "list of ")
    return re.sub(r"struct<.*", "steps", words).rstrip(">")


def _plan_keys() -> str:
    meanings = meanings_of(Product)
    rows = []
    for one in fields(Product):
        if one.name == "lines":  # where it stands in the file
            continue
        usual = "required" if one.default is MISSING else _toml(one.default)
        rows.append((f"`{one.name}`", meanings[one.name].replace("``", "`"), usual))
    return markdown_table(("key", "meaning", "default"), rows)


def _toml(value: object) -> str:
    """A default as the file would have it; limits are none by default."""
    if value is None:
        return "no limit"
    return f"`{json.dumps(value)}`"
