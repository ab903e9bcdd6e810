"""What must be known about a model apart from its weights, as plain JSON: ``card.json``.

The card names the network, its classes and its preprocessing, so that a folder of weights can be
loaded without further arguments. It also holds the facts of the training.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pinprick.errors import BadInput, UnknownName
from pinprick.json_text import read_json, read_json_file
from pinprick.settings import Settings, setting
from pinprick.zoo.facts import check_facts

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
_DIGESTS = "sha256"  # an entry of card.json that a card in memory does not have
_MOST_CLASSES = 100_000  # a card must not fill the memory
_MOST_PIXELS = 4096  # along a side
_LEAST_STD, _MOST = 1e-6, 1e6  # where values run from 0 to 1; in float32 the rest is 0 or infinite
_LISTS = {"classes": str, "mean": float, "std": float, "size": int}  # as JSON holds them


@dataclass(frozen=True, kw_only=True)
class Ablation(Settings):
    """How a network sees few pixels at a time and votes (``zoo.voting``).

    Attributes:
        kept: Pixels that the network sees per draw.
        draws: Draws that vote on each image.
        seed: Seed of the draws.
    """

    kept: int = setting(45, least=1)
    draws: int = setting(64, least=1, most=10_000)  # their masks are held in memory
    seed: int = 0

    @classmethod
    def owner(cls) -> str:
        return "ablation"


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """The network, its preprocessing and its facts.

    Attributes:
        net: The architecture: a name of ``zoo.nets``, "torchvision:NAME" or "timm:NAME".
        classes: Names of the classes, in the order of the logits.
        mean, std: Subtracted and divided by, per channel; None for no normalisation.
        size: Height and width of the images that the network takes.
        channels: 3 for colour, 1 for grey.
        resize: Length of a picture's short side before the crop; None for the smallest at which
            the crop fits.
        interpolation: How pictures are resized; one of ``INTERPOLATIONS``.
        ablation: How the network votes over few pixels at a time; None for a plain network.
        facts: Where the weights come from and what was measured, as plain JSON.
    """

    net: str
    classes: tuple[str, ...]
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    size: tuple[int, int]
    channels: int = 3
    resize: int | None = None
    interpolation: str = "bilinear"
    ablation: Ablation | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.net or not self.classes:
            raise BadInput("a model card names the net and at least one class")
        if len(self.classes) > _MOST_CLASSES:
            raise BadInput(f"a model card has at most {_MOST_CLASSES} classes")
        if self.channels not in (1, 3):
            raise BadInput(f"a model card has 1 or 3 channels, got {self.channels}")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if values is not None and len(values) != self.channels:
                raise BadInput(
                    f"{name} has {len(values)} values for {self.channels} channels in a model card"
                )
        if self.std is not None and min(self.std) <= 0:
            raise BadInput(f"std must be above zero in every channel, got {self.std}")
        for name, values, least in (("mean", self.mean, -_MOST), ("std", self.std, _LEAST_STD)):
            if values is not None and not all(least <= one <= _MOST for one in values):
                raise BadInput(f"{name} must lie between {least:g} and {_MOST:g}, got {values}")
        if min(self.size) < 1 or max(self.size) > _MOST_PIXELS:
            raise BadInput(
                f"size is height and width in pixels, at most {_MOST_PIXELS}, "
                f"got {str(self.size)[:60]}"
            )
        if self.resize is not None and self.resize < max(self.size):
            raise BadInput(f"a crop of {self.size} does not fit a short side of {self.resize}")
        if self.resize is not None and self.resize > 2 * _MOST_PIXELS:
            raise BadInput(f"resize is at most {2 * _MOST_PIXELS} pixels")
        if self.interpolation not in INTERPOLATIONS:
            raise UnknownName("interpolation", self.interpolation, INTERPOLATIONS)
        if self.ablation is not None:
            _check_ablation(self.ablation, self)

    def as_json(self, sha256: dict[str, str] | None = None) -> str:
        """The card as JSON; ``BadInput`` where its results contradict its settings.

        With ``sha256`` it lists the digests of its files of weights.
        """
        check_facts(self.facts)
        values = asdict(self) | ({} if sha256 is None else {_DIGESTS: sha256})
        if self.ablation is None:
            del values["ablation"]  # older versions refuse entries that they do not know
        try:
            return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"the facts of a model card must be plain JSON: {error}") from None


def read_card(text: str, where: str) -> ModelCard:
    """The card that ``text`` holds; errors name ``where`` it was found.

    ``classes`` may also be a number, where the classes have no names.
    """
    return _card_of(read_json(text, where, finite=True), where)


def read_card_file(path: Path) -> ModelCard:
    """The card in the file at ``path``."""
    return _card_of(read_json_file(path, finite=True), str(path))


def read_digests(path: Path) -> dict[str, str]:
    """The SHA-256 of each file of weights that the card at ``path`` lists; none for older cards."""
    digests = _object(read_json_file(path, finite=True), str(path)).get(_DIGESTS, {})
    if not isinstance(digests, dict) or not all(isinstance(one, str) for one in digests.values()):
        raise BadInput(f"{_DIGESTS} in {path} must be an object with a digest per file")
    return digests


def _object(values: Any, where: str) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise BadInput(f"{where} must hold a JSON object, not a {type(values).__name__}")
    return values


def _card_of(values: Any, where: str) -> ModelCard:
    values = _object(values, where)
    values.pop(_DIGESTS, None)
    known = {one.name: one for one in fields(ModelCard)}
    for name in values:
        if name not in known:
            raise UnknownName(f"entry of {where}", name, known)
    missing = [name for name in ("net", "classes", "size") if name not in values]
    if missing:
        raise BadInput(f"{where} must name the {' and the '.join(missing)} of the model")
    values = {"mean": None, "std": None, **values}
    count = values["classes"]
    if _is(count, int) and 0 < count <= _MOST_CLASSES:
        values["classes"] = [str(number) for number in range(count)]
    for name, value in values.items():
        _check(name, value, where)
    for name, kind in _LISTS.items():
        if values[name] is not None:
            values[name] = tuple(_as(kind, one) for one in values[name])
    try:
        if values.get("ablation") is not None:
            values["ablation"] = _ablation_of(values["ablation"])
        return ModelCard(**values)
    except (BadInput, UnknownName) as error:
        raise BadInput(f"{where}: {error}") from None


def _check(name: str, value: Any, where: str) -> None:
    """Raise ``BadInput`` unless an entry is of the right kind."""
    numbers = "a list of numbers, or null"
    wanted, fits = {
        "net": ("a name", isinstance(value, str)),
        "classes": (f"a list of names, or a number up to {_MOST_CLASSES}", _all(value, str)),
        "mean": (numbers, value is None or _all(value, int | float)),
        "std": (numbers, value is None or _all(value, int | float)),
        "size": ("[height, width]", _all(value, int) and len(value) == 2),
        "channels": ("1 or 3", _is(value, int)),
        "resize": ("a number of pixels, or null", value is None or _is(value, int)),
        "interpolation": ("a name", isinstance(value, str)),
        "ablation": ("an object, or null", value is None or isinstance(value, dict)),
        "facts": ("an object", isinstance(value, dict)),
    }[name]
    if not fits:
        raise BadInput(f"{name} in {where} must be {wanted}, got {json.dumps(value)[:60]}")


def _ablation_of(values: dict[str, Any]) -> Ablation:
    known = [one.name for one in fields(Ablation)]
    for name in values:
        if name not in known:
            raise UnknownName("entry of ablation", name, known)
    missing = [name for name in ("kept", "draws") if name not in values]
    if missing:
        raise BadInput(f"ablation must name {' and '.join(missing)}")
    return Ablation(**values)


def _check_ablation(ablation: Ablation, card: ModelCard) -> None:
    height, width = card.size
    if ablation.kept > height * width:
        raise BadInput(
            f"an ablation keeps at most all {height * width} pixels, got kept {ablation.kept}"
        )
    if card.mean is not None or card.std is not None:
        raise BadInput("a network that votes takes images in [0, 1]; leave out mean and std")


def _as(kind: Any, value: Any) -> Any:
    try:
        return kind(value)
    except OverflowError:  # a whole number that no float can hold
        return float("inf")


def _is(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _all(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(_is(one, kind) for one in value)
