"""Settings that are one of a few words."""

from collections.abc import Sequence

from pinprick.errors import BadInput


def check_choice(name: str, setting: str, value: str, choices: Sequence[str]) -> None:
    """Raise ``BadInput`` unless the setting of the attack called ``name`` is one of ``choices``."""
    if value not in choices:
        known = " or ".join(repr(choice) for choice in choices)
        raise BadInput(f"{name} needs {setting} to be {known}, got {value!r}")
