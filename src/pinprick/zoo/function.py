"""``package.module:function``: a model made by the user's own code.

The function takes no arguments and gives a ``Classifier``, or a network (or any function) of
images in [0, 1]; pictures then go in at their own size. Modules of the current folder are found
too. A model may import one when it is called, so the folder stays at the end of ``sys.path``, where
it hides no other module. An error inside that code keeps its traceback, which is what its author
needs.
"""

import difflib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from torch import nn

from pinprick.errors import BadInput, UnknownName
from pinprick.model import Classifier
from pinprick.zoo.prepare import as_it_is
from pinprick.zoo.registry import SOURCES


def load(module_name: str, function_name: str) -> Classifier:
    with _modules_from_here():
        module = _import(module_name)
        if not hasattr(module, function_name):
            known = [name for name in dir(module) if callable(getattr(module, name))]
            raise UnknownName(f"function of {module_name}", function_name, known)
        function = getattr(module, function_name)
        if not callable(function) or isinstance(function, Classifier | nn.Module):
            raise BadInput(
                f"{module_name}:{function_name} is a {type(function).__name__}; "
                "it must be a function that gives the model"
            )
        model = function()
        if isinstance(model, Classifier):
            return model
        if not callable(model):
            raise BadInput(
                f"{module_name}:{function_name} gave a {type(model).__name__}; "
                "it must give a Classifier or a network of images in [0, 1]"
            )
        return Classifier(model, prepare=as_it_is, name=f"{module_name}:{function_name}")


def _import(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there, but something it needs is not
        near = difflib.get_close_matches(name, [source.name for source in SOURCES])
        hint = f"did you mean {near[0]}?" if near else "it must be installed, or in this folder"
        raise BadInput(f"there is no module {error.name!r} to take a model from; {hint}") from None
    except (TypeError, ValueError):  # "", ".." and the like
        raise BadInput(f"{name!r} is not the name of a module") from None


@contextmanager
def _modules_from_here() -> Iterator[None]:
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
