"""What an attack keeps small: the number of elements or of pixels, or neither at a fixed k."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pinprick.attacks import ATTACKS
from pinprick.attacks.build import build
from pinprick.errors import PinprickError
from pinprick.metrics.unit import Unit


class KeptSmall(NamedTuple):
    """What one attack keeps small.

    Attributes:
        unit: What the attack counts; None for neither, for unknown attacks, and for grey images,
            where both units agree.
        fixed_k: Whether the attack may change a fixed number of units and seeks no fewer.
    """

    unit: Unit | None = None
    fixed_k: bool = False


def kept_small(attack: Mapping[str, Any], *, grey: bool) -> KeptSmall:
    """From the name and settings of an attack; a polished result is as small as polishing got."""
    unit: Unit | None = attack.get("unit")
    fixed_k = isinstance(attack.get("k"), int)
    if "polished" in attack:
        unit, fixed_k = attack["polished"], False
    elif attack.get("name") in ATTACKS:
        with suppress(PinprickError):  # settings of another version
            unit = build(attack).facts().unit
    return KeptSmall(None if grey else unit, fixed_k)


def kept_small_in_words(unit: Unit | None, settings: str, *, grey: bool) -> KeptSmall:
    """From what compare.json has: settings as text, which always show a fixed k."""
    fixed_k = re.search(r"(^|, )k=\d", settings) is not None
    return KeptSmall(None if grey else unit, fixed_k)
