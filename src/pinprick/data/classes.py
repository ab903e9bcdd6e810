"""Classes as people write them: by number, in words, or by their synset in ImageNet."""

import re
from collections.abc import Sequence
from pathlib import Path

from pinprick.errors import BadInput, UnknownName

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_MAX_DIGITS = 18  # always fits 64 bits
_SYNSETS = Path(__file__).parent / "sets" / "files" / "imagenet_synsets.txt"


def find_class(text: str, names: Sequence[str], *, count: int | None, owner: str) -> int:
    """The number of the class that ``text`` names.

    Args:
        text: The number itself, a name in upper or lower case, or a synset of ImageNet.
        names: Names of the classes in their order; empty if unknown.
        count: How many classes there are; None if unknown.
        owner: The model or set that has these classes, for messages.
    """
    text = text.strip()
    number = whole_number(text)
    numbers = "from 0" if count is None else f"from 0 to {count - 1}"
    if number is not None and (count is None or number < count):
        return number
    found = classes_named(text, names, count)
    if len(found) == 1:
        return found[0]
    if found:
        several = " and ".join(map(str, found))
        raise BadInput(f"{len(found)} classes are called {text!r}; give the number: {several}")
    if is_number(text):
        raise BadInput(f"a class of {owner} is a number {numbers}, got {text:.40}")
    if not names:
        raise BadInput(
            f"{owner} has no names for its classes; give a number {numbers} instead of {text!r}"
        )
    raise UnknownName(f"class of {owner}", text, names)


def classes_named(text: str, names: Sequence[str], count: int | None) -> list[int]:
    """Numbers of the classes that are called ``text``; arguments as for ``find_class``."""
    wanted = text.casefold()
    found = [i for i, name in enumerate(names[:count]) if name.casefold() == wanted]
    if found:
        return found
    synsets = synset_numbers()
    if wanted in synsets:
        return [synsets[wanted]] if count == len(synsets) else []
    named_by_synset = [i for i, name in enumerate(names[:count]) if name in synsets]
    words = imagenet_classes() if named_by_synset else ()
    return [i for i in named_by_synset if words[synsets[names[i]]].casefold() == wanted]


def is_number(text: str) -> bool:
    """Whether ``text`` is a number, including negative ones and fractions."""
    return _NUMBER.fullmatch(text) is not None


def whole_number(text: str) -> int | None:
    """The number from 0 that ``text`` is in plain digits; None if it is anything else."""
    whole = text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
    return int(text) if whole else None


def imagenet_classes() -> tuple[str, ...]:
    """The thousand classes of ImageNet in words, in the order of all ImageNet networks.

    They come with torchvision; nothing is fetched.
    """
    from torchvision.models import ResNet18_Weights

    return tuple(ResNet18_Weights.IMAGENET1K_V1.meta["categories"])


def synset_numbers() -> dict[str, int]:
    """The number of each class of ImageNet by its WordNet synset, such as n01440764."""
    synsets = _SYNSETS.read_text(encoding="ascii").split()
    return {synset: number for number, synset in enumerate(synsets)}
