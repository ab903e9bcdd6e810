"""Passes of each image, told apart from others: those of a start, or of a stage of an attack."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from pinprick.types import Counts, Rows


@dataclass(frozen=True, eq=False)
class Passes:
    """Forward and backward passes of each image."""

    forwards: Counts
    backwards: Counts

    def __getitem__(self, rows: Rows | slice) -> "Passes":
        return Passes(self.forwards[rows], self.backwards[rows])

    def to(self, device: torch.device | str) -> "Passes":
        return Passes(self.forwards.to(device), self.backwards.to(device))

    @staticmethod
    def join(parts: Sequence["Passes"]) -> "Passes":
        """Those of several batches, in order."""
        return Passes(
            torch.cat([part.forwards for part in parts]),
            torch.cat([part.backwards for part in parts]),
        )
