"""What is counted: elements or pixels."""

from typing import Any, Literal, get_args

from pinprick.errors import BadInput

Unit = Literal["elements", "pixels"]


def check_unit(unit: Any) -> None:
    """Raise ``BadInput`` unless the unit is "elements" or "pixels"."""
    if unit not in get_args(Unit):
        raise BadInput(f"unit must be one of 'elements', 'pixels', got {unit!r:.80}")
