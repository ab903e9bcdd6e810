"""Remove changed units from the result of any attack until each one left is needed.

Its passes and its time are added to those of the attack. Nothing changes that the attack left
alone, so a mask that was kept stays kept.
"""

import time
from dataclasses import replace

import torch

from pinprick.errors import BadInput
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.numerical_noise import guarded, largest_noise, with_noise
from pinprick.parts.best import Best
from pinprick.parts.remove_units import remove_units
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.result import AttackResult, join
from pinprick.run import final_logits
from pinprick.trace import Tracer
from pinprick.types import Counts, Images, Logits


def polish(
    result: AttackResult,
    model: Classifier | Model,
    *,
    unit: Unit = "elements",
    max_forwards: int | None = None,
) -> AttackResult:
    """Restore the clean value of every changed unit that the result does not need.

    ``unsettled`` of the new result is an upper bound on the units that could still be removed.
    Without gradients, units are tried in the order of the size of their change, which takes more
    queries.

    Args:
        result: The result of an attack; images that failed or were not attacked stay unchanged.
        model: The attacked model.
        unit: What is counted.
        max_forwards: Most passes per image; None to go on until no single unit can be removed.
    """
    check_unit(unit)
    if max_forwards is not None and max_forwards < 1:
        raise BadInput(f"polish needs max_forwards >= 1, got {max_forwards}")
    classifier = as_classifier(model)
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
    result = with_noise(result, model)
    problem = Problem(
        model,
        result.images,
        guarded(result.goal, largest_noise(result)),
        rng,
        gradients=gives(model.access, "gradients"),
        clean_logits=result.clean_logits,
        tracer=tracer,
    )
    sent = model.sent
    shorter, unsettled = _shorten(problem, result, units, max_forwards)
    adversarial, adversarial_logits, rounded_logits = _judge(model, shorter, result)
    undone = (adversarial != shorter).flatten(1).any(dim=1)
    unsettled = torch.where(undone, units.count(adversarial, result.images).long(), unsettled)
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
        unsettled=unsettled,
        sent=result.sent if sent is None else _add(result.sent, vars(model.sent - sent)),
        seconds=time.perf_counter() - start,
    )


def _judge(
    model: Classifier, shorter: Images, result: AttackResult
) -> tuple[Images, Logits, Logits]:
    """The shortened images that the referee's own query confirms; the others stay as they were.

    A query does not confirm where a remote model fails, or where the margin is within the noise.
    """
    new = (shorter != result.adversarial).flatten(1).any(dim=1)
    adversarial, logits = result.adversarial.clone(), result.adversarial_logits.clone()
    rounded = result.rounded_logits.clone()
    if new.any():
        said, of_rounded, _ = final_logits(model, shorter[new])
        good = guarded(result.goal[new], largest_noise(result), looks=1).met(said)
        rows = new.nonzero().squeeze(1)[good]
        adversarial[rows], logits[rows] = shorter[rows], said[good].to(logits.dtype)
        rounded[rows] = of_rounded[good].to(rounded.dtype)
    return adversarial, logits, rounded


def _add(before: dict[str, int] | None, later: dict[str, int]) -> dict[str, int]:
    return {name: count + (before or {}).get(name, 0) for name, count in later.items()}


def _shorten(
    problem: Problem, result: AttackResult, units: Units, max_forwards: int | None
) -> tuple[Images, Counts]:
    """The shortest images, and an upper bound on the units that could still be removed."""
    best = Best(result.adversarial)
    best.cost = units.count(result.adversarial, result.images)
    polished = result.success & ~result.skipped
    unsettled = torch.zeros_like(result.ids).masked_fill(~polished, -1)
    rows = polished.nonzero().squeeze(1)
    found = best[rows]
    unsettled[rows] = remove_units(problem[rows], found, units, max_forwards)
    best.offer(found.images, found.cost, polished[rows], rows)
    return best.images, unsettled
