"""Packages of the extra ``bench``, imported where they are used."""

from importlib import import_module
from typing import Any

from pinprick.errors import MissingExtra


def needed(module: str) -> Any:
    """The module of pyarrow or polars; ``MissingExtra`` where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or not error.name.startswith(package):
            raise
        raise MissingExtra("the benchmark", package, "bench") from None
