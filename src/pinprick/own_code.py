"""Modules of the user's own: installed, in the current folder, or a Python file by its path.

A module may import others of the current folder when it is called, so the folder stays at the end
of ``sys.path``, where it hides no other module. An error inside such a module keeps its traceback,
which is what its author needs.
"""

import difflib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from pinprick.errors import BadInput

FILE = ".py"  # what the name of a file ends with


def import_own(name: str, wanted: str, known: Iterable[str] = ()) -> ModuleType:
    """The module called ``name``, or the one in the file of that path.

    Args:
        name: The name of a module, or the path of a file that ends with ``.py``.
        wanted: What it is searched for, for messages: "a model".
        known: Names that the caller also understands; the nearest one is suggested.
    """
    if name.endswith(FILE):
        return _import_file(name, wanted)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, but something it needs is not
        near = difflib.get_close_matches(name, list(known))
        hint = f"did you mean {near[0]}?" if near else "it must be installed, or in this folder"
        raise BadInput(f"there is no module {error.name!r} to take {wanted} from; {hint}") from None
    except (TypeError, ValueError):  # "", ".." and the like
        raise BadInput(f"{name!r} is not the name of a module") from None


def _import_file(name: str, wanted: str) -> ModuleType:
    """The module in a file, under its path as a name; loaded once per process."""
    path = Path(name).resolve()
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path):
        return loaded
    if not path.is_file():
        raise BadInput(f"there is no file {name} to take {wanted} from")
    spec = spec_from_file_location(name, path)
    assert spec is not None, "Python knows how to load a file that ends with .py"
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look it up by its name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def modules_from_here() -> Iterator[None]:
    """Let modules of the current folder come before all others, as with ``python -m``.

    After the block they come last, unless it raised an error.
    """
    try:
        here = os.getcwd()
    except OSError:  # the folder was deleted
        yield
        return
    before = sys.path.count(here)
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if sys.path.count(here) > before:
            sys.path.remove(here)
    if here not in sys.path:
        sys.path.append(here)
