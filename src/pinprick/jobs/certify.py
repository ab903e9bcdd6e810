"""Certify that few changed units fool a network on none of some pictures.

A certificate of ``certify_pictures`` holds without exception. One of ``certify_smoothed_pictures``
holds with a probability, and for a smoothed classifier.
"""

from dataclasses import dataclass
from typing import Any

import torch

from pinprick.bounds.certify import Certificate, certify
from pinprick.bounds.smoothed import SmoothedCertificate, certify_smoothed
from pinprick.data.pictures import PictureRecord, Unreadable
from pinprick.errors import BadInput
from pinprick.jobs.device import load_on_device
from pinprick.jobs.pictures import (
    PictureGroup,
    PictureSource,
    choose_data,
    list_unreadable,
    read_all,
)
from pinprick.jobs.progress import Progress
from pinprick.metrics.unit import check_unit, finite_count
from pinprick.model import Classifier


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifyOutcome:
    """What was certified of some pictures.

    Attributes:
        certificate: The bounds of all pictures.
        records: What is known about each picture.
        unreadable: Files that could not be read.
    """

    certificate: Certificate
    records: tuple[PictureRecord, ...]
    unreadable: tuple[Unreadable, ...]

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; infinite numbers are null."""
        found = self.certificate
        targets = found.goal.targets
        columns = zip(
            (record.name for record in self.records),
            found.goal.labels.tolist(),
            [None] * len(found) if targets is None else targets.tolist(),
            map(finite_count, found.certified.tolist()),
            map(finite_count, found.upper.tolist()),
            found.words,
            found.nodes.tolist(),
            strict=True,
        )
        names = ("picture", "label", "target", "certified", "fewest_known", "outcome", "nodes")
        return {
            "model": found.model,
            "unit": found.unit,
            "t": found.t,
            "seconds": sum(found.seconds.tolist()),
            "images": [dict(zip(names, row, strict=True)) for row in columns],
            "unreadable": list_unreadable(self.unreadable),
        }


def certify_pictures(
    model: str | Classifier,
    source: PictureSource,
    *,
    t: int = 1,
    unit: str = "pixels",
    seconds: float = 60.0,
    nodes: int = 1_000_000,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> CertifyOutcome:
    """Certify pictures for up to ``t`` changed units.

    Args:
        model: A model, or the name of one.
        source: The pictures, which are all held in memory.
        t: Most units to try.
        unit: What is counted.
        seconds: Time limit for all pictures together.
        nodes: Most sub-problems per picture and number of units.
        device: The device for a model given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks.
    """
    counted = check_unit(unit)
    classifier, group, home = _read(model, source, device, trust, progress)
    certificate = certify(
        classifier,
        group.images.to(home),
        group.labels.to(home),
        t=t,
        unit=counted,
        targets=None if group.targets is None else group.targets.to(home),
        allowed=None if group.allowed is None else group.allowed.to(home),
        seconds=seconds,
        nodes=nodes,
    )
    return CertifyOutcome(
        certificate=certificate.to("cpu"), records=group.records, unreadable=group.unreadable
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothedOutcome:
    """What holds for a smoothed classifier and some pictures, each with a probability.

    Attributes:
        certificate: The radius of each picture.
        records: What is known about each picture.
        unreadable: Files that could not be read.
    """

    certificate: SmoothedCertificate
    records: tuple[PictureRecord, ...]
    unreadable: tuple[Unreadable, ...]

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; a prediction is null where the certificate abstains."""
        found = self.certificate
        columns = zip(
            (record.name for record in self.records),
            found.labels.tolist(),
            (None if each < 0 else each for each in found.prediction.tolist()),
            (None if each < 0 else each for each in found.radius.tolist()),
            found.probability.tolist(),
            found.hits.tolist(),
            found.words,
            strict=True,
        )
        names = ("picture", "label", "prediction", "radius", "probability", "hits", "outcome")
        return {
            "model": found.model,
            "unit": "pixels",
            "kept": found.kept,
            "draws": found.draws,
            "first_draws": found.first_draws,
            "alpha": found.alpha,
            "seed": found.seed,
            "seconds": found.seconds,
            "images": [dict(zip(names, row, strict=True)) for row in columns],
            "unreadable": list_unreadable(self.unreadable),
        }


def certify_smoothed_pictures(
    model: str | Classifier,
    source: PictureSource,
    *,
    draws: int = 1000,
    first_draws: int = 100,
    alpha: float = 0.001,
    seed: int = 0,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> SmoothedOutcome:
    """The certified radius of the smoothed classifier of a network that votes, per picture.

    Args:
        model: A model, or the name of one.
        source: The pictures, which are all held in memory; a mask is refused.
        draws: Draws per picture that bound the probability of its class.
        first_draws: Draws per picture that choose the class.
        alpha: Largest probability that the claim about a picture is wrong.
        seed: Seed of the draws.
        device: The device for a model given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks.
    """
    if source.target is not None:
        raise BadInput("a smoothed certificate is about any other class; leave out the target")
    classifier, group, home = _read(model, source, device, trust, progress)
    if group.allowed is not None:
        raise BadInput("a smoothed certificate is about all pixels; leave out the mask")
    certificate = certify_smoothed(
        classifier,
        group.images.to(home),
        group.labels.to(home),
        draws=draws,
        first_draws=first_draws,
        alpha=alpha,
        seed=seed,
        ids=group.ids.to(home),
    )
    return SmoothedOutcome(
        certificate=certificate.to("cpu"), records=group.records, unreadable=group.unreadable
    )


def _read(
    model: str | Classifier,
    source: PictureSource,
    device: str,
    trust: bool,
    progress: Progress | None,
) -> tuple[Classifier, PictureGroup, torch.device]:
    """The model, the pictures, and the device to work on."""
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    group = read_all(source, chosen, classifier, progress or Progress())
    return classifier, group, classifier.device or group.images.device
