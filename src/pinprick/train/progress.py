"""How far a training has come, and what came of each epoch."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Epoch:
    """What came of one epoch.

    Attributes:
        number: The epoch, from 1.
        loss: Mean loss of its steps.
        train_accuracy: Share of the images trained on that were right, as they were trained on.
        accuracy, robust_accuracy: On some test images, clean and under the recipe's probe.
        watched: Robust accuracy on some training images, where a guard watches it.
        lr: Learning rate at its end.
        seconds: All the training so far, without what is measured at the end.
        rolled_back: Whether it was taken back, since ``watched`` collapsed.
    """

    number: int
    loss: float
    train_accuracy: float
    accuracy: float
    robust_accuracy: float
    watched: float | None
    lr: float
    seconds: float
    rolled_back: bool = False


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        epochs: Epochs done that count.
        rollbacks: Epochs taken back.
        best: The highest that ``watched`` has been.
        seconds: Time spent.
        stopped: Whether the guard has ended the training early.
        history: Every epoch, those taken back too.
    """

    epochs: int = 0
    rollbacks: int = 0
    best: float = 0.0
    seconds: float = 0.0
    stopped: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)
