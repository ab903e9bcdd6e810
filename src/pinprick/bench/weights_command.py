"""The command that brings a model's weights to this machine."""

import shlex
from pathlib import Path

from pinprick.errors import PinprickError
from pinprick.zoo.card import ModelCard
from pinprick.zoo.registry import SOURCES, card_of


def weights_command(model: str, version: str) -> str:
    """How to get the weights of ``model``: installed, fetched, or trained.

    Args:
        model: Name of the model, as ``load_model`` takes it.
        version: The version of pinprick that the model was measured with.
    """
    source, _, rest = model.partition(":")
    if source == "pinprick":
        return f"pip install pinprick=={version}"
    if source == "file":
        card = _card(model)
        where = Path(rest).expanduser()
        folder = where if where.suffix == "" else where.parent
        train = None if card is None else _training(card, folder)
        return train or f"copy the file to {rest} from where the rows were made"
    known = next((one for one in SOURCES if one.name == source), None)
    if known is not None and not known.ready:
        return known.install
    return f"pinprick check --model {shlex.quote(model)}"


def _card(model: str) -> ModelCard | None:
    try:
        return card_of(model)
    except (PinprickError, OSError):
        return None


def _training(card: ModelCard, folder: Path) -> str | None:
    """The training that a card describes; None if it does not say which it was."""
    facts = card.facts
    data = facts.get("data")
    name = data.get("name") if isinstance(data, dict) else data
    if not name or "recipe" not in facts:
        return None
    options = {
        "--data": name,
        "--net": card.net,
        "--recipe": facts["recipe"],
        "--epochs": facts.get("epochs"),
        "--seed": facts.get("seed"),
        "--out": folder,
    }
    words = [str(word) for pair in options.items() if pair[1] is not None for word in pair]
    return shlex.join(["pinprick", "train", *words])
