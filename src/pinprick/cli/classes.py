"""Classes as people write them: by number, or in words."""

from pinprick.errors import BadInput, UnknownName
from pinprick.model import Classifier


def find_class(text: str, model: Classifier, count: int) -> int:
    """The number of the class that ``text`` names, of the ``count`` that the model has."""
    text = text.strip()
    if text.lstrip("-").isdigit():
        if 0 <= int(text) < count:
            return int(text)
        raise BadInput(f"a class of {model.name} is a number from 0 to {count - 1}, got {text}")
    if not model.classes:
        raise BadInput(
            f"{model.name} has no names for its classes; "
            f"give a number from 0 to {count - 1} instead of {text!r}"
        )
    wanted = text.casefold()
    found = [i for i, name in enumerate(model.classes[:count]) if name.casefold() == wanted]
    if len(found) > 1:
        numbers = " and ".join(map(str, found))
        raise BadInput(f"{len(found)} classes are called {text!r}; give the number: {numbers}")
    if not found:
        raise UnknownName("class", text, model.classes)
    return found[0]
