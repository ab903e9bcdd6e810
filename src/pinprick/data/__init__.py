"""Where images come from."""

from pinprick.data.registry import load_data

__all__ = ["load_data"]
