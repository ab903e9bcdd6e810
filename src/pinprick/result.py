"""The result of an attack: images before and after, their logits, the cost, and the norms."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from pinprick.batch_rows import BatchRows
from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.metrics.needed import Numbers
from pinprick.metrics.robust_accuracy import read_budgets, robust_accuracy, robust_accuracy_curve
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier
from pinprick.trace import Passes, Trace
from pinprick.types import Counts, Images, Logits, Mask, PerImage, Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Failure(StrEnum):
    """Why an attack failed on an image; the value is the sentence that is shown."""

    NOTHING_MAY_CHANGE = "nothing may change: allowed is False everywhere"
    NOT_FINITE = "the model's logits are not finite"
    OUT_OF_BUDGET = "out of budget"
    OUT_OF_TIME = "out of time"
    SPENT_IN_BFLOAT16 = "the search in bfloat16 spent the passes; use speed=exact"
    NO_GRADIENT = "the model's gradient was zero or not finite"
    ONLY_IN_ITS_BATCH = (
        "fools in its batch, but not alone: the margin is within the numerical noise"
    )
    NO_ANSWER = "the model did not answer"
    NOTHING_TRIED = "the attack changed nothing: eps or a step is too small for its other settings"
    NOT_FOUND = "not found"

    @classmethod
    def of(cls, remark: str) -> "Failure | None":
        """The reason that a remark gives; a sentence of a remote model's own is ``NO_ANSWER``."""
        if not remark:
            return None
        try:
            return cls(remark)
        except ValueError:
            return cls.NO_ANSWER


Computed = TypeVar("Computed", bound=Tensor)


class once(Generic[Computed]):
    """A property that is computed on first use and stored with its owner.

    Every caller gets a copy, so that ``mask = result.success; mask &= other`` changes no result;
    ``functools.cached_property`` would hand out the stored tensor itself.
    """

    def __init__(self, work: Callable[[Any], Computed]) -> None:
        self._work, self._key = work, f"_once_{work.__name__}"
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "once[Computed]": ...

    @overload
    def __get__(self, owner: object, kind: type) -> Computed: ...

    def __get__(self, owner: object | None, kind: type) -> "once[Computed] | Computed":
        if owner is None:
            return self
        stored = vars(owner)
        if self._key not in stored:
            stored[self._key] = self._work(owner)
        copy: Computed = stored[self._key].clone()
        return copy


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackResult(BatchRows):
    """The result of one attack on some images, one row per image.

    The referee measured what is stored. Everything else is computed from it, once, so do not change
    its tensors in place: ``dataclasses.replace`` gives another result. Changes are counted in two
    units: an *element* is one channel value; a *pixel* is changed where any of its channels is.

    Attributes:
        images: The clean images, in [0, 1], of shape (batch, channel, height, width).
        adversarial: What the attack returned, in [0, 1].
        goal: The goal of each image.
        clean_logits: The logits of ``images``.
        adversarial_logits: The logits of ``adversarial``.
        rounded_logits: The logits of ``adversarial`` rounded to 8-bit values.
        forwards: Forward passes per image, of the attack itself.
        backwards: Backward passes per image, of the attack itself.
        out_of_budget: Images that were refused passes beyond the limit.
        out_of_time: Images that were refused passes, or never attacked, after the time limit.
        ids: The number of each image; its random stream depends on it.
        batch_size: The size of the batch that each image was attacked in.
        remarks: Why each image failed: the text of a ``Failure``, or the error of a remote model.
            Empty where it did not fail.
        seconds: Time of the attack for all images together. ``result[rows]`` has the share of these
            images.
        peak_memory: Peak GPU memory in bytes; None on a CPU.
        speed: How the model was queried: ``speed``, a ``remark`` where that was not possible,
            ``recordings`` and ``recording_seconds``. ``confirmations`` counts candidates that were
            queried again in float32, which ``forwards`` does not count. None for "exact" unless
            there is a remark.
        sent: What the attack and the referee sent to a remote model, under the names of
            ``pinprick.scores.service.Sent``. None for any other model.
        generator_forwards: Forward passes per image through a network of the attack's own, not
            included in ``forwards``. None where the attack has no such network.
        stages: Passes per stage, by name, where the attack has several.
        found_by: The stage that found the best image; empty text otherwise.
        start: Passes of the attack that made the start, not included in ``forwards`` and
            ``backwards``. None where the attack began at the clean images.
        trace: The best so far of each image against its passes; None unless requested.
        unsettled: Upper bound on the number of changed units that could still be removed, per
            polished image. 0 once polishing has finished, -1 where there was nothing to polish.
            None if the result was not polished.
        noise: How far the margin of each image may change with the batch it is in, in logits; 0 for
            exact models. None where it was not measured, as for remote models.
        attack: Name and settings of the attack.
        model: Name of the model.
        model_from: The name that ``load_model`` takes; empty text if that is not known.
        seed: The seed of the random streams.
        complete: False where the run was stopped before all of its images were attacked.
    """

    images: Images
    adversarial: Images
    goal: Goal
    clean_logits: Logits
    adversarial_logits: Logits
    rounded_logits: Logits
    forwards: Counts
    backwards: Counts
    out_of_budget: Mask
    out_of_time: Mask
    ids: Counts
    batch_size: Counts
    remarks: tuple[str, ...]
    seconds: float
    peak_memory: int | None = None
    speed: dict[str, Any] | None = None
    sent: dict[str, int] | None = None
    generator_forwards: Counts | None = None
    stages: dict[str, Passes] = field(default_factory=dict)
    found_by: tuple[str, ...] = ()
    start: Passes | None = None
    trace: Trace | None = None
    unsettled: Counts | None = None
    noise: PerImage | None = None
    attack: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    model_from: str = ""
    seed: int = 0
    complete: bool = True

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        """One line: the attack, the model, how many images, how many of them were fooled."""
        shape = " x ".join(map(str, self.images.shape[1:]))
        fooled, correct = int((self.success & self.correct).sum()), int(self.correct.sum())
        return (
            f"<AttackResult: {self.attack.get('name', 'unnamed attack')} on "
            f"{self.model or 'unnamed model'}, {len(self)} images of {shape}, "
            f"fooled {fooled} of {correct} correct ones>"
        )

    @once
    def success(self) -> Mask:
        """The adversarial image meets the goal, whether or not the clean one did."""
        return self.goal.met(self.adversarial_logits)

    @once
    def skipped(self) -> Mask:
        """The clean image meets the goal, so it was not attacked."""
        return self.goal.met(self.clean_logits)

    @once
    def correct(self) -> Mask:
        """The clean image is classified correctly; the fooling rate is over these."""
        right = self.clean_logits.argmax(dim=1) == self.goal.labels
        return right & self.clean_logits.isfinite().all(dim=1)

    @once
    def wrong(self) -> Mask:
        """The clean image has finite logits and is misclassified."""
        return ~self.correct & self.clean_logits.isfinite().all(dim=1)

    @once
    def survives_8bit(self) -> Mask:
        """The goal is still met after rounding to 8-bit values, as in a PNG."""
        return self.goal.met(self.rounded_logits)

    @once
    def within_noise(self) -> Mask:
        """The margin is so small that another batch size may change the prediction."""
        margin = self.goal.margin(self.adversarial_logits.double())
        noise = torch.zeros_like(margin) if self.noise is None else self.noise
        return (margin.abs() <= noise) & (noise > 0)

    @once
    def beaten_by_scores(self) -> Mask:
        """A search by scores alone found fewer units than all searches with gradients.

        Gradients may be masked there, or the searches that use them too weak.
        """
        beaten = torch.zeros_like(self.out_of_budget)
        for name, passes in self.stages.items():
            won = torch.tensor([found == name for found in self.found_by], device=beaten.device)
            beaten |= won & (passes.backwards == 0) & (self.backwards > 0)
        return beaten

    @property
    def failures(self) -> tuple[Failure | None, ...]:
        """Why each image failed; None where it did not."""
        return tuple(Failure.of(remark) for remark in self.remarks)

    @property
    def fooling_rate(self) -> float:
        """Share of correctly classified images that end up meeting the goal."""
        return self.success[self.correct].double().mean().item()

    @overload
    def robust_accuracy(self, budgets: int, unit: Unit = ...) -> float: ...

    @overload
    def robust_accuracy(self, budgets: Sequence[int], unit: Unit = ...) -> list[float]: ...

    def robust_accuracy(
        self, budgets: int | Sequence[int], unit: Unit = "pixels"
    ) -> float | list[float]:
        """Share of images that stay correct when at most ``budgets`` units change.

        An image without finite clean logits, as where a remote model failed, is not correct.

        Args:
            budgets: A number of units, or several.
            unit: Whether "pixels" or "elements" are counted.

        Returns:
            A share per budget, or one share where ``budgets`` is one number.
        """
        shares = robust_accuracy(self._needed_or_wrong(unit), read_budgets(budgets))
        return shares[0] if np.ndim(budgets) == 0 else shares

    def robust_accuracy_curve(self, unit: Unit = "pixels") -> list[tuple[int, float]]:
        """The budgets at which the robust accuracy falls, with its value from there on."""
        return robust_accuracy_curve(self._needed_or_wrong(unit))

    def _needed_or_wrong(self, unit: Unit) -> Numbers:
        """Needed units, 0 where the clean image counts as an error."""
        check_unit(unit)
        needed = self.needed_pixels if unit == "pixels" else self.needed_elements
        counted: Numbers = needed.masked_fill(~self.correct, 0.0).cpu().numpy()
        return counted

    @property
    def delta(self) -> Images:
        """What was added to each image: ``adversarial - images``."""
        return self.adversarial - self.images

    @once
    def l0_elements(self) -> Counts:
        """Number of changed elements, by exact comparison."""
        return (self.adversarial != self.images).flatten(1).sum(dim=1)

    @once
    def l0_pixels(self) -> Counts:
        """Number of changed pixels, by exact comparison."""
        return (self.adversarial != self.images).any(dim=1).flatten(1).sum(dim=1)

    @once
    def l0_elements_percent(self) -> PerImage:
        """Changed elements as a percentage of the elements of an image."""
        return 100 * self.l0_elements.double() / self.images[:1].numel()

    @once
    def l0_pixels_percent(self) -> PerImage:
        """Changed pixels as a percentage of the pixels of an image."""
        return 100 * self.l0_pixels.double() / self.images[:1, :1].numel()

    @once
    def needed_elements(self) -> PerImage:
        """``l0_elements`` where the goal was met, infinity elsewhere; statistics use this."""
        return self.l0_elements.double().masked_fill(~self.success, torch.inf)

    @once
    def needed_pixels(self) -> PerImage:
        """``l0_pixels`` where the goal was met, infinity elsewhere; statistics use this."""
        return self.l0_pixels.double().masked_fill(~self.success, torch.inf)

    @once
    def l1(self) -> PerImage:
        """Sum of the absolute changes of each image."""
        return self.delta.flatten(1).abs().sum(dim=1)

    @once
    def l2(self) -> PerImage:
        """Euclidean norm of the change of each image."""
        return self.delta.flatten(1).square().sum(dim=1).sqrt()

    @once
    def linf(self) -> PerImage:
        """Largest absolute change of each image."""
        return self.delta.flatten(1).abs().amax(dim=1)

    def __getitem__(self, chosen: Rows | slice | int | list[int]) -> "AttackResult":
        """The result of some of its images, or of one.

        ``seconds`` is their share of the time. What else all images share stays the same.
        """
        if isinstance(chosen, int):
            if not -len(self) <= chosen < len(self):
                raise IndexError(f"the result has {len(self)} images; there is no image {chosen}")
            chosen = slice(chosen % len(self), chosen % len(self) + 1)
        if isinstance(chosen, slice):  # copied, so that one image does not hold on to all others
            chosen = list(range(len(self))[chosen])
        if isinstance(chosen, list):
            chosen = torch.tensor(chosen, dtype=torch.long)
        some = super().__getitem__(chosen.to(self.images.device))
        return replace(some, seconds=self.seconds * self._share_of_time(some))

    def _share_of_time(self, some: "AttackResult") -> float:
        """By attacked images, as rows have it; by images where none was attacked."""
        if self._attacked:
            return some._attacked / self._attacked
        return len(some) / len(self) if len(self) else 1.0

    @cached_property
    def _attacked(self) -> int:
        return int((~self.skipped).sum()) if len(self) else 0

    def __iter__(self) -> Iterator["AttackResult"]:
        """Each image by itself, as a batch of one."""
        return (self[row] for row in range(len(self)))

    # The report is imported when it is asked for, since it is made from results.

    def rows(self, model: Classifier | None = None) -> list[dict[str, Any]]:
        """One dict of plain values per image, as for ``pandas.DataFrame(result.rows())``.

        ``needed_pixels`` and ``needed_elements`` are infinite where the goal was not met. Any other
        value that is not finite or was not measured is None.

        Args:
            model: The attacked model, for the names of the classes.
        """
        from pinprick.report.result_tables import flat_rows

        return flat_rows(self, model)

    def to_csv(self, path: str | Path, model: Classifier | None = None) -> None:
        """Write ``rows(model)`` as a CSV file with a header; None is an empty cell."""
        from pinprick.report.result_tables import flat_rows, write_csv

        write_csv(flat_rows(self, model), path)

    def save_pngs(self, folder: str | Path) -> list[Path]:
        """Write every adversarial image to ``folder`` as a PNG, and the list images.csv.

        A PNG holds 8-bit values, and some images fool only before they are rounded. The column
        ``fools`` of the list is True for images that fool as they are in the file. Files are called
        0000.png, 0001.png, … in the order of the result. ``--data csv:FOLDER/images.csv`` reads
        the list.
        """
        from pinprick.report.result_pictures import save_pngs

        return save_pngs(self, folder)

    def plot(self, model: Classifier | None = None, *, most: int = 8) -> "Figure":
        """A matplotlib figure with one line per image: before, what changed, after.

        Args:
            model: The attacked model, for the names of the classes.
            most: Draw the first ``most`` images; ``result[rows].plot()`` draws others.
        """
        from pinprick.report.result_pictures import plot_result

        return plot_result(self, model, most=most)

    def _repr_html_(self) -> str:
        """For notebooks: a summary, and the first images with changed pixels marked."""
        from pinprick.report.notebook_html import result_html

        return result_html(self)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: what was measured, not what is computed from it."""
        return self.attributes()


def join(results: Sequence[AttackResult]) -> AttackResult:
    """One result of several, in order; times and what was sent are added up.

    What all images share, such as the attack and its settings, comes from the first result that
    has images. One without images adds its time, its memory and what it sent.
    """
    if not results:
        raise BadInput("there is no result to join: the list is empty")
    parts = [result for result in results if len(result)] or results[:1]
    names = dict.fromkeys(name for part in parts for name in part.stages)
    return replace(
        AttackResult.join([_with_stages(part, names) for part in parts]),
        complete=all(result.complete for result in results),
        **cost_together(results),
    )


def cost_together(results: Sequence[AttackResult]) -> dict[str, Any]:
    """The fields of a result that say what several cost: times and what was sent are added up."""
    peaks = [result.peak_memory for result in results if result.peak_memory is not None]
    sent = [result.sent for result in results if result.sent is not None]
    names = dict.fromkeys(name for one in sent for name in one)
    return {
        "seconds": sum(result.seconds for result in results),
        "peak_memory": max(peaks, default=None),
        "speed": _speeds_together([result.speed for result in results if result.speed]),
        "sent": {name: sum(one.get(name, 0) for one in sent) for name in names} or None,
    }


def _speeds_together(speeds: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Numbers are added up; of different texts the longest is used."""
    return {
        name: max(values, key=len) if isinstance(values[0], str) else sum(values)
        for name in (speeds[0] if speeds else {})
        for values in [[speed[name] for speed in speeds]]
    } or None


def _with_stages(result: AttackResult, names: Iterable[str]) -> AttackResult:
    """The result with these stages; one that its batch did not reach has no passes."""
    none = torch.zeros_like(result.ids)
    stages = {name: result.stages.get(name, Passes(none, none)) for name in names}
    return replace(result, stages=stages)
