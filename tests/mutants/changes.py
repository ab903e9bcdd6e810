"""Mutants of a source file: the list of them, a sample, and the file with the sample built in.

Left out is what cannot change results: annotations, docstrings, error messages, ``__all__``,
``assert`` and ``zip(strict=True)``. The last two state what always holds.
"""

import ast
import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
PAIRS = (
    ("min", "max"), ("amin", "amax"), ("argmin", "argmax"), ("minimum", "maximum"), ("any", "all"),
)  # fmt: skip
OPPOSITES = dict(PAIRS) | {b: a for a, b in PAIRS}
LEFT_OUT_FIELDS = ("annotation", "returns", "type_params", "pattern")
LEFT_OUT = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)
SWITCH = "__mutant__"


@dataclass(frozen=True)
class Mutant:
    """One change to one expression or statement, described so that it is found when files move.

    Args:
        file: Path of the file, relative to the tree.
        line: Line of the change. It identifies nothing.
        function: Qualified name of the function or class.
        statement: The whole statement as text, without nested statements.
        source: What is changed, as text.
        changed: What it is changed to, as text.
        kind: Kind of change, such as "comparison".
        occurrence: Index among equal changes of equal statements in the same function.
    """

    file: str
    line: int
    function: str
    statement: str
    source: str
    changed: str
    kind: str
    occurrence: int


class Instrument(ast.NodeTransformer):
    """Lists the mutants of a module and builds the chosen ones in.

    Args:
        file: The file that the listed mutants name.
        chosen: Number of the mutant, by its index in ``found``.
        mark: Number that every function passes to the switch when it is entered.
    """

    def __init__(self, file: str, chosen: Mapping[int, int] = {}, mark: int | None = None) -> None:
        self.file, self.chosen, self.mark = file, chosen, mark
        self.found: list[Mutant] = []
        self.scope: list[str] = []
        self.statement = ""
        self.conditions: set[int] = set()
        self.times: Counter[tuple[str, ...]] = Counter()

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, LEFT_OUT) or _declares(node):
            return node
        outer = self.statement
        if isinstance(node, ast.stmt):
            self.statement = _header(node)
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            self.conditions.add(id(node.test))
        if isinstance(node, ast.comprehension):
            self.conditions.update(id(test) for test in node.ifs)
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if named:
            self.scope.append(node.name)  # type: ignore[attr-defined]
        switched = [
            (number, changed)
            for kind, changed in _changes(node, condition=id(node) in self.conditions)
            if (number := self.chosen.get(self._note(node, kind, changed))) is not None
        ]
        self.generic_visit(node)
        if named:
            self.scope.pop()
        if self.mark is not None and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            after = 1 if ast.get_docstring(node, clean=False) is not None else 0
            node.body.insert(after, ast.Expr(_switch(self.mark)))
        for number, changed in switched:
            node = _either(_switch(number), changed, node)
        self.statement = outer
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if field in LEFT_OUT_FIELDS:
                continue
            if isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
            elif isinstance(value, list):
                value[:] = [self.visit(v) if isinstance(v, ast.AST) else v for v in value]
        return node

    def _note(self, node: ast.AST, kind: str, changed: ast.AST) -> int:
        function = ".".join(self.scope)
        source, after = _text(node), _text(changed)
        same = (function, self.statement, source, after)
        line = getattr(node, "lineno", 0)
        self.found.append(
            Mutant(self.file, line, function, *same[1:], kind, occurrence=self.times[same])
        )
        self.times[same] += 1
        return len(self.found) - 1


def _declares(node: ast.AST) -> bool:
    """Whether this states something and computes nothing."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _changes(node: ast.AST, *, condition: bool) -> Iterator[tuple[str, ast.AST]]:
    """Kind and changed copy, for every change of this node itself."""
    if condition:
        yield "condition", ast.Constant(True)
        yield "condition", ast.Constant(False)
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                for other in COMPARISONS[type(op)]:
                    changed = copy.deepcopy(node)
                    changed.ops[at] = other()
                    yield "comparison", changed
        case ast.BinOp() | ast.AugAssign() if type(node.op) in OPERATORS:
            yield "arithmetic", _with(node, op=OPERATORS[type(node.op)]())
        case ast.BoolOp():
            yield "and, or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield "sign", copy.deepcopy(node.operand)
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as number):
            yield "constant", ast.Constant(type(number)(0) if number == 1 else number + 1)
        case ast.Expr(value=ast.Call()):
            yield "removed", ast.Pass()
        case ast.Call(func=ast.Name(id=name)) if name in OPPOSITES:
            yield "min, max", _with(node, func=ast.Name(OPPOSITES[name], ast.Load()))
        case ast.Call(func=ast.Attribute(attr=name)) if name in OPPOSITES:
            yield "min, max", _with(node, func=_with(node.func, attr=OPPOSITES[name]))
    if isinstance(node, ast.AugAssign):
        target, value = copy.deepcopy(node.target), copy.deepcopy(node.value)
        yield "removed", ast.Assign([target], value)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.deepcopy(node)
    for field, value in fields.items():
        setattr(changed, field, value)
    return changed


def _switch(number: int) -> ast.Call:
    return ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(number)], [])


def _either(switch: ast.Call, changed: ast.AST, node: ast.AST) -> ast.AST:
    if isinstance(node, ast.stmt):
        assert isinstance(changed, ast.stmt)
        return ast.copy_location(ast.If(switch, [changed], [node]), node)
    assert isinstance(changed, ast.expr)
    assert isinstance(node, ast.expr)
    return ast.copy_location(ast.IfExp(switch, changed, node), node)


class _NoMessages(ast.NodeTransformer):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")  # its text differs between versions of Python


def _text(node: ast.AST) -> str:
    plain = _NoMessages().visit(ast.fix_missing_locations(copy.deepcopy(node)))
    return ast.unparse(plain)


def _header(node: ast.stmt) -> str:
    """The statement without the statements in it."""
    first = copy.copy(node)
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        if hasattr(first, field):
            setattr(first, field, [ast.Pass()] if field == "body" else [])
    return _text(first)


def list_mutants(root: Path, files: Sequence[str]) -> list[Mutant]:
    """All mutants of the files, in order."""
    found = []
    for file in files:
        instrument = Instrument(file)
        instrument.visit(ast.parse((root / file).read_text()))
        found += instrument.found
    return found


def draw(mutants: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """A random sample without repetition, in the order of the files."""
    numbers = random.Random(seed).sample(range(len(mutants)), min(count, len(mutants)))
    return [mutants[i] for i in sorted(numbers)]


Key = Callable[[Mutant], tuple[object, ...]]
KEYS: tuple[Key, ...] = (  # from strict to loose; a key decides where it fits one mutant
    lambda m: (m.file, m.function, m.statement, m.source, m.changed, m.occurrence),
    lambda m: (m.function, m.statement, m.source, m.changed, m.occurrence),
    lambda m: (m.function, m.source, m.changed, m.occurrence),
    lambda m: (m.statement, m.source, m.changed, m.occurrence),
)


def find_again(
    sample: Sequence[Mutant], offered: Sequence[Mutant], keys: Sequence[Key] = KEYS
) -> list[Mutant | None]:
    """The same mutants in a tree where code has moved, and None for those that are gone."""
    found: dict[int, Mutant] = {}
    left = list(dict.fromkeys(offered))
    for key in keys:
        same: dict[tuple[object, ...], list[Mutant]] = {}
        for mutant in left:
            same.setdefault(key(mutant), []).append(mutant)
        for number, mutant in enumerate(sample):
            fitting = same.get(key(mutant), [])
            if number not in found and len(fitting) == 1:
                found[number] = fitting.pop()
        taken = set(found.values())
        left = [mutant for mutant in left if mutant not in taken]
    return [found.get(number) for number in range(len(sample))]


def build(root: Path, file: str, mark: int, sample: Mapping[int, Mutant]) -> ast.Module:
    """The module with its mutants of the sample, each behind a switch."""
    tree = ast.parse((root / file).read_text())
    numbers = {mutant: number for number, mutant in sample.items()}
    listing = Instrument(file)
    listing.visit(copy.deepcopy(tree))
    chosen = {at: numbers[m] for at, m in enumerate(listing.found) if m in numbers}
    Instrument(file, chosen, mark).visit(tree)
    return ast.fix_missing_locations(tree)
