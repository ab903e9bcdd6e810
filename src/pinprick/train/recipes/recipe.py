"""What a recipe of adversarial training is: settings, and the images that a step is made on."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from pinprick.problem import Problem
from pinprick.settings import Settings
from pinprick.types import Images


class Recipe(Settings, ABC):
    """A frozen dataclass of settings that says what the network is trained on.

    This class holds no code for recipes to share.

    Attributes:
        name: What it is called in plans and in the shell.
        title: What it is called in print.
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
            problem: The batch, its labels and its random numbers; asks the network as it stands.
            strength: From 0 to 1, what sizes are multiplied by while they are ramped up.
        """

    @abstractmethod
    def probe(self, eps: float) -> "Recipe":
        """A stronger one, whose images robust accuracy is watched on; ``eps`` for l-infinity."""

    def guarded(self) -> bool:
        """Whether the network is to be rolled back when its robust accuracy collapses."""
        return False

    def careful(self) -> "Recipe | None":
        """What to go on with after a collapse; None if there is nothing more careful."""
        return None
