"""A trained generator in a folder: ``generator.safetensors`` with ``card.json`` beside it.

The card says which model and which images the generator is for, how it is built, and what was
measured. It lists the SHA-256 of the weights. Weights are float32 or float16.
"""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from pinprick.attacks.card import Inputs
from pinprick.attacks.egs_tssa.generator import Generator
from pinprick.errors import BadInput, UnknownName, one_line
from pinprick.files import atomic_write, sha256, write_text
from pinprick.json_text import read_json_file
from pinprick.zoo.weights import Store, read_safetensors, to_stored

CARD = "card.json"
WEIGHTS = "generator.safetensors"
_SHIPPED = Path(__file__).parent / "weights"
_DIGEST = "sha256"  # an entry of card.json that a card in memory does not have
_FLOATS, _WORDS = ("eps", "keep"), ("attack", "model", "network", "layer")


@dataclass(frozen=True, kw_only=True)
class GeneratorCard:
    """What a generator is for and how it is built.

    Attributes:
        model: Name of the model that it was trained against.
        network: The digest of that model's weights.
        layer: The layer whose feature map ranks the blocks.
        channels, height, width: The images that it takes.
        target: The class to reach; None for an untargeted generator.
        eps: Most that an element may change.
        base: Channels after the first convolution.
        residual_blocks: Number of residual blocks.
        block: Side of a block in pixels.
        keep: Share of the blocks that may change; 1 for all, without a pass through the model.
        attack: The attack that it is for.
        facts: How it was trained and what was measured, as plain JSON.
    """

    model: str
    network: str
    layer: str
    channels: int
    height: int
    width: int
    target: int | None
    eps: float
    base: int
    residual_blocks: int
    block: int
    keep: float
    attack: str = "egs_tssa"
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> Inputs:
        """What the attack takes with these weights."""
        return Inputs(
            model=self.model,
            network=self.network,
            shape=(self.channels, self.height, self.width),
            target=self.target,
        )

    def build(self) -> Generator:
        """The generator with fresh weights."""
        return Generator(self.channels, self.base, self.residual_blocks, self.eps)


def shipped_generators() -> list[str]:
    """The generators that come with the package."""
    return sorted(path.parent.name for path in _SHIPPED.glob(f"*/{CARD}"))


def find_folder(weights: str) -> Path:
    """The folder that ``weights`` names: a shipped generator, or a path."""
    if weights in shipped_generators():
        return _SHIPPED / weights
    folder = Path(weights).expanduser()
    if (folder / CARD).is_file():
        return folder
    if "/" in weights or folder.exists():
        raise BadInput(
            f"{weights} holds no generator: there is no {CARD} in it; "
            "`pinprick train-generator` makes one"
        )
    raise UnknownName("generator", weights, shipped_generators())


def read_generator_card(folder: Path) -> tuple[GeneratorCard, str]:
    """The card in ``folder``, and the SHA-256 of its weights."""
    path = folder / CARD
    held = read_json_file(path, finite=True)
    known = {one.name for one in fields(GeneratorCard)}
    if not isinstance(held, dict) or held.get("attack") != "egs_tssa":
        raise BadInput(f"{path} is no card of a generator of egs_tssa")
    digest = held.pop(_DIGEST, "")
    missing = sorted(known - {"attack", "facts"} - held.keys())
    if missing or not isinstance(digest, str):
        raise BadInput(f"{path} lacks {', '.join(missing) or _DIGEST}")
    for name, value in held.items():
        if name not in known:
            raise UnknownName(f"entry of {path}", name, known)
        _check(name, value, path)
    return GeneratorCard(**held), digest


def _check(name: str, value: Any, path: Path) -> None:
    if name == "facts":
        fits = isinstance(value, dict)
    elif name in _WORDS:
        fits = isinstance(value, str)
    elif name in _FLOATS:
        fits = isinstance(value, (int, float)) and 0 < value <= 1
    elif name == "target" and value is None:
        fits = True
    else:
        least = 0 if name in ("target", "residual_blocks") else 1
        fits = type(value) is int and least <= value <= 4096
    if not fits:
        raise BadInput(f"{name} in {path} cannot be {json.dumps(value)[:60]}")


def load_generator(weights: str, digest: str) -> tuple[GeneratorCard, Generator]:
    """Card and generator, in evaluation mode; ``BadInput`` unless the SHA-256 is ``digest``."""
    folder = find_folder(weights)
    card, listed = read_generator_card(folder)
    path = folder / WEIGHTS
    found = sha256(path)
    if found != listed or found != digest:
        other = "its card lists" if found != listed else "these settings name"
        raise BadInput(f"{path} is not the file that {other}: its SHA-256 is {found}")
    state, _ = read_safetensors(path)
    with torch.device("meta"):  # no random numbers are drawn for weights that are replaced
        generator = card.build()
    try:
        generator.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise BadInput(f"{path} does not fit its card ({one_line(error)})") from None
    return card, generator.float().eval().requires_grad_(False)


def save_generator(
    generator: Generator, card: GeneratorCard, folder: Path, *, store: Store = "float32"
) -> None:
    """Write weights and card to ``folder``."""
    state = to_stored(generator.state_dict(), store)
    with atomic_write(folder / WEIGHTS, flush=True) as temporary:
        save_file(state, temporary, {"format": "pt"})
    text = json.dumps(asdict(card) | {_DIGEST: sha256(folder / WEIGHTS)}, indent=2, allow_nan=False)
    write_text(folder / CARD, text + "\n")
