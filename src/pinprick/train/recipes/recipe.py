"""A recipe of adversarial training: settings, and how the images of a step are perturbed."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pinprick.problem import Problem
from pinprick.settings import Settings
from pinprick.types import Images
from pinprick.zoo.card import Ablation


class Recipe(Settings, ABC):
    """A frozen dataclass of settings that says how training images are perturbed.

    This class holds no code for recipes to share.

    Attributes:
        name: Its name in plans and on the command line.
        title: Its name in print.
        paper: Where it was published; empty for our own.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str] = ""

    @classmethod
    def owner(cls) -> str:
        return cls.name

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, **super().describe()}

    @abstractmethod
    def perturb(self, problem: Problem, strength: float) -> Images:
        """The images to train on, in place of the problem's.

        Args:
            problem: The batch with its labels and random numbers, and the network in training.
            strength: Factor from 0 to 1 on the sizes of the attack, which ramps up.
        """

    @abstractmethod
    def probe(self, eps: float) -> "Recipe":
        """A stronger recipe, to measure robust accuracy with; ``eps`` for l-infinity."""

    def ablation(self, seed: int) -> Ablation | None:
        """How the trained network votes, with draws of this seed; None for a plain network.

        With one, ``perturb`` gives images as the base network of ``zoo.voting`` takes them.
        """
        return None

    def guarded(self) -> bool:
        """Whether an epoch is rolled back when robust accuracy collapses."""
        return False

    def careful(self) -> "Recipe | None":
        """The recipe to retry with after a collapse; None if there is no more careful one."""
        return None
