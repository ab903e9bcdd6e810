"""One image of a result as plain numbers and words: what tables print and JSON files hold."""

import math
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.trace import PER_STEP, Passes, Trace
from pinprick.types import Logits


@dataclass(frozen=True)
class Guess:
    """The class a model settles on, and how sure it is (softmax).

    One that gives labels alone does not say how sure it is, which is None; NaN is no answer.
    """

    index: int
    name: str
    confidence: float | None

    @property
    def heard(self) -> bool:
        """Whether there was an answer, and not what a remote model that failed leaves."""
        return self.confidence is None or not math.isnan(self.confidence)


@dataclass(frozen=True)
class Step:
    """The best of one image after some passes, names as in ``Trace``; None for what is infinite."""

    forwards: int
    backwards: int
    margin: float | None
    pixels: int | None
    elements: int | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """Everything that was measured for one image; names as in ``AttackResult``.

    Attributes:
        label, target: The true class, and the wanted one if there is one, as numbers.
        label_name, target_name: The same in words.
        clean, adversarial, rounded: What the model says before, after, and after 8-bit rounding.
        needed_pixels, needed_elements: None where the goal was not met.
        seconds: The time of its batch, shared out over the images that were attacked in it.
        peak_memory: Most memory that the GPU held in its batch, in bytes; None on a CPU.
        found_by: The stage of the attack that found it, where there are several.
        noise: How far the margin may change with the batch, in logits; None if not measured.
        within_noise: Whether the margin is no larger than that, so that another batch size may
            decide otherwise.
        beaten_by_scores: Whether scores alone found fewer units than all searches with gradients.
        stages: Forward and backward passes of each stage by name.
        start: The same of the attack on another model that this one began at, if there is one.
        trace: How it came to its result, step by step; None unless that was asked for.
    """

    label: int
    label_name: str
    target: int | None
    target_name: str | None
    clean: Guess
    adversarial: Guess
    rounded: Guess
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
    """One row for each image of one batch."""
    columns = {name: getattr(result, name).tolist() for name in _COLUMNS}
    for name in ("clean", "adversarial", "rounded"):
        columns[name] = guesses(getattr(result, f"{name}_logits"), model)
    attacked = max(1, columns["skipped"].count(False))
    labels, targets = result.goal.labels.tolist(), result.goal.targets
    wanted = [None] * len(result) if targets is None else targets.tolist()
    stages = {name: _pairs(passes) for name, passes in result.stages.items()}
    noise = [None] * len(result) if result.noise is None else result.noise.tolist()
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
                remark=result.remarks[i],
                found_by=result.found_by[i] if result.found_by else "",
                noise=noise[i],
                stages={name: passes[i] for name, passes in stages.items()},
                start=None if starts is None else starts[i],
                trace=None if traces is None else traces[i],
                **own,
            )
        )
    return rows


_COLUMNS = (  # with one number per image, under the same name in both
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
    """The forward and backward passes of each image."""
    return list(zip(passes.forwards.tolist(), passes.backwards.tolist(), strict=True))


def _steps(trace: Trace) -> list[tuple[Step, ...]]:
    """The steps of each image."""
    columns = (getattr(trace, name).tolist() for name in PER_STEP)
    steps = (
        Step(
            forwards,
            backwards,
            margin if math.isfinite(margin) else None,
            int(pixels) if math.isfinite(pixels) else None,
            int(elements) if math.isfinite(elements) else None,
        )
        for forwards, backwards, margin, pixels, elements in zip(*columns, strict=True)
    )
    return [tuple(islice(steps, count)) for count in trace.steps.tolist()]


def guesses(logits: Logits, model: Classifier) -> list[Guess]:
    """What the model settles on, image by image."""
    index = logits.argmax(dim=1, keepdim=True)
    sure = torch.softmax(logits.double(), dim=1).gather(1, index).squeeze(1)
    # the scores of a model of labels are one-hot, and their softmax means nothing
    unsaid = logits.isfinite().all(dim=1) & (model.access == "labels")
    rows = zip(index.squeeze(1).tolist(), sure.tolist(), unsaid.tolist(), strict=True)
    return [
        Guess(number, model.class_name(number), None if silent else confidence)
        for number, confidence, silent in rows
    ]


def guess(logits: Tensor, model: Classifier) -> Guess:
    """The same from the logits of one image."""
    return guesses(logits.unsqueeze(0), model)[0]


def plain(row: Row | Guess) -> dict[str, Any]:
    """As JSON can hold it; a number that is not finite becomes None."""
    return {key: _finite(value) for key, value in asdict(row).items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
