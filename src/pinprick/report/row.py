"""One image of a result as plain numbers and text: what tables print and JSON files hold."""

import math
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import torch

from pinprick.metrics.paired_attacks import PairedTest
from pinprick.metrics.summary_row import SummaryRow
from pinprick.metrics.unit import finite_count
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.trace import PER_STEP, Passes, Trace
from pinprick.types import Logits


@dataclass(frozen=True)
class Prediction:
    """The predicted class and its confidence (softmax).

    The confidence is None for models that give labels alone, and NaN where there was no answer.
    """

    index: int
    name: str
    confidence: float | None

    @property
    def answered(self) -> bool:
        """Whether the model answered; a remote one may fail."""
        return self.confidence is None or not math.isnan(self.confidence)


@dataclass(frozen=True)
class Step:
    """The best of one image after some passes; names as in ``Trace``. Infinite values are None."""

    forwards: int
    backwards: int
    margin: float | None
    pixels: int | None
    elements: int | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """Everything that was measured for one image; names as in ``AttackResult``.

    Attributes:
        label, target: True class and target class, as numbers; the target is None without one.
        label_name, target_name: Their names.
        clean, adversarial, rounded: Predictions before, after, and after 8-bit rounding: index and
            name of the class, and confidence.
        success: The adversarial image meets the goal.
        skipped: The clean image meets the goal, so it was not attacked.
        correct: The clean image is classified correctly.
        survives_8bit: The goal is still met after rounding to 8-bit values.
        l0_pixels, l0_elements: Number of changed units.
        l0_pixels_percent, l0_elements_percent: The same as a percentage of the image.
        needed_pixels, needed_elements: Changed units; None where the goal was not met.
        l1, l2, linf: Norms of the change.
        margin: Margin of the adversarial image in logits; below zero where the goal was met.
        forwards, backwards: Passes of the attack.
        out_of_budget, out_of_time: The image was refused passes by a limit.
        batch_size: Images in its batch.
        remark: Why the attack failed; empty where it did not.
        seconds: Time of its batch, divided by the number of images attacked in the batch.
        peak_memory: Peak GPU memory of its batch in bytes; None on a CPU.
        found_by: Stage of the attack that found it; empty for attacks with one stage.
        noise: How far the margin may change with the batch, in logits; None if not measured.
        within_noise: Whether the margin is no larger than the noise, so that another batch size
            may change the outcome.
        beaten_by_scores: Whether scores alone found fewer units than all searches with gradients.
        stages: Forward and backward passes per stage.
        start: Passes of the attack that made the start; None without one.
        trace: The best so far, step by step; None unless it was traced.
    """

    label: int
    label_name: str
    target: int | None
    target_name: str | None
    clean: Prediction
    adversarial: Prediction
    rounded: Prediction
    success: bool
    skipped: bool
    correct: bool
    survives_8bit: bool
    l0_pixels: int
    l0_pixels_percent: float
    l0_elements: int
    l0_elements_percent: float
    needed_pixels: int | None
    needed_elements: int | None
    l1: float
    l2: float
    linf: float
    margin: float
    forwards: int
    backwards: int
    out_of_budget: bool
    out_of_time: bool
    batch_size: int
    seconds: float
    peak_memory: int | None
    remark: str
    found_by: str = ""
    noise: float | None = None
    within_noise: bool = False
    beaten_by_scores: bool = False
    stages: dict[str, tuple[int, int]] = field(default_factory=dict)
    start: tuple[int, int] | None = None
    trace: tuple[Step, ...] | None = None


def make_rows(result: AttackResult, model: Classifier) -> list[Row]:
    """One row per image of a batch."""
    columns = {name: getattr(result, name).tolist() for name in _COLUMNS}
    for name in ("clean", "adversarial", "rounded"):
        columns[name] = predictions(getattr(result, f"{name}_logits"), model)
    attacked = max(1, columns["skipped"].count(False))
    labels, targets = result.goal.labels.tolist(), result.goal.targets
    wanted = [None] * len(result) if targets is None else targets.tolist()
    stages = {name: _pairs(passes) for name, passes in result.stages.items()}
    noise = [None] * len(result) if result.noise is None else result.noise.tolist()
    margins = result.goal.margin(result.adversarial_logits.double()).tolist()
    starts = None if result.start is None else _pairs(result.start)
    traces = None if result.trace is None else _steps(result.trace)
    rows = []
    for i, (label, target) in enumerate(zip(labels, wanted, strict=True)):
        own = {name: column[i] for name, column in columns.items()}
        success, skipped = own["success"], own["skipped"]
        rows.append(
            Row(
                label=label,
                label_name=model.class_name(label),
                target=target,
                target_name=None if target is None else model.class_name(target),
                needed_pixels=own["l0_pixels"] if success else None,
                needed_elements=own["l0_elements"] if success else None,
                seconds=0.0 if skipped else result.seconds / attacked,
                peak_memory=result.peak_memory,
                remark=str(result.remarks[i]),
                found_by=result.found_by[i] if result.found_by else "",
                margin=margins[i],
                noise=noise[i],
                stages={name: passes[i] for name, passes in stages.items()},
                start=None if starts is None else starts[i],
                trace=None if traces is None else traces[i],
                **own,
            )
        )
    return rows


_COLUMNS = (  # one number per image, under the same name in AttackResult and Row
    "success",
    "skipped",
    "correct",
    "survives_8bit",
    "l0_pixels",
    "l0_pixels_percent",
    "l0_elements",
    "l0_elements_percent",
    "l1",
    "l2",
    "linf",
    "forwards",
    "backwards",
    "out_of_budget",
    "out_of_time",
    "batch_size",
    "within_noise",
    "beaten_by_scores",
)


def _pairs(passes: Passes) -> list[tuple[int, int]]:
    """Forward and backward passes per image."""
    return list(zip(passes.forwards.tolist(), passes.backwards.tolist(), strict=True))


def _steps(trace: Trace) -> list[tuple[Step, ...]]:
    """The steps per image."""
    columns = (getattr(trace, name).tolist() for name in PER_STEP)
    steps = (
        Step(
            forwards,
            backwards,
            margin if math.isfinite(margin) else None,
            finite_count(pixels),
            finite_count(elements),
        )
        for forwards, backwards, margin, pixels, elements in zip(*columns, strict=True)
    )
    return [tuple(islice(steps, count)) for count in trace.steps.tolist()]


def predictions(logits: Logits, model: Classifier) -> list[Prediction]:
    """The prediction for each image."""
    index = logits.argmax(dim=1, keepdim=True)
    sure = torch.softmax(logits.double(), dim=1).gather(1, index).squeeze(1)
    # scores of a model that gives labels alone are one-hot: their softmax means nothing
    labels_alone = logits.isfinite().all(dim=1) & (model.access == "labels")
    rows = zip(index.squeeze(1).tolist(), sure.tolist(), labels_alone.tolist(), strict=True)
    return [
        Prediction(number, model.class_name(number), None if no_confidence else confidence)
        for number, confidence, no_confidence in rows
    ]


def plain(row: Row | Prediction | SummaryRow | PairedTest) -> dict[str, Any]:
    """As JSON can hold it: numbers that are not finite become None."""
    return {key: _finite(value) for key, value in asdict(row).items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
