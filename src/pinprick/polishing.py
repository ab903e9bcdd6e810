"""Shorten the result of any attack, until no changed unit can be spared.

Its passes and its time are added to those of the attack. Nothing changes that the attack left
alone, so a mask that was kept stays kept.
"""

import time
from dataclasses import replace
from typing import Literal

import torch

from pinprick.errors import BadInput
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.parts.best import Best
from pinprick.parts.choice import check_choice
from pinprick.parts.trim import Trimmer
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.result import AttackResult, join
from pinprick.run import judge
from pinprick.trace import Tracer
from pinprick.types import Images

_LOOK = 8  # passes between two looks at which images are settled


def polish(
    result: AttackResult,
    model: Classifier | Model,
    *,
    unit: Literal["elements", "pixels"] = "elements",
    max_forwards: int | None = None,
) -> AttackResult:
    """``result`` with as few changed units as putting back can reach.

    Args:
        result: What an attack gave; images that failed, or needed no attack, stay as they are.
        model: The model it was attacked on.
        unit: What is counted.
        max_forwards: Most passes for each image; None to go on until no single unit of any image
            can be spared.
    """
    check_choice("polish", "unit", unit, ("elements", "pixels"))
    if max_forwards is not None and max_forwards < 1:
        raise BadInput(f"polish needs max_forwards >= 1, got {max_forwards}")
    classifier = as_classifier(model)
    if not gives(classifier.access, "gradients"):
        raise BadInput(
            f"polish needs gradients, but {classifier.name} gives {classifier.access} alone; "
            "leave the result as it is"
        )
    if not len(result):
        return result
    here = classifier.device or result.images.device
    numbers = torch.arange(len(result), device=result.images.device)
    parts = numbers.split(int(result.batch_size.max()))
    with classifier.frozen(), torch.inference_mode(False):
        polished = [
            _polish(result[rows].to(here), classifier, Units(unit), max_forwards) for rows in parts
        ]
    joined = join(polished).to(result.images.device)
    attack = {**result.attack, "polished": unit}
    seconds = result.seconds + joined.seconds
    return replace(joined, attack=attack, seconds=seconds)


def _polish(
    result: AttackResult, model: Classifier, units: Units, max_forwards: int | None
) -> AttackResult:
    start = time.perf_counter()
    rng, before = Streams(result.seed, result.ids), result.trace
    tracer = None if before is None else Tracer(result.goal, result.clean_logits)
    problem = Problem(model, result.images, result.goal, rng, tracer=tracer)
    adversarial = _shorten(problem, result, units, max_forwards)
    adversarial_logits, rounded_logits, _ = judge(model, adversarial)
    trace = None
    if before is not None and tracer is not None:
        changed, spent = adversarial != result.images, problem.tally
        later = tracer.trace(
            result.goal, adversarial_logits, changed, spent.forwards, spent.backwards
        )
        trace = before.followed_by(later, result.forwards, result.backwards)
    return replace(
        result,
        trace=trace,
        adversarial=adversarial,
        adversarial_logits=adversarial_logits,
        rounded_logits=rounded_logits,
        forwards=result.forwards + problem.tally.forwards,
        backwards=result.backwards + problem.tally.backwards,
        seconds=time.perf_counter() - start,
    )


def _shorten(
    problem: Problem, result: AttackResult, units: Units, max_forwards: int | None
) -> Images:
    best = Best(result.adversarial)
    best.cost = units.count(result.adversarial, result.images)
    rows = (result.success & ~result.skipped & (best.cost > 1)).nonzero().squeeze(1)
    if not len(rows):
        return best.images
    trimmer = Trimmer(problem[rows], best[rows], units, "polish", redraw=False)
    spent = 0
    while len(rows) and (max_forwards is None or spent < max_forwards):
        trimmer.step()
        spent += 1
        if spent % _LOOK == 0:
            best.offer(trimmer.found.images, trimmer.found.cost, result.success[rows], rows)
            rows, trimmer = rows[~trimmer.settled], trimmer[~trimmer.settled]
    best.offer(trimmer.found.images, trimmer.found.cost, result.success[rows], rows)
    return best.images
