"""Models and images of cells, loaded once per process, with the hashes that identify them."""

import hashlib
import subprocess
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pinprick.bench.cell import Cell
from pinprick.data.dataset import Dataset
from pinprick.data.match_labels import check_shape
from pinprick.data.select import load_subset
from pinprick.errors import BadInput
from pinprick.files import sha256
from pinprick.jobs.device import load_on_device
from pinprick.model import Classifier
from pinprick.saved_batches import tensors_sha256, weights_sha256
from pinprick.types import Images, Labels
from pinprick.zoo.voting import VotingNetwork


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Some images as a model takes them.

    Attributes:
        images: The images in [0, 1], on the CPU.
        labels: Their classes, as the model numbers them.
        ids: Their indices in the dataset, on which random streams depend.
    """

    images: Images
    labels: Labels
    ids: Labels

    @property
    def sha256(self) -> str:
        """The SHA-256 of images and labels."""
        digest = tensors_sha256([("images", self.images), ("labels", self.labels)])
        assert digest is not None
        return digest


class Cache:
    """Loads the models and images that cells name; each model and dataset once.

    A copy for another process starts empty.

    Args:
        root: The folder that datasets are kept in; None for the default.
        trust: Load model files that are programs, too.
        device: Where cells for a GPU run, as in "cuda:1"; "cuda" by default.
    """

    def __init__(
        self, root: Path | None = None, *, trust: bool = False, device: str = "cuda"
    ) -> None:
        self._root, self._trust, self._device = root, trust, device
        self._models: dict[tuple[str, str], Classifier] = {}
        self._weights: dict[str, str] = {}
        self._data: dict[tuple[str, str, bool], Dataset] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Cache, trust=self._trust, device=self._device), (self._root,)

    def model(self, name: str, device: str = "cpu") -> Classifier:
        """The model called ``name`` on this kind of device: "cpu" or "cuda"."""
        if (name, device) not in self._models:
            where = self._device if device == "cuda" else device
            self._models[name, device] = load_on_device(name, where, trust=self._trust)
        return self._models[name, device]

    def weights(self, name: str) -> str:
        """The SHA-256 of the model's weights, its mean and its std, and of how it votes.

        The file stands for the weights of a model that is no network.
        """
        if name not in self._weights:
            loaded = [model for (other, _), model in self._models.items() if other == name]
            found = _weights_hash(name, loaded[0] if loaded else self.model(name))
            self._weights[name] = found
        return self._weights[name]

    def dataset(self, model: str, data: str, *, by_number: bool = False) -> Dataset:
        """The subset ``data``, with labels as the model numbers its classes.

        Classes go by their names; with ``by_number`` labels stay as they are.
        """
        if (model, data, by_number) not in self._data:
            classifier, found = self.model(model), load_subset(data, root=self._root)
            check_shape(found, classifier)
            self._data[model, data, by_number] = found.for_model(classifier, by_number=by_number)
        return self._data[model, data, by_number]

    def images(
        self, model: str, data: str, first: int, last: int, *, by_number: bool = False
    ) -> LabelledImages:
        """Images ``first`` to before ``last`` of the subset, as the model takes them."""
        part = self.dataset(model, data, by_number=by_number)[first:last]
        return LabelledImages(part.images(self.model(model)), part.labels, part.indices)

    def model_of(self, cell: Cell) -> Classifier:
        """The model of a cell on its device; ``BadInput`` if its weights are others now."""
        model = self.model(cell.model, cell.device)
        self._check_weights(cell.model, cell.weights)
        return model

    def victims_of(self, cell: Cell) -> list[Classifier]:
        """The victims of a cell on its device; ``BadInput`` if their weights are others now."""
        victims = [self.model(name, cell.device) for name, _ in cell.victims]
        for name, weights in cell.victims:
            self._check_weights(name, weights)
        return victims

    def images_of(self, cell: Cell) -> LabelledImages:
        """The images of a cell; ``BadInput`` if they are others now."""
        found = self.images(
            cell.model, cell.data, cell.first, cell.last, by_number=cell.labels_by_number
        )
        if found.sha256 != cell.data_hash:
            raise BadInput(
                f"{cell.data} holds other images than the cell was made for: their hash is "
                f"{found.sha256[:12]}, not {cell.data_hash[:12]}"
            )
        return found

    def _check_weights(self, name: str, wanted: str) -> None:
        if self.weights(name) != wanted:
            raise BadInput(
                f"{name} has other weights than the cell was made for: their hash is "
                f"{self.weights(name)[:12]}, not {wanted[:12]}"
            )

    @cached_property
    def commit(self) -> str:
        """The commit of the package's source, "-dirty" if files differ; empty if unknown."""
        top = Path(__file__).parents[3]
        if not (top / ".git").exists():
            return ""
        command = ["git", "-C", str(top), "describe", "--always", "--dirty", "--abbrev=40"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""


def device_here(kind: str) -> str:
    """The kind of device of a cell, or the CPU where there is no such device."""
    return kind if kind != "cuda" or torch.cuda.is_available() else "cpu"


def _weights_hash(name: str, model: Classifier) -> str:
    source, _, path = name.partition(":")
    digest = weights_sha256(model)
    if digest is None and source == "file":
        digest = sha256(Path(path).expanduser())
    if digest is None:
        raise BadInput(f"{name} has no weights to tell it by; a benchmark needs a network")
    modules = model.net.modules() if isinstance(model.net, nn.Module) else ()
    votes = [one.ablation for one in modules if isinstance(one, VotingNetwork)]
    if model.mean is None and model.std is None and not votes:
        return digest
    text = " ".join(map(str, (digest, model.mean, model.std, *votes)))
    return hashlib.sha256(text.encode()).hexdigest()
