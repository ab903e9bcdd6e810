"""What is counted: elements or pixels."""

import math
from typing import Any, Literal, get_args

from pinprick.errors import BadInput

Unit = Literal["elements", "pixels"]


def check_unit(unit: Any) -> Unit:
    """The unit; raises ``BadInput`` unless it is "elements" or "pixels"."""
    if unit not in get_args(Unit):
        raise BadInput(f"unit must be one of 'elements', 'pixels', got {unit!r:.80}")
    chosen: Unit = unit
    return chosen


def finite_count(number: float) -> int | None:
    """A number of units as JSON can hold it: None where it is infinite or unknown."""
    return int(number) if math.isfinite(number) else None
