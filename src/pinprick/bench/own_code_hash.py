"""What tells one version of a user's own attack from another: the hash of its file."""

import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pinprick.attacks.card import Attack
from pinprick.files import reading


def own_code_hash(attack: Attack) -> str:
    """SHA-256 of the files of an attack of the user's own, also inside another; else empty."""
    files = {inspect.getfile(type(one)) for one in _attacks_in(attack) if _is_own(type(one))}
    digest = hashlib.sha256()
    for file in sorted(files):
        with reading(Path(file)):
            digest.update(Path(file).read_bytes())
    return digest.hexdigest() if files else ""


def _is_own(cls: type[Attack]) -> bool:
    return cls.full_name() != cls.card.name


def _attacks_in(value: Any) -> Iterator[Attack]:
    if isinstance(value, Attack):
        yield value
        for inner in vars(value).values():
            yield from _attacks_in(inner)
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _attacks_in(inner)
