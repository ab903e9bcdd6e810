"""Lines of numbers as CSV, in full; intervals are columns ``_low`` and ``_high``."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pinprick.metrics.estimate import Estimate


def csv_text(lines: Sequence[Mapping[str, Any]]) -> str:
    """A header and the lines; undefined numbers are empty."""
    flat = [_flat(line) for line in lines]
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(flat[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return file.getvalue().rstrip("\n")


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Estimate):
            flat |= {
                key: value.value,
                f"{key}_low": value.low,
                f"{key}_high": value.high,
                f"{key}_deviation": value.deviation,
            }
        elif isinstance(value, Mapping):
            flat |= _flat({f"{key}_at_{number}": one for number, one in value.items()})
        else:
            flat[key] = value
    return {
        key: "" if isinstance(value, float) and math.isnan(value) else value
        for key, value in flat.items()
    }
