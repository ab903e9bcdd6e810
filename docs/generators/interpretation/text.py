"""Numbers of rows as text: shares, ranges and rates with their intervals."""

from collections.abc import Sequence

from generators.interpretation.rows import Row
from pinprick.metrics.wilson import wilson_interval

DASH = "\N{EN DASH}"
NOT_MEASURED = "not measured"


def percent(estimate: Row, *, interval: bool = True) -> str:
    """An estimate, with its interval where it has one."""
    value, low, high = (estimate[key] for key in ("value", "low", "high"))
    if value is None:
        return DASH
    around = f" ({100 * low:.0f}{DASH}{100 * high:.0f})" if interval and low is not None else ""
    return f"{100 * value:.0f} %{around}"


def share_range(shares: Sequence[float | None]) -> str:
    """The lowest and the highest of some shares."""
    return f"{number_range([None if one is None else 100 * one for one in shares])} %"


def number_range(numbers: Sequence[float | None]) -> str:
    """The lowest and the highest number, rounded; one number if both round to the same."""
    known = [one for one in numbers if one is not None]
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return low if low == high else f"{low} to {high}"


def rate(count: int, n: int) -> str:
    """A rate with its Wilson interval and n."""
    low, high = wilson_interval(count, n)
    return f"{100 * count / n:.0f} % ({100 * low:.0f}{DASH}{100 * high:.0f}, n {n})" if n else DASH
