"""The switch that activates one mutant at a time, and the import hook that builds mutants in."""

import ast
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from mutants.changes import SWITCH


class Switch:
    """Says whether a mutant is active, and records which mutants were reached."""

    def __init__(self) -> None:
        self.active: int | None = None
        self.reached: set[int] = set()

    def __call__(self, number: int) -> bool:
        self.reached.add(number)
        return number == self.active


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType, switch: Switch) -> None:
        super().__init__(name, path)
        self.code, self.switch = code, switch

    def get_code(self, fullname: str) -> CodeType:
        return self.code

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, SWITCH, self.switch)
        super().exec_module(module)


class Finder(MetaPathFinder):
    """Loads the modules that hold mutants, by path. Other modules load as usual."""

    def __init__(self, modules: Mapping[str, ast.Module], switch: Switch) -> None:
        self.switch = switch
        self.codes = {path: compile(tree, path, "exec") for path, tree in modules.items()}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin not in self.codes:
            return None
        code = self.codes[spec.origin]
        spec.loader = _Loader(fullname, spec.origin, code, self.switch)
        return spec

    def install(self) -> None:
        sys.meta_path.insert(0, self)
