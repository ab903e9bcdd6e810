"""Check on pictures whether a model is fit to be measured."""

from dataclasses import asdict, dataclass
from typing import Any

from pinprick.checks import Flag, check_card, check_model
from pinprick.data.pictures import Unreadable
from pinprick.data.sets.photographs import read_photographs
from pinprick.errors import BadInput
from pinprick.jobs.device import load_on_device
from pinprick.jobs.pictures import PictureSource, choose_data, list_unreadable, read_all
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.zoo import card_of

_EPS = 8 / 255


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckOutcome:
    """What a check found.

    Attributes:
        model: Name of the model.
        data: The images of the dataset, as text; None for pictures.
        images: Number of images it was checked on.
        flags: What was found; empty if nothing.
        unreadable: Files that could not be read.
    """

    model: str
    data: str | None
    images: int
    flags: list[Flag]
    unreadable: tuple[Unreadable, ...]

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "model": self.model,
            "data": self.data,
            "images": self.images,
            "flags": [asdict(flag) for flag in self.flags],
            "unreadable": list_unreadable(self.unreadable),
        }


def check_on_pictures(
    model: str | Classifier,
    source: PictureSource,
    *,
    eps: float | None = None,
    device: str = "auto",
    trust: bool = False,
    progress: Progress | None = None,
) -> CheckOutcome:
    """Check a model on pictures, and the figures on its card against each other.

    Args:
        model: A model, or the name of one.
        source: The pictures, which are all held in memory.
        eps: Radius of PGD's ball; None for that of the model's card, or 8/255.
        device: The device for a model given by name.
        trust: Load model files that are programs, too.
        progress: Receives remarks.
    """
    if eps is not None and not 0 < eps <= 1:
        raise BadInput(f"--eps must be above 0 and at most 1, got {eps:g}")
    chosen = choose_data(source)
    classifier = load_on_device(model, device, trust=trust)
    if chosen is None and not source.paths:
        _refuse_other_classes(classifier)
    group = read_all(source, chosen, classifier, progress or Progress())
    known = all(record.label_from != "model" for record in group.records)
    card = card_of(model) if isinstance(model, str) else None
    facts = {} if card is None else card.facts
    radius = eps or (facts.get("pgd") or {}).get("eps", _EPS)
    flags = check_model(classifier, group.images, group.labels if known else None, eps=radius)
    names = {flag.name for flag in flags}
    flags += [flag for flag in check_card(facts) if flag.name not in names]
    return CheckOutcome(
        model=classifier.name,
        data=None if chosen is None else chosen.description,
        images=len(group.records),
        flags=flags,
        unreadable=group.unreadable,
    )


def _refuse_other_classes(model: Classifier) -> None:
    """Raise ``BadInput`` where the photographs of the demo show none of the model's classes."""
    shown = {photo.record.label_name for photo in read_photographs()} - {""}
    if model.classes and not shown & set(model.classes):
        some = ", ".join(model.classes[:3])
        raise BadInput(
            f"{model.name} has the classes {some}, …, which the photographs of the demo do not "
            "show; give pictures of its classes, or --data NAME ('pinprick data list' has names)"
        )
