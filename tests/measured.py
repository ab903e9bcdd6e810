"""What results and JSON files hold apart from times, for tests of runs that were stopped."""

from typing import Any

from torch import Tensor

from pinprick.batch_rows import BatchRows

_TIMES = ("seconds", "peak_memory")


def measured(value: BatchRows) -> dict[str, Any]:
    """What a result holds, in a form that can be compared."""
    found: dict[str, Any] = {}
    for name, one in value.attributes().items():
        if isinstance(one, BatchRows):
            found[name] = measured(one)
        elif isinstance(one, Tensor):
            found[name] = one.tolist()
        elif name == "stages":
            found[name] = {stage: measured(passes) for stage, passes in one.items()}
        elif name not in _TIMES:
            found[name] = one
    return found


def without_times(document: Any) -> Any:
    """A JSON document without its times."""
    if isinstance(document, dict):
        return {key: without_times(one) for key, one in document.items() if key not in _TIMES}
    return [without_times(one) for one in document] if isinstance(document, list) else document
