"""The names of the speeds, apart from ``speed.py``, so that reading a store needs no torch."""

from typing import Any, Literal, get_args

from pinprick.errors import BadInput

Speed = Literal["exact", "graphs", "fast", "compiled"]
SPEEDS: tuple[Speed, ...] = get_args(Speed)


def check_speed(speed: Any) -> Speed:
    """The speed; raises ``BadInput`` where it is none."""
    if speed not in SPEEDS:
        raise BadInput(f"speed must be {', '.join(SPEEDS[:-1])} or {SPEEDS[-1]}, got {speed!r}")
    chosen: Speed = speed
    return chosen
