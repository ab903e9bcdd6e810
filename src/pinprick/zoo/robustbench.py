"""``robustbench:NAME``: robust models of the RobustBench leaderboard, where it is installed.

A name is written as on the leaderboard, with the dataset and the threat model before it where they
are not CIFAR-10 and Linf: ``robustbench:imagenet/Linf/Wong2020Fast``. Its networks normalise for
themselves and its transforms work on 8-bit pixels.

The version on PyPI (1.1.1) imports two modules that it does not install. Both are provided here
while it is imported.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from PIL import Image

from pinprick.data.classes import imagenet_classes
from pinprick.data.pictures import as_rgb
from pinprick.errors import BadInput, MissingExtra, UnknownName, first_sentence
from pinprick.model import Classifier
from pinprick.types import Picture
from pinprick.zoo.prepare import short_side_and_crop
from pinprick.zoo.safe_loading import fetching, is_about_weights

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def load(given: str) -> Classifier:
    dataset, threat, name = _parse(given)
    known = names(dataset, threat)
    if name not in known:
        raise UnknownName(f"model of robustbench for {dataset} and {threat}", name, known)
    from robustbench.utils import load_model

    folder = Path(torch.hub.get_dir()) / "robustbench"  # beside torch's other downloads
    with fetching(f"robustbench:{given}"), warnings.catch_warnings(action="ignore"):
        try:
            net = load_model(name, model_dir=folder, dataset=dataset, threat_model=threat)
        except Exception as error:  # some of its networks ask for a GPU while they are built
            if is_about_weights(error):
                raise
            raise BadInput(
                f"robustbench:{given} cannot be built here ({first_sentence(error)})"
            ) from error
    facts = _imagenet(threat, name) if dataset == "imagenet" else _cifar(dataset)
    return Classifier(net.eval(), name=f"robustbench:{given}", **facts)


def names(dataset: str = "cifar10", threat: str = "Linf") -> list[str]:
    """What the installed version lists for one dataset and threat model."""
    tables = _tables()
    for table, wanted, what in (
        (tables, dataset, "dataset"),
        (tables.get(dataset, {}), threat, "threat model"),
    ):
        if wanted not in table:
            raise UnknownName(f"{what} of robustbench", wanted, table)
    return list(tables[dataset][threat])


def all_names() -> list[str]:
    """Everything it lists, with dataset and threat model."""
    return [
        f"{dataset}/{threat}/{name}"
        for dataset, table in _tables().items()
        for threat, models in table.items()
        for name in models
    ]


def _tables() -> dict[str, dict[str, Any]]:
    try:
        with warnings.catch_warnings(action="ignore"), _missing_modules():  # of its dependencies
            from robustbench.model_zoo import model_dicts
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "robustbench":
            raise MissingExtra("a model of robustbench", "robustbench") from None
        raise BadInput(
            f"robustbench is installed, but cannot be imported: {first_sentence(error)}; "
            "install what it lacks with: pip install robustbench"
        ) from None
    return {
        dataset.value: {threat.value: models for threat, models in table.items()}
        for dataset, table in model_dicts.items()
    }


@contextmanager
def _missing_modules() -> Iterator[None]:
    """Provide the modules that the package imports but does not install.

    Its dependency pyautoattack is AutoAttack, which it imports as ``autoattack``. Of
    ``pkg_resources``, which setuptools has dropped, it calls one function.
    """
    provided: dict[str, ModuleType] = {}
    if not _is_importable("autoattack") and _is_importable("pyautoattack"):
        provided["autoattack"] = import_module("pyautoattack")
        provided["autoattack.state"] = import_module("pyautoattack.state")
    if not _is_importable("pkg_resources"):
        provided["pkg_resources"] = ModuleType("pkg_resources")
        vars(provided["pkg_resources"])["resource_filename"] = _resource_filename
    sys.modules.update(provided)
    try:
        yield
    finally:
        for name in provided:
            sys.modules.pop(name, None)


def _is_importable(name: str) -> bool:
    return sys.modules.get(name) is not None or find_spec(name) is not None


def _resource_filename(module: str, path: str) -> str:
    """Where a file beside a module is."""
    return str(Path(sys.modules[module].__file__ or "").parent / path)


def _parse(given: str) -> tuple[str, str, str]:
    parts = given.split("/")
    if len(parts) > 3 or not all(parts):
        raise BadInput(
            "a model of robustbench is written NAME, DATASET/NAME or DATASET/THREAT/NAME, "
            f"as in imagenet/Linf/Wong2020Fast; got {given!r}"
        )
    dataset = parts[0] if len(parts) > 1 else "cifar10"
    return dataset, parts[1] if len(parts) > 2 else "Linf", parts[-1]


def _cifar(dataset: str) -> dict[str, Any]:
    """CIFAR's pictures go in as they are; others are brought to that size."""
    classes = CIFAR10 if dataset == "cifar10" else ()
    return {"classes": classes, "size": (32, 32), "prepare": short_side_and_crop(32, 32)}


def _imagenet(threat: str, name: str) -> dict[str, Any]:
    from robustbench.data import get_preprocessing
    from robustbench.model_zoo.enums import BenchmarkDataset, ThreatModel

    steps = get_preprocessing(BenchmarkDataset.imagenet, ThreatModel(threat), name, None)

    def prepare(picture: Image.Image) -> Picture:
        prepared: Picture = steps(as_rgb(picture)[0])
        return prepared

    size = tuple(steps(Image.new("RGB", (640, 480))).shape[1:])
    return {"classes": imagenet_classes(), "size": size, "prepare": prepare}
