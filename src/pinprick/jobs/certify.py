"""Certify that few changed units fool a small network on none of some pictures."""

from dataclasses import dataclass
from typing import Any

from pinprick.bounds.certify import Certificate, certify
from pinprick.data.pictures import PictureRecord, Unreadable
from pinprick.jobs.device import load_on_device
from pinprick.jobs.pictures import PictureSource, choose_data, list_unreadable, read_all
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
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    group = read_all(source, chosen, classifier, progress or Progress())
    home = classifier.device or group.images.device
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
