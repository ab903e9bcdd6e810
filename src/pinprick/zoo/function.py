"""``package.module:function``: a model made by the user's own code.

The function takes no arguments and gives a ``Classifier``, or a network (or any function) of
images in [0, 1]; pictures then go in at their own size.
"""

from torch import nn

from pinprick.errors import BadInput, UnknownName
from pinprick.model import Classifier
from pinprick.own_code import import_own, modules_from_here
from pinprick.zoo.prepare import as_it_is
from pinprick.zoo.registry import SOURCES


def load(module_name: str, function_name: str) -> Classifier:
    with modules_from_here():
        module = import_own(module_name, "a model", [source.name for source in SOURCES])
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
