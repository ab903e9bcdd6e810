"""The layer that a map is computed from: the one that is given, or the one that is found."""

from weakref import WeakKeyDictionary

from torch import Tensor, nn

from pinprick.errors import BadInput, UnknownName
from pinprick.explain.maps.inputs import MapInputs, check_inputs
from pinprick.feature_layer import FINE_ENOUGH, find_feature_layer
from pinprick.model import Classifier, Model

_FOUND: WeakKeyDictionary[nn.Module, dict[tuple[tuple[int, ...], int], str]] = WeakKeyDictionary()


def find_layer(model: Classifier | Model, images: Tensor, *, at_least: int = FINE_ENOUGH) -> str:
    """The name of the last layer that gives a map of the image with enough rows and columns.

    Args:
        model: A ``Classifier`` of a network, or a network.
        images: Images of the size to explain; the first one is used.
        at_least: Rows and columns that the map should have. If no layer has as many, the last of
            the finest layers is chosen.
    """
    inputs = check_inputs("find_layer", model, images, None, 1)
    return find_feature_layer(inputs.model, inputs.network, inputs.images, at_least)


def choose_layer(
    inputs: MapInputs, layer: str | nn.Module | None, *, at_least: int
) -> tuple[str, nn.Module]:
    """The given layer with its name; the one that ``find_layer`` finds if None is given."""
    wanted = _find_once(inputs, at_least) if layer is None else layer
    named = dict(inputs.network.named_modules(remove_duplicate=False))
    del named[""]
    if isinstance(wanted, str):
        if wanted not in named:
            raise UnknownName("layer", wanted, named)
        return wanted, named[wanted]
    for name, module in named.items():
        if module is wanted:
            return name, module
    raise BadInput(
        f"layer must be a layer of {inputs.model.name}, or the name of one, "
        f"got a {type(wanted).__name__} that is not in it"
    )


def _find_once(inputs: MapInputs, at_least: int) -> str:
    """The layer that is found, searched once per network and image size."""
    found = _FOUND.setdefault(inputs.network, {})
    key = (tuple(inputs.images.shape[1:]), at_least)
    if key not in found:
        found[key] = find_feature_layer(inputs.model, inputs.network, inputs.images, at_least)
    return found[key]
