"""Checkpoints are read, never run.

A pickle is a program: reading one may call any function there is. ``torch.load`` reads plain
weights only where it is told to, and loaders of other packages do not always tell it; torch.hub,
which torchvision uses, asks for the unsafe form. So they run inside ``weights_only()``.
"""

import pickle
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from pinprick.errors import BadInput

_LONGEST = 60  # characters of a name that a message repeats
_ONE_AT_A_TIME = threading.RLock()  # the function is swapped for every thread


@contextmanager
def weights_only() -> Iterator[None]:
    """While ``torch.load``, whoever calls it and however, reads plain weights or nothing."""
    with _ONE_AT_A_TIME:
        kept = torch.load, torch.serialization.load

        def load(f: Any, map_location: Any = None, *_: Any, **options: Any) -> Any:
            mmap = options.get("mmap")
            return kept[0](f, map_location=map_location, weights_only=True, mmap=mmap)

        torch.load = torch.serialization.load = load
        try:
            yield
        finally:
            torch.load, torch.serialization.load = kept


def refusal(what: str, error: Exception) -> BadInput:
    """One line for a checkpoint that is not plain weights: what it asked for, and the way out."""
    found = re.search(r"GLOBAL (\S+)|function (\S+) whose module|instance of (\S+)", str(error))
    wanted = next((name for name in found.groups() if name), "") if found else ""
    reason = (
        f"is a pickle that needs {wanted}, and reading it could run code; nothing was run"
        if wanted
        else "is damaged, or a pickle of more than weights; nothing of it was run"
    )
    way_out = "save the weights alone, with save_model or torch.save(net.state_dict(), ...)"
    return BadInput(f"{what} {reason}; {way_out}")


def is_refusal(error: BaseException) -> bool:
    """Whether ``error`` says that a pickle was not plain weights."""
    return isinstance(error, pickle.UnpicklingError) or "weights_only" in str(error)


def brief(error: BaseException) -> str:
    """The first sentence of what an error of another package says, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.partition(". ")[0][:200]


def plain_name(name: str) -> str:
    """The name as a message repeats it: printable, and not too long."""
    shown = name if name.isprintable() else ascii(name)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
