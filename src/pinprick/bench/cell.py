"""One cell of a benchmark: all that decides its rows, and the key made from that."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from pinprick.errors import BadInput
from pinprick.speed_names import Speed

_DIGITS = 32  # hexadecimal digits of a key
# later than the first stores: keys must not change
_ADDED = {"max_passes": None, "speed": "exact", "labels_by_number": False}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One attack on some images of one model, with one goal and one seed.

    Attributes:
        attack: The attack as plain data, with every setting; ``build`` reads it.
        revision: The revision of the attack.
        code: SHA-256 of the file of an attack of the user's own; empty for those of the package.
        model: Name of the model.
        weights: SHA-256 of its weights.
        data: The subset of a dataset, as in "cifar10/test[0:100]".
        data_hash: SHA-256 of the images and labels of this cell.
        first: Position of the first image in the subset.
        last: Position after the last image.
        goal: "untargeted", "least_likely", "random", or a class such as "class 3".
        seed: The seed of the attack, and of random targets.
        batch_size: Images per batch.
        threads: Number of CPU threads.
        precision: Type of the numbers: "float32", or "tf32" in the convolutions of a GPU.
        device: Kind of device: "cpu" or "cuda".
        max_forwards: Most forward passes per image; None for no limit.
        max_backwards: Most backward passes per image; None for no limit.
        max_passes: Most forward and backward passes per image, added up; None for no limit.
        speed: How the model is queried, as in ``run_attack``.
        victims: Name and weights' SHA-256 of each model that judges the adversarial images.
        dense: Whether perturbations of many elements are stored, too.
        labels_by_number: Whether labels are the model's class numbers, whatever the names.
    """

    attack: Mapping[str, Any]
    revision: int
    code: str = ""
    model: str
    weights: str
    data: str
    data_hash: str
    first: int
    last: int
    goal: str = "untargeted"
    seed: int = 0
    batch_size: int = 32
    threads: int = 1
    precision: str = "float32"
    device: str = "cpu"
    max_forwards: int | None = None
    max_backwards: int | None = None
    max_passes: int | None = None
    speed: Speed = "exact"
    victims: tuple[tuple[str, str], ...] = ()
    dense: bool = False
    labels_by_number: bool = False

    def __post_init__(self) -> None:
        settings = json.loads(json.dumps(self.attack))  # lists for tuples, as in a file
        object.__setattr__(self, "attack", settings)

    def __len__(self) -> int:
        """The number of images."""
        return self.last - self.first

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> str:
        """The name of the cell: a hash of all its fields."""
        return hashlib.sha256(canonical(self.plain()).encode()).hexdigest()[:_DIGITS]

    @property
    def title(self) -> str:
        """What the cell is, for people: attack, model, images, goal and seed."""
        goal = "" if self.goal == "untargeted" else f" to {self.goal.replace('_', ' ')}"
        return (
            f"{self.attack['name']} on {self.model}, {self.data} "
            f"{self.first}:{self.last}{goal}, seed {self.seed}"
        )

    def plain(self) -> dict[str, Any]:
        """All fields, as JSON can hold them; without defaults of ``_ADDED``."""
        every = {**asdict(self), "victims": [list(victim) for victim in self.victims]}
        return {
            name: value
            for name, value in every.items()
            if name not in _ADDED or value != _ADDED[name]
        }

    @classmethod
    def from_plain(cls, plain: Any) -> "Cell":
        """The cell that ``plain`` describes; ``BadInput`` if it describes none."""
        known = {field.name for field in fields(cls)}
        if not isinstance(plain, Mapping) or {*plain, *_ADDED} != known:
            raise BadInput("this is not a cell as pinprick writes it")
        victims = tuple((name, weights) for name, weights in plain["victims"])
        return cls(**{**plain, "victims": victims})


def canonical(plain: Any) -> str:
    """Plain data as the one JSON text that it has here."""
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))
