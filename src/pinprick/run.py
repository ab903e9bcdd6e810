"""The referee: runs an attack on images and measures the result, the same way for all attacks.

Images that meet the goal already are returned unchanged and not attacked. The referee's own passes
are not counted: one before the attack, two after it, and a few to measure the numerical noise. An
attack has to get beyond that noise. Where it cannot, an image that fools within the noise is kept.
"""

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack, Card
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput, NoAnswer
from pinprick.goal import Goal
from pinprick.intake import (
    Task,
    check_access,
    check_answers,
    check_class_names,
    check_classes,
    check_parties,
    explain_size,
    take_in,
    take_start,
)
from pinprick.labelled_batches import are_batches, check_batches_alone, tasks_of
from pinprick.metrics.wrong_before import many_wrong
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.numerical_noise import guarded, measure_noise
from pinprick.problem import Problem, Tally
from pinprick.progress_bar import progress_bar
from pinprick.random import Streams
from pinprick.result import AttackResult, Failure, join
from pinprick.saved_batches import SavedBatches, describe_run
from pinprick.speed import ModelPasses
from pinprick.speed_names import Speed
from pinprick.trace import Tracer
from pinprick.types import Allowed, Images, Logits, Mask
from pinprick.watch import Watch

_FIRST = 3  # images without an answer after which a remote model counts as down


def run_attack(
    attack: Attack,
    model: Classifier | Model,
    images: Tensor | Iterable[Any] | Dataset,
    labels: Tensor | Sequence[int] | None = None,
    *,
    targets: Tensor | Sequence[int] | None = None,
    allowed: Tensor | None = None,
    seed: int = 0,
    ids: Tensor | Sequence[int] | None = None,
    batch_size: int | None = None,
    max_forwards: int | None = None,
    max_backwards: int | None = None,
    max_passes: int | None = None,
    max_seconds: float | None = None,
    start: AttackResult | Tensor | None = None,
    trace: bool = False,
    folder: str | Path | None = None,
    speed: Speed | ModelPasses = "exact",
    progress: bool = False,
) -> AttackResult:
    """Attack any number of images and measure success, change, cost and time.

    Warns if more than 20 % of the images are misclassified before the attack.

    Args:
        attack: The attack, with its settings.
        model: A ``Classifier``, or any network or function from images in [0, 1] to logits.
        images: Images in [0, 1], on any device; the result is on the same device. Or a DataLoader,
            or any iterable of batches (images, labels), which is read once. Or a ``Dataset``, whose
            labels are matched to the model by the names of the classes.
        labels: The true class of each image; None where ``images`` brings its labels.
        targets: The class to reach, per image; None for an untargeted attack.
        allowed: Where values may change, as True or False. Its shape is (height, width) for all
            images, (batch, 1, height, width) for pixels of each image, or (batch, channel, height,
            width) for elements of each image. A batch of 1 applies to all images.
        seed: Seed of the random streams; the same seed gives the same images.
        ids: A number per image, which chooses its random stream; 0, 1, 2, … by default.
        batch_size: Images per batch; chosen from their size by default.
        max_forwards: Most forward passes per image.
        max_backwards: Most backward passes per image.
        max_passes: Most forward and backward passes per image, added up.
        max_seconds: Most seconds of the attack for all images together. Then images under attack
            get their best so far, and images of later batches stay clean; all of these are
            ``out_of_time``. Results depend on the speed of the machine.
        start: Where to begin: the result of an attack on another model for the same images, whose
            passes are counted separately. Or a tensor with one start per image, such as an image
            of the target class.
        trace: Whether to record the best so far of each image against its passes. At "fast" that is
            the best of the candidates that were judged in float32.
        folder: A folder to save each finished batch in. The same call after a stop loads these,
            attacks the rest and gives the same result. A call with other arguments is refused.
        speed: How the model is queried on a GPU. "exact" is plain. "graphs" replays recorded
            passes in the same arithmetic. "fast" searches in bfloat16 and judges in float32.
            "compiled" also compiles the search, which takes up to a minute at first. ``speed`` of
            the result says where that was not possible. At "fast" and "compiled" an image that
            fools in bfloat16 alone is attacked again, with the passes that a limit leaves it. Calls
            that get the same ``ModelPasses`` share what was recorded and compiled.
        progress: Whether to show a progress bar: on stderr, or in the output of a notebook.
    """
    batches = attack_batches(
        attack,
        model,
        images,
        labels,
        targets=targets,
        allowed=allowed,
        seed=seed,
        ids=ids,
        batch_size=batch_size,
        max_forwards=max_forwards,
        max_backwards=max_backwards,
        max_passes=max_passes,
        max_seconds=max_seconds,
        start=start,
        trace=trace,
        folder=folder,
        speed=speed,
    )
    total = len(images) if isinstance(images, (Tensor, Dataset)) else None
    result = join(list(_watched(batches, total) if progress else batches))
    if warning := many_wrong(int(result.wrong.sum()), len(result)):
        warnings.warn(warning, stacklevel=2)
    return result


def attack_batches(
    attack: Attack,
    model: Classifier | Model,
    images: Tensor | Iterable[Any] | Dataset,
    labels: Tensor | Sequence[int] | None = None,
    *,
    targets: Tensor | Sequence[int] | None = None,
    allowed: Tensor | None = None,
    seed: int = 0,
    ids: Tensor | Sequence[int] | None = None,
    batch_size: int | None = None,
    max_forwards: int | None = None,
    max_backwards: int | None = None,
    max_passes: int | None = None,
    max_seconds: "float | TimeLeft | None" = None,
    start: AttackResult | Tensor | None = None,
    trace: bool = False,
    folder: str | Path | None = None,
    speed: Speed | ModelPasses = "exact",
    watch: Watch | None = None,
) -> Iterator[AttackResult]:
    """Yield one result per finished batch; arguments as for ``run_attack``.

    All input is checked before the first batch is attacked. Batches of an iterable are checked one
    by one; a batch of more than ``batch_size`` images gives several results. A batch that does not
    fit the GPU is started again in halves. Several calls share one time limit where
    ``max_seconds`` is the same ``TimeLeft``. ``watch`` sees every candidate and may stop the run;
    batches that it stops are not saved in ``folder``.
    """
    check_parties(attack, model)
    classifier = as_classifier(model)
    facts = attack.facts()
    time_left = max_seconds if isinstance(max_seconds, TimeLeft) else TimeLeft(max_seconds)
    seconds = time_left.seconds
    passes = speed if isinstance(speed, ModelPasses) else ModelPasses(classifier, speed)
    if passes.model is not classifier:
        raise BadInput(f"speed holds passes of {passes.model.name}, not of {classifier.name}")

    def take(images: Any, labels: Any, ids: Any) -> Task:
        task = take_in(
            images,
            labels,
            targets,
            allowed,
            ids,
            batch_size,
            max_forwards,
            max_backwards,
            seconds,
            max_passes,
        )
        task = replace(task, trace=trace)
        task = task if start is None else take_start(task, start)
        check_access(facts, classifier, task)
        return task

    def with_saved(task: Task, part: str = "") -> tuple[Task, SavedBatches | None]:
        if folder is None:
            return task, None
        run = describe_run(
            attack,
            facts,
            classifier,
            task,
            seed=seed,
            max_seconds=time_left.given,
            speed=passes.speed,
        )
        return task, SavedBatches(Path(folder, part), run)

    if not are_batches(images):
        tasks: Iterable[tuple[Task, SavedBatches | None]] = [with_saved(take(images, labels, ids))]
    else:
        check_batches_alone(labels, targets, allowed, ids, start)
        parts = enumerate(tasks_of(images, classifier, batch_size, take))
        tasks = (with_saved(task, f"part-{number}") for number, task in parts)
    batches = _batches(attack, facts, passes, tasks, seed, time_left, watch)
    return batches if passes is speed else _released(passes, batches)


def _released(passes: ModelPasses, batches: Iterator[AttackResult]) -> Iterator[AttackResult]:
    with passes:
        yield from batches


def _batches(
    attack: Attack,
    facts: Card,
    passes: ModelPasses,
    tasks: Iterable[tuple[Task, SavedBatches | None]],
    seed: int,
    time_left: "TimeLeft",
    watch: Watch | None,
) -> Iterator[AttackResult]:
    model = passes.model
    answer: Logits | None = None
    for task, saved in tasks:
        if len(task):
            if answer is None:
                with model.frozen(), explain_size(model, task.images):
                    answer = _first_answer(model, task)
                check_class_names(model, answer)
            check_classes(task, answer)
        for number, part in enumerate(task.batches()):
            if saved is None:
                yield from _attack_or_halve(attack, facts, passes, part, seed, time_left, watch)
                continue
            result = saved.load(number, part)
            if result is None:
                halves = _attack_or_halve(attack, facts, passes, part, seed, time_left, watch)
                result = join(list(halves))
                if watch is None or not watch.stopped:
                    saved.save(number, result)
            else:
                time_left.subtract(result.seconds)
            yield result


def _first_answer(model: Classifier, task: Task) -> Logits:
    """The logits of the first image, or of the next ones where a remote model fails."""
    last = max(1, min(_FIRST, len(task))) - 1
    for row in range(last):
        with suppress(NoAnswer):
            return _answers(model, task[row : row + 1].first_image(model.device))
    return _answers(model, task[last:].first_image(model.device))


def _attack_or_halve(
    attack: Attack,
    facts: Card,
    passes: ModelPasses,
    part: Task,
    seed: int,
    time_left: "TimeLeft",
    watch: Watch | None,
) -> Iterator[AttackResult]:
    try:
        yield _attack_batch(attack, facts, passes, part, seed, time_left, watch)
        return
    except torch.OutOfMemoryError:
        if len(part) == 1 or passes.model.sent is not None:  # nothing is sent to a service twice
            raise
    passes.release()
    torch.cuda.empty_cache()
    for half in part.halves():
        yield from _attack_or_halve(attack, facts, passes, half, seed, time_left, watch)


@torch.inference_mode(
    False
)  # an attack needs gradients, also where the caller is in inference mode
def _attack_batch(
    attack: Attack,
    facts: Card,
    passes: ModelPasses,
    part: Task,
    seed: int,
    time_left: "TimeLeft",
    watch: Watch | None,
) -> AttackResult:
    model, home = passes.model, part.images.device
    part = part.to(model.device or home)
    images, goal, allowed, start = part.images, part.goal, part.allowed, part.start
    clock = _Clock(images.device)
    sent = model.sent
    with model.frozen():
        clean_logits, unanswered = logits_or_nan(model, images)
        todo = ~goal.met(clean_logits)
        todo[list(unanswered)] = False
        if allowed is not None:
            todo &= allowed.flatten(1).any(dim=1)
        noise = measure_noise(model, images, clean_logits)
        tracer = Tracer(goal, clean_logits) if part.trace else None
        passes.begin(images, clean_logits)
        problem = Problem(
            model,
            images,
            guarded(goal, noise),
            Streams(seed, part.ids),
            allowed=allowed,
            start=None if start is None else start.images,
            gradients=gives(model.access, "gradients") and gives(facts.access, "gradients"),
            clean_logits=clean_logits,
            max_forwards=part.max_forwards,
            max_backwards=part.max_backwards,
            max_passes=part.max_passes,
            deadline=time_left.deadline,
            tracer=tracer,
            passes=None if passes.speed == "exact" else passes,
            watch=watch,
        )
        adversarial = images.clone()
        clock.start()
        if time_left.is_over or (watch is not None and watch.stopped):
            problem.tally.out_of_time |= todo
        elif todo.any():
            with time_left.spent():
                adversarial[todo] = _call(attack, problem[todo])
                doubtful = _given_up(adversarial, problem)
                if doubtful.any():
                    again = problem[doubtful]
                    adversarial[doubtful] = _call(attack, again.with_goal(again.goal.plain))
                if passes.confirms:
                    lost = _believed_in_error(model, adversarial, goal, problem.tally)
                    if lost.any():
                        problem.tally.refuted |= lost
                        adversarial[lost] = _call(attack, problem[lost].in_float32())
        seconds, peak_memory = clock.stop()
        _check_product(facts, images, adversarial, allowed)
        adversarial_logits, rounded_logits, unconfirmed = final_logits(model, adversarial)
    failures = {
        **unconfirmed,
        **problem.tally.failures,
        **unanswered,
    }  # of several reasons the last is used
    return AttackResult(
        images=images,
        adversarial=adversarial,
        goal=goal,
        clean_logits=clean_logits,
        adversarial_logits=adversarial_logits,
        rounded_logits=rounded_logits,
        forwards=problem.tally.forwards,
        backwards=problem.tally.backwards,
        out_of_budget=problem.tally.out_of_budget,
        out_of_time=problem.tally.out_of_time,
        ids=part.ids,
        batch_size=torch.full_like(part.ids, len(part)),
        noise=None if noise is None else torch.full(part.ids.shape, noise, device=images.device),
        remarks=_remarks(goal, allowed, adversarial_logits, problem.tally, failures),
        seconds=seconds,
        peak_memory=None if peak_memory is None else peak_memory + passes.memory,
        speed=passes.note(problem.tally.remark),
        generator_forwards=problem.tally.generator,
        stages=problem.tally.stages,
        found_by=tuple(
            "" if number < 0 else list(problem.tally.stages)[number]
            for number in problem.tally.found_by.tolist()
        ),
        start=None if start is None else start.passes,
        trace=None
        if tracer is None
        else tracer.trace(
            goal,
            adversarial_logits,
            adversarial != images,
            problem.tally.forwards,
            problem.tally.backwards,
        ),
        sent=None if sent is None else vars(model.sent - sent),
        attack=describe(attack)
        | part.limits()
        | ({} if start is None else {"started_from": start.made_by}),
        model=model.name,
        seed=seed,
    ).to(home)


def _call(attack: Attack, problem: Problem) -> Images:
    """What the attack returns, if that is one image per image."""
    returned: Any = attack(problem)
    wanted = tuple(problem.images.shape)
    if not isinstance(returned, Tensor) or tuple(returned.shape) != wanted:
        shape = f" of shape {tuple(returned.shape)}" if isinstance(returned, Tensor) else ""
        raise RuntimeError(
            f"{attack.card.name} returned a {type(returned).__name__}{shape} for images of shape "
            f"{wanted}: a bug in the attack"
        )
    return returned.detach()


def _given_up(adversarial: Images, problem: Problem) -> Mask:
    """Which images were returned clean, although some candidate fooled within the noise."""
    return (problem.tally.near > 0) & (adversarial == problem.images).flatten(1).all(dim=1)


def _believed_in_error(model: Classifier, adversarial: Images, goal: Goal, tally: Tally) -> Mask:
    """Which images do not meet the goal in float32, although some candidate did in bfloat16."""
    return (tally.believed > 0) & ~goal.met(_answers(model, adversarial))


def final_logits(model: Classifier, adversarial: Images) -> tuple[Logits, Logits, dict[int, str]]:
    """The logits of ``adversarial``, as they are and rounded to 8-bit values.

    The reasons are why a remote model did not answer the first query, by row.
    """
    rounded = (adversarial * 255).round_().div_(255)
    logits, reasons = logits_or_nan(model, adversarial)
    return logits, logits_or_nan(model, rounded)[0], reasons


def logits_or_nan(model: Classifier, images: Images) -> tuple[Logits, dict[int, str]]:
    """The logits of ``images``, NaN where a remote model fails, and the reasons by row."""
    try:
        return _answers(model, images), {}
    except NoAnswer as error:
        if error.logits is None:
            raise
        return check_answers(error.logits, images), error.reasons


def _answers(model: Classifier, images: Images) -> Logits:
    """The logits of ``images`` for the referee; no query where there are no images."""
    if not len(images):
        return images.new_zeros((0, 1))
    with torch.no_grad():
        logits = model(images)
    return check_answers(logits, images)


def _check_product(
    facts: Card, images: Images, adversarial: Images, allowed: Allowed | None
) -> None:
    if not ((adversarial >= 0) & (adversarial <= 1)).all():  # NaN is caught here too
        raise RuntimeError(f"{facts.name} gave values outside [0, 1]: a bug in the attack")
    if allowed is not None and ((adversarial != images) & ~allowed).any():
        raise RuntimeError(f"{facts.name} changed values it may not change: a bug in the attack")


def _remarks(
    goal: Goal,
    allowed: Allowed | None,
    logits: Logits,
    tally: Tally,
    failures: Mapping[int, str],
) -> tuple[str, ...]:
    """Why an image failed: what a remote model said, or the first reason that fits."""
    shut = torch.zeros_like(tally.out_of_budget)
    if allowed is not None:
        shut = ~allowed.flatten(1).any(dim=1)
    reasons = {
        Failure.NOTHING_MAY_CHANGE: shut,
        Failure.NOT_FINITE: ~logits.isfinite().all(dim=1),
        Failure.SPENT_IN_BFLOAT16: tally.refuted & tally.out_of_budget,
        Failure.OUT_OF_BUDGET: tally.out_of_budget,
        Failure.OUT_OF_TIME: tally.out_of_time,
        Failure.NO_GRADIENT: tally.flat > 0,
        Failure.NOTHING_TRIED: tally.untried,
        Failure.NOT_FOUND: torch.ones_like(shut),
    }
    first = torch.stack(list(reasons.values())).int().argmax(dim=0).tolist()
    return tuple(
        "" if met else failures.get(row, list(reasons)[number])
        for row, (met, number) in enumerate(zip(goal.met(logits).tolist(), first, strict=True))
    )


class TimeLeft:
    """The ``seconds`` that attacks may still take, over all batches and calls; None for any number.

    Only the attacks' own time counts, as in ``seconds`` of a result.
    """

    def __init__(self, seconds: float | None) -> None:
        self.given = self.seconds = seconds

    @property
    def is_over(self) -> bool:
        return self.seconds is not None and self.seconds <= 0

    @property
    def deadline(self) -> float | None:
        """When the time is over, by ``time.perf_counter``, if it is spent from now on."""
        return None if self.seconds is None else time.perf_counter() + self.seconds

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Subtract the time that passes meanwhile, also where the batch did not fit the GPU."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.subtract(time.perf_counter() - start)

    def subtract(self, seconds: float) -> None:
        if self.seconds is not None:
            self.seconds = max(0.0, self.seconds - seconds)


class _Clock:
    """Seconds and peak GPU memory, measured once the device has finished."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._start = 0.0

    def start(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
        self._start = time.perf_counter()

    def stop(self) -> tuple[float, int | None]:
        if self._device.type != "cuda":
            return time.perf_counter() - self._start, None
        torch.cuda.synchronize(self._device)
        seconds = time.perf_counter() - self._start
        return seconds, torch.cuda.max_memory_allocated(self._device)


def _watched(batches: Iterator[AttackResult], total: int | None) -> Iterator[AttackResult]:
    """The same results, with a progress bar."""
    with progress_bar("attacking", total) as advance:
        for result in batches:
            advance(len(result))
            yield result
