"""``pinprick:NAME``: small models that come with the package, each with its card."""

from pathlib import Path

from pinprick.errors import UnknownName
from pinprick.model import Classifier
from pinprick.zoo import load_file
from pinprick.zoo.card import ModelCard, read_card_file
from pinprick.zoo.saved_folder import CARD, WEIGHTS

FOLDER = Path(__file__).parent / "weights"


def names() -> list[str]:
    """The models that come with the package, in alphabetical order."""
    if not FOLDER.is_dir():
        return []
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CARD}"))


def load(name: str) -> Classifier:
    if name not in names():
        raise UnknownName("shipped model", name, names())
    model = load_file.load(str(FOLDER / name / WEIGHTS))
    model.name = f"pinprick:{name}"
    return model


def card(name: str) -> ModelCard:
    """The card of the model, read without its weights."""
    if name not in names():
        raise UnknownName("shipped model", name, names())
    return read_card_file(FOLDER / name / CARD)
