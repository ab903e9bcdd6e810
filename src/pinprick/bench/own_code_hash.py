"""What tells one version of a user's own attack from another: the hash of its file."""

import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pinprick.attacks.card import Attack
from pinprick.files import reading


def own_code_hash(attack: Attack) -> str:
    """SHA-256 of the files of an attack of the user's own, also inside another; else empty.

    The files of attacks that it derives from count, too.
    """
    classes = {base for one in _attacks_in(attack) for base in type(one).__mro__}
    files = {inspect.getfile(cls) for cls in classes if issubclass(cls, Attack) and _is_own(cls)}
    digest = hashlib.sha256()
    for file in sorted(files):
        with reading(Path(file)):
            digest.update(Path(file).read_bytes())
    return digest.hexdigest() if files else ""


def _is_own(cls: type[Attack]) -> bool:
    return cls.__module__.partition(".")[0] != __name__.partition(".")[0]


def _attacks_in(value: Any) -> Iterator[Attack]:
    if isinstance(value, Attack):
        yield value
        for inner in vars(value).values():
            yield from _attacks_in(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _attacks_in(inner)
