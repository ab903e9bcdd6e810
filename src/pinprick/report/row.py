"""One image of a result as plain numbers and words: what tables print and JSON files hold."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.trace import PER_STEP, Trace


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
        masked_gradient: Whether it was found without gradients after a search with them.
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
    batch_size: int
    seconds: float
    peak_memory: int | None
    remark: str
    found_by: str = ""
    masked_gradient: bool = False
    stages: dict[str, tuple[int, int]] = field(default_factory=dict)
    start: tuple[int, int] | None = None
    trace: tuple[Step, ...] | None = None


def make_rows(result: AttackResult, model: Classifier) -> list[Row]:
    """One row for each image of one batch."""
    targets = result.goal.targets
    attacked = max(1, int((~result.skipped).sum()))
    rows = []
    for i in range(len(result)):
        label = int(result.goal.labels[i])
        target = None if targets is None else int(targets[i])
        success, skipped = bool(result.success[i]), bool(result.skipped[i])
        pixels, elements = int(result.l0_pixels[i]), int(result.l0_elements[i])
        rows.append(
            Row(
                label=label,
                label_name=model.class_name(label),
                target=target,
                target_name=None if target is None else model.class_name(target),
                clean=guess(result.clean_logits[i], model),
                adversarial=guess(result.adversarial_logits[i], model),
                rounded=guess(result.rounded_logits[i], model),
                success=success,
                skipped=skipped,
                correct=bool(result.correct[i]),
                survives_8bit=bool(result.survives_8bit[i]),
                l0_pixels=pixels,
                l0_pixels_percent=float(result.l0_pixels_percent[i]),
                l0_elements=elements,
                l0_elements_percent=float(result.l0_elements_percent[i]),
                needed_pixels=pixels if success else None,
                needed_elements=elements if success else None,
                l1=float(result.l1[i]),
                l2=float(result.l2[i]),
                linf=float(result.linf[i]),
                forwards=int(result.forwards[i]),
                backwards=int(result.backwards[i]),
                out_of_budget=bool(result.out_of_budget[i]),
                batch_size=int(result.batch_size[i]),
                seconds=0.0 if skipped else result.seconds / attacked,
                peak_memory=result.peak_memory,
                remark=result.remarks[i],
                found_by=result.found_by[i] if result.found_by else "",
                masked_gradient=bool(result.masked_gradient[i]),
                stages={
                    name: (int(passes.forwards[i]), int(passes.backwards[i]))
                    for name, passes in result.stages.items()
                },
                start=None
                if result.start is None
                else (int(result.start.forwards[i]), int(result.start.backwards[i])),
                trace=None if result.trace is None else _steps(result.trace, i),
            )
        )
    return rows


def _steps(trace: Trace, row: int) -> tuple[Step, ...]:
    own = trace[torch.tensor([row], device=trace.steps.device)]
    columns = (getattr(own, name).tolist() for name in PER_STEP)
    return tuple(
        Step(
            forwards,
            backwards,
            margin if math.isfinite(margin) else None,
            int(pixels) if math.isfinite(pixels) else None,
            int(elements) if math.isfinite(elements) else None,
        )
        for forwards, backwards, margin, pixels, elements in zip(*columns, strict=True)
    )


def guess(logits: Tensor, model: Classifier) -> Guess:
    """What the model settles on, from the logits of one image."""
    index = int(logits.argmax())
    confidence: float | None = float(torch.softmax(logits.double(), dim=0)[index])
    if model.access == "labels" and logits.isfinite().all():
        confidence = None  # scores are one-hot, and their softmax means nothing
    return Guess(index, model.class_name(index), confidence)


def plain(row: Row | Guess) -> dict[str, Any]:
    """As JSON can hold it; a number that is not finite becomes None."""
    return {key: _finite(value) for key, value in asdict(row).items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
