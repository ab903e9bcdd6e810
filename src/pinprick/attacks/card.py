"""The base class of attacks, and the card with the facts about one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

from pinprick.model import Access
from pinprick.parts.smallest_k import K
from pinprick.problem import Problem
from pinprick.settings import Settings, types_of
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What an attack with trained weights takes; anything else is refused.

    Attributes:
        model: Name of the model that the weights were trained against.
        network: The ``digest`` of that model.
        shape: Channels, height and width of the images.
        target: The only class that it can aim at; None for an untargeted attack.
    """

    model: str
    network: str
    shape: tuple[int, int, int]
    target: int | None = None


@dataclass(frozen=True, kw_only=True)
class Card:
    """The facts about an attack that tables, docs and the referee need.

    Attributes:
        name: What it is called in tables, plans and the shell.
        title: What it is called in print.
        norm: What is kept small.
        unit: What an l0 attack counts.
        k_counts: What the setting ``k`` counts where that is not the unit: "rows" of pixels.
        kind: "minimal" seeks the smallest change that fools, "budget" the best one of a given size.
        access: What it needs from the model.
        least_access: The least it can work with, if that is less than ``access``.
        targeted: Whether it can aim at a given class.
        masked: Whether it keeps to ``allowed``, a mask of where values may change.
        starts: Whether it can begin at the result of an attack on another model.
        random: Whether the seed matters.
        eight_bit: Whether images must lie on the 8-bit grid.
        inputs: The model and the images that it takes, where weights were trained for them; None
            for any.
        paper: Where it was published; empty for our own.
        max_forwards, max_backwards: Most passes per image under these settings; None if they
            depend on the model.
        revision: Rises when the same settings may give other images.
        differences: How it differs from its paper or its authors' code, one sentence each.
    """

    name: str
    title: str
    norm: Literal["l0", "l1", "l2", "linf"]
    unit: Literal["elements", "pixels"] | None = None
    k_counts: str | None = None
    kind: Literal["minimal", "budget"]
    access: Access
    least_access: Access | None = None
    targeted: bool
    masked: bool = False
    starts: bool = False
    random: bool = False
    eight_bit: bool = False
    inputs: Inputs | None = None
    paper: str
    max_forwards: int | None = None
    max_backwards: int | None = None
    revision: int = 1
    differences: tuple[str, ...] = ()

    def at_k(
        self,
        k: K,
        rounds: int,
        *,
        forwards: int,
        backwards: int = 0,
        unit: Literal["elements", "pixels"] | None = None,
    ) -> "Card":
        """The card of a fixed-k attack under its settings.

        Args:
            k: The setting; with "smallest" the attack is minimal and runs for several k.
            rounds: Number of these at most.
            forwards: Most forward passes per image at one k.
            backwards: Most backward passes per image at one k.
            unit: What k counts, if not what the card says.
        """
        seeks = k == "smallest"
        times = rounds if seeks else 1
        return replace(
            self,
            unit=unit or self.unit,
            kind="minimal" if seeks else "budget",
            max_forwards=times * forwards,
            max_backwards=times * backwards,
        )


class Attack(Settings, ABC):
    """A frozen dataclass of settings that can be called on a problem.

    This class holds no code for attacks to share. ``presets`` are other settings than the paper's
    by name, for ``build``; "quick" takes about 1000 passes per image.
    """

    card: ClassVar[Card]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def owner(cls) -> str:
        """What messages call the attack."""
        return cls.card.name

    @classmethod
    def full_name(cls) -> str:
        """What ``build`` and ``--attack`` take: the card's name, or ``module:Class`` elsewhere."""
        if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
            return cls.card.name
        return f"{cls.__module__}:{cls.__qualname__}"

    def describe(self) -> dict[str, Any]:
        """Name and settings as plain data, with every default spelled out; ``build`` reads it."""
        return {"name": self.full_name(), **super().describe()}

    def facts(self) -> Card:
        """The card under these settings."""
        return self.card

    @abstractmethod
    def __call__(self, problem: Problem) -> Images:
        """One image in [0, 1] per image of the problem; the referee measures it."""


def norm_and_units(cls: type[Attack]) -> str:
    """What an attack keeps small, as in "l0, elements or pixels"; the default unit is first."""
    card = cls().facts()
    if card.unit is None:
        return card.norm
    choices = get_args(types_of(cls).get("unit"))
    return f"{card.norm}, {' or '.join(dict.fromkeys((card.unit, *choices)))}"
