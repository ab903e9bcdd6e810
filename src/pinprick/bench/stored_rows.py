"""The rows of a batch as they are stored, compared with what is found here.

A prediction is within the numerical noise where its two highest logits are no further apart than
the noise. Another machine may predict otherwise there, so a difference proves nothing.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pinprick.bench.cache import LabelledImages
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import NO_VICTIMS
from pinprick.bench.rows import change_sizes, is_dense, rebuild_images
from pinprick.goal import Goal
from pinprick.types import Images, Labels, Logits, Mask, PerImage

if TYPE_CHECKING:
    from pyarrow import Table

_RELATIVE = 1e-9  # norms are sums in float64, whose order may differ between machines
_MOST_NOISE = 0.02  # of the range of the logits; published rows in TF32 have up to 0.008


@dataclass(frozen=True)
class Finding:
    """A value of a row that is another one here, or a margin within the numerical noise.

    Attributes:
        cell: The cell of the row.
        index: Index of the image in the subset.
        column: The column; a victim stands under its name.
        stored: The value in the store.
        found: The value here.
        within_noise: Whether the numerical noise may be the reason.
    """

    cell: Cell
    index: int
    column: str
    stored: Any
    found: Any
    within_noise: bool = False

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {**vars(self), "cell": self.cell.key}


@dataclass(frozen=True, eq=False)
class CleanBatch:
    """One batch of clean images, with the logits that all cells on these images share.

    Attributes:
        given: The images, labels and ids.
        logits: The logits of the attacked model.
        victims: The logits of each victim; None for one that is not there.
    """

    given: LabelledImages
    logits: Logits
    victims: list[Logits | None]


class StoredRows:
    """The rows of a batch, as they are stored, to compare with what is found here.

    Args:
        cell: The cell.
        first: Index of the first row.
        table: The rows.
        images: The clean images.

    Attributes:
        cell: The cell.
        adv: The adversarial images, on the CPU.
        rebuilt: Which of them could be rebuilt.
        errors: Number of rows with an error.
        unsaved: Number of rows whose perturbation was not saved.
    """

    def __init__(self, cell: Cell, first: int, table: "Table", images: Images) -> None:
        self.cell, self._first, self._images = cell, first, images
        self._stored = {name: table.column(name).to_pylist() for name in _READ}
        self._stored["positions"] = table.column("positions").is_valid().to_pylist()
        self.errors = sum(error != "" for error in self._stored["error"])
        self.unsaved = self._stored["positions"].count(False) - self.errors
        self._judged = torch.tensor([not error for error in self._stored["error"]])
        stored_noise = [one or 0.0 for one in self._stored["noise"]]
        self._noise = torch.tensor(stored_noise, dtype=torch.float64)
        self.adv, rebuilt = rebuild_images(table, images)
        self.rebuilt = rebuilt & self._judged
        self._sizes = {name: size.tolist() for name, size in change_sizes(images, self.adv).items()}

    def __len__(self) -> int:
        return len(self._judged)

    def allow_noise(self, noise: float | PerImage) -> None:
        """Raise the noise of all rows to this at least."""
        self._noise = torch.fmax(self._noise, torch.as_tensor(noise, dtype=torch.float64))

    def allow_for_another_device(self, goal: Goal, logits: Logits) -> None:
        """Raise the noise to the differences of margins between two kinds of devices.

        They are largest for rows in TF32. The noise is ten times the median of the differences
        from the stored margins, so that a few rows that were changed do not raise it.
        """
        stored = torch.tensor([math.nan if one is None else one for one in self._stored["margin"]])
        differences = (goal.margin(logits.double()) - stored.double()).abs()
        known = differences[self.rebuilt & differences.isfinite()]
        if len(known):
            self.allow_noise(10 * known.median().item())

    def limit_noise(self, logits: Logits) -> None:
        """Lower the noise to what arithmetic can do: noise and margins of a file may be made up."""
        ranges = (logits.amax(dim=1) - logits.amin(dim=1)).double()
        known = ranges[ranges.isfinite()]
        if len(known):
            self._noise = self._noise.clamp_max(_MOST_NOISE * known.median().item())

    def goal(self, clean: CleanBatch, targets: Labels | None) -> Goal:
        """The goal of each row, with the stored target where there is such a class.

        A target that should be another one is a finding of its own.
        """
        if targets is None:
            return Goal(clean.given.labels)
        given = zip(self._stored["target"], targets.tolist(), strict=True)
        classes = range(clean.logits.shape[1])
        chosen = [stored if stored in classes else found for stored, found in given]
        return Goal(clean.given.labels, torch.tensor(chosen))

    def identity(self, clean: CleanBatch, targets: Labels | None) -> Iterator[Finding]:
        """Which image it is, with which label and target."""
        count = len(self._judged)
        wanted = [None] * count if targets is None else targets.tolist()
        everything = torch.ones_like(self._judged)
        yield from self._compare("cell", [self.cell.key] * count, everything)
        yield from self._compare("index", range(self._first, self._first + count), everything)
        yield from self._compare("label", clean.given.labels.tolist(), self._judged)
        lowest = None
        if self.cell.goal == "least_likely":
            lowest = -clean.logits.scatter(1, clean.given.labels.unsqueeze(1), torch.inf)
        yield from self._compare("target", wanted, self._judged, lowest)

    def prediction(
        self, column: str, logits: Logits, *, adversarial: bool = False
    ) -> Iterator[Finding]:
        """The predicted classes; null where the logits are not finite."""
        finite = logits.isfinite().all(dim=1).tolist()
        answers = zip(logits.argmax(dim=1).tolist(), finite, strict=True)
        classes = [answer if known else None for answer, known in answers]
        rows = self.rebuilt if adversarial else self._judged
        return self._compare(column, classes, rows, logits)

    def flag(
        self, column: str, found: Mask, logits: Logits, *, adversarial: bool = False
    ) -> Iterator[Finding]:
        """What follows from the predictions."""
        rows = self.rebuilt if adversarial else self._judged
        return self._compare(column, found.tolist(), rows, logits)

    def victim(self, column: str, number: int, logits: Logits, noise: float) -> Iterator[Finding]:
        """The predictions of one victim; rows that say why they lack them are left out."""
        count = len(self.cell.victims)
        stored = [
            row[number] if row is not None and len(row) == count else None
            for row in self._stored[column]
        ]
        noted = [NO_VICTIMS in (one or "") for one in self._stored["remark"]]
        missing = [row is None for row in self._stored[column]]
        rows = self._judged if column == "victims_clean" else self.rebuilt
        rows = rows & ~(torch.tensor(noted) & torch.tensor(missing))
        name = f"{column} {self.cell.victims[number][0]}"
        limit = torch.full_like(self._noise, noise)
        classes = logits.argmax(dim=1).tolist()
        return self._compare(name, classes, rows, logits, noise=limit, stored=stored)

    def sizes(self) -> Iterator[Finding]:
        """Counts and norms of the change; null where the attack failed."""
        for name, sizes in self._sizes.items():
            pairs = zip(sizes, self._stored["success"], strict=True)
            wanted = [size if success else None for size, success in pairs]
            yield from self._compare(name, wanted, self.rebuilt)

    def perturbation(self) -> Iterator[Finding]:
        """Perturbations that do not fit, and those that should have been saved."""
        elements = self._images[0].numel()
        for row in (self._judged & ~self.rebuilt).nonzero().flatten().tolist():
            count = self._stored["elements"][row]
            sparse = count is not None and not is_dense(count, elements)
            if self._stored["positions"][row]:
                yield self._finding(row, "positions", "saved", "do not fit the image")
            elif sparse or self.cell.dense:
                yield self._finding(row, "positions", None, "should have been saved")

    def narrow_margins(self, goal: Goal, logits: Logits) -> Iterator[Finding]:
        """The margins within the numerical noise, whether or not the prediction is the same."""
        margins = goal.margin(logits.double()).tolist()
        for row in (self._close(logits) & self.rebuilt).nonzero().flatten().tolist():
            stored = self._stored["margin"][row]
            yield self._finding(row, "margin", stored, margins[row], within_noise=True)

    def _compare(
        self,
        column: str,
        found: Sequence[Any],
        rows: Mask,
        logits: Logits | None = None,
        *,
        noise: PerImage | None = None,
        stored: Sequence[Any] | None = None,
    ) -> Iterator[Finding]:
        """The rows in which a column differs; doubtful where the logits that decide are close."""
        stored = self._stored[column] if stored is None else stored
        if stored == list(found):  # nearly always, and much faster than row by row
            return
        pairs = enumerate(zip(stored, found, strict=True))
        other = [row for row, (old, new) in pairs if old != new]
        doubtful = None if logits is None else self._close(logits, noise)
        for row in other:
            if rows[row] and not _agree(stored[row], found[row]):
                within = doubtful is not None and bool(doubtful[row])
                yield self._finding(row, column, stored[row], found[row], within_noise=within)

    def _finding(
        self, row: int, column: str, stored: Any, found: Any, *, within_noise: bool = False
    ) -> Finding:
        return Finding(self.cell, self._first + row, column, stored, found, within_noise)

    def _close(self, logits: Logits, noise: PerImage | None = None) -> Mask:
        """Rows whose two highest logits are within the noise of each other."""
        noise = self._noise if noise is None else noise
        top = logits.double().topk(min(2, logits.shape[1]), dim=1).values
        return (top[:, 0] - top[:, -1] <= noise) & (noise > 0)


_READ = (
    *("cell", "index", "label", "target", "clean_class", "adversarial_class", "correct", "skipped"),
    *("success", "success_8bit", "pixels", "elements", "l1", "l2", "linf", "margin", "noise"),
    *("victims", "victims_clean", "remark", "error"),
)


def _agree(stored: Any, found: Any) -> bool:
    if isinstance(stored, float) and isinstance(found, float):
        return math.isclose(stored, found, rel_tol=_RELATIVE)
    return bool(stored == found)
