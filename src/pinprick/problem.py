"""What an attack gets: images, a goal for each, and a model whose passes are counted.

``problem[rows]`` is the same problem for some of its images, or for several copies of them. Goal,
random stream, mask, counters and limits go along with each image.

An image may be refused an answer: it is out of budget, the time is over, or a remote model failed
on it. From then on it is not forwarded and not counted. Its logits are NaN, which meet no goal, and
its gradient is zero.

Passes are counted on the device, without waiting for it. Counters are read during a run only where
there are limits. The clock is read before each forward pass, and nothing waits for it until the
time is over.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import torch
from torch import Tensor

from pinprick.backward import Backward
from pinprick.batch_rows import BatchRows
from pinprick.errors import BadInput, NoAnswer, OverBudget
from pinprick.feature_layer import layer_outputs
from pinprick.goal import Goal
from pinprick.model import Model
from pinprick.random import Streams
from pinprick.speed import ModelPasses
from pinprick.trace import Passes, Tracer
from pinprick.types import Allowed, Counts, Images, Logits, Mask, PerImage
from pinprick.watch import Watch


class Problem(BatchRows):
    """Images in [0, 1], the goal of each, and the only way to query the model.

    Attributes:
        images: The clean images.
        goal: The goal of each.
        rng: One random stream per image.
        allowed: Where values may change; None for everywhere.
        start: Adversarial images of another model to begin at; None for the clean images.
        tally: Passes per image, shared by all cuts.

    Args:
        model: Queried through ``logits`` and ``gradient`` only.
        gradients: Whether the attack may use gradients.
        clean_logits: What the model says of the images; needed where there are limits, for the
            shape of the NaN logits that a refused row gets.
        max_forwards: Most forward passes per image.
        max_backwards: Most backward passes per image.
        max_passes: Most forward and backward passes per image, added up.
        deadline: When ``time.perf_counter`` has reached this, all images are refused answers.
        strict: Raise ``OverBudget`` instead of refusing a row that is out of budget.
        tracer: Records the best so far after every pass; None for no trace.
        passes: How the model is queried; None to query it directly.
        watch: Sees every candidate and may stop the run; None for nobody.
    """

    SHARED = ("_no_answer",)

    def __init__(
        self,
        model: Model,
        images: Images,
        goal: Goal,
        rng: Streams,
        *,
        allowed: Allowed | None = None,
        start: Images | None = None,
        gradients: bool = True,
        clean_logits: Logits | None = None,
        max_forwards: int | None = None,
        max_backwards: int | None = None,
        max_passes: int | None = None,
        deadline: float | None = None,
        strict: bool = False,
        tracer: Tracer | None = None,
        passes: ModelPasses | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.images, self.goal, self.rng = images, goal, rng
        self.allowed, self.start = allowed, start
        self._tracer = tracer
        self.tally = Tally(
            len(images),
            images.device,
            max_forwards,
            max_backwards,
            max_passes,
            strict,
            deadline,
            watch,
        )
        self._passes, self._in_float32 = passes, passes is None or not passes.confirms
        self._backward = Backward(
            self.tally.backwards,
            together=max_backwards is None and max_passes is None and self._in_float32,
        )
        self._model, self._gradients = model, gradients
        self._no_answer = (
            None
            if clean_logits is None
            else clean_logits.new_full((1, clean_logits.shape[1]), torch.nan)
        )
        self._remote = getattr(model, "sent", None) is not None
        self._rows = torch.arange(len(images), device=images.device)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def begin(self) -> Images:
        """The images to begin at: the start, or the clean images where there is none."""
        return self.images if self.start is None else self.start

    @property
    def forwards(self) -> Counts:
        """Forward passes of each image so far."""
        return self.tally.forwards[self._rows]

    @property
    def may_refuse(self) -> bool:
        """Whether any image can have been refused an answer by now."""
        return self.tally.limits_forwards or self._remote or self.tally.time_is_over

    @property
    def refused(self) -> Mask:
        """Which images were refused an answer: they get none from now on."""
        if not self.may_refuse and not self.tally.failures:
            return self.tally.no.expand(len(self))
        return self.tally.refused[self._rows]

    @property
    def all_refused(self) -> bool:
        """Whether all images are refused; does not wait for the device where none can be."""
        return self.may_refuse and bool(self.refused.all())

    def with_goal(self, goal: Goal) -> "Problem":
        """The same images with another goal; passes are counted together."""
        other = copy(self)
        other.goal = goal
        return other

    def note_untried(self, untried: Mask) -> None:
        """Record which images the attack never changed, so that a failure says why."""
        self.tally.untried[self._rows] = untried

    def note_slower(self, remark: str) -> None:
        """Record why the attack's own steps are slow; an empty text says nothing."""
        self.tally.remark = self.tally.remark or remark

    @property
    def gives_gradients(self) -> bool:
        """Whether gradients are available."""
        return self._gradients

    def without_gradients(self) -> "Problem":
        """The same problem with scores only."""
        closed = copy(self)
        closed._gradients = False
        return closed

    def in_float32(self) -> "Problem":
        """The same problem without passes in bfloat16."""
        other = copy(self)
        other._in_float32 = True
        return other

    def _directly(self) -> "Problem":
        """The same problem with passes of the model itself, not replayed."""
        if self._passes is None:
            return self
        other = copy(self)
        other._passes = None
        return other

    def reseeded(self, number: int) -> "Problem":
        """The same problem with other random numbers, for another trial."""
        other = copy(self)
        other.rng = self.rng.reseeded(number)
        return other

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Passes made inside are also listed under this name."""
        before = Passes(self.tally.forwards.clone(), self.tally.backwards.clone())
        try:
            yield
        finally:
            self.tally.note_stage(name, before)

    def credit(self, better: Mask, name: str) -> None:
        """Record that this stage found the best of these images."""
        number = list(self.tally.stages).index(name)
        self.tally.found_by[self._rows[better]] = number

    def logits(self, images: Images) -> Logits:
        """Logits of one candidate per image of the problem; NaN where an answer is refused.

        Of several copies of an image, some may be answered.
        """
        assert len(images) == len(self), "one candidate per image; cut the problem first"
        self.tally.look_at_clock()
        if not self.may_refuse:
            return self._ask(images)
        may = self.tally.may_forward(self._rows)
        if may.all():
            return self._ask(images)
        assert self._no_answer is not None, "limits need clean_logits"
        nothing = 0 * images.flatten(1)[:, :1].to(self._no_answer.dtype)
        logits = self._no_answer + nothing  # so that there is a gradient, which is made zero
        if not may.any():
            return logits
        return logits.index_put((may,), self[may]._ask(images[may]))

    def gradient(self, images: Images, loss: Callable[[Logits], PerImage]) -> Images:
        """Gradient of ``loss`` at ``images``, image by image."""
        return self.logits_and_gradient(images, loss)[1]

    def logits_and_gradient(
        self, images: Images, loss: Callable[[Logits], PerImage]
    ) -> tuple[Logits, Images]:
        """Both from one forward and one backward pass; values that are not finite become zero."""
        logits, gradients = self._logits_and_gradients(
            images, lambda logits: loss(logits).unsqueeze(1)
        )
        return logits, next(gradients)

    def logits_and_gradients(
        self, images: Images, losses: Callable[[Logits], Tensor]
    ) -> tuple[Logits, Iterator[Images]]:
        """Logits from one forward pass, and an iterator that makes one backward pass per loss.

        ``losses`` maps logits to several losses per image, of shape (batch, several). A pass may be
        made early, together with others (``backward.py``), but counts when its gradient is taken.
        Passes together are not replayed.
        """
        problem = self._directly() if self._in_float32 else self
        return problem._logits_and_gradients(images, losses)

    def _logits_and_gradients(
        self, images: Images, losses: Callable[[Logits], Tensor]
    ) -> tuple[Logits, Iterator[Images]]:
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            logits = self.logits(images)
            totals = losses(logits).sum(dim=0)
        if not totals.requires_grad:
            raise BadInput(
                "the model passes no gradient back; give it as Classifier(..., access='scores') "
                "and use an attack that needs scores alone"
            )
        return logits.detach(), self._noted(self._backward.gradients(totals, images))

    def features_and_gradient(self, layer: str) -> tuple[Tensor, Tensor, Mask]:
        """The output of a layer at the clean images, and the gradient of all logits' sum there.

        Costs one forward and one backward pass per image. The mask says which images were refused
        one of them; their gradient is zero.
        """
        images = self.images.detach().requires_grad_()
        with torch.enable_grad(), layer_outputs(self._model, layer) as outputs:
            logits = self._directly().logits(images)
        refused = self.refused.clone()
        if not outputs:
            return images, torch.zeros_like(images), refused
        if len(outputs[-1]) == int((~refused).sum()):
            outputs = outputs[-1:]  # of a layer that is called several times, the last call
        total = logits[~refused].sum() if self.may_refuse else logits.sum()
        *parts, grad = torch.autograd.grad(total, (*outputs, images))
        self.tally.note_gradient(self._rows, grad.nan_to_num(0.0, 0.0, 0.0))
        features, gradient = (
            _spread(torch.cat(some).detach(), ~refused) for some in (outputs, parts)
        )
        refused |= self.tally.out_of_budget[self._rows]
        return features, gradient.where(~refused.view(-1, 1, 1, 1), 0), refused

    def note_generator_pass(self) -> None:
        """Count one pass of each image through a network of the attack's own."""
        if self.tally.generator is None:
            self.tally.generator = torch.zeros_like(self.tally.forwards)
        self.tally.generator.index_add_(0, self._rows, self.tally.one.expand(len(self)))

    def _noted(self, gradients: Iterator[Images]) -> Iterator[Images]:
        for grad in gradients:
            grad = grad.nan_to_num(0.0, 0.0, 0.0)
            self.tally.note_gradient(self._rows, grad)
            yield grad

    def _ask(self, images: Images) -> Logits:
        """Logits from the model itself; NaN where it fails to answer."""
        self.tally.forwards.index_add_(0, self._rows, self.tally.one.expand(len(self)))
        if self._gradients and torch.is_grad_enabled() and images.requires_grad:
            logits = self._query(_CountBackward.apply(images, self.tally, self._rows))
            self._note(images, logits)
            return logits
        try:
            with torch.no_grad():
                logits = self._query(images)
        except NoAnswer as error:
            if error.logits is None or self._no_answer is None:
                raise
            self.tally.note_failures(self._rows, error.reasons)
            answered = torch.ones(len(self), dtype=torch.bool)
            answered[list(error.reasons)] = False
            rows = answered.nonzero().squeeze(1).to(images.device)
            self[rows]._note(images[rows], error.logits[rows])
            failed: Logits = error.logits
            return failed
        self._note(images, logits)
        return logits

    def _query(self, images: Images) -> Logits:
        if self._passes is None:
            return self._model(images)
        return self._passes(images, self.goal, float32=self._in_float32)

    def _note(self, images: Images, logits: Logits) -> None:
        """Record the answers, for the trace and for a second run, without slack or in float32."""
        if self._tracer is not None:
            changed, spent = images.detach() != self.images, self.tally.backwards[self._rows]
            self._tracer.note(self._rows, spent, self.goal, self._judged(logits), changed)
        if (watch := self.tally.watch) is not None:
            passes = self.tally.forwards, self.tally.backwards
            watch.see(self._rows, images.detach(), self.goal, logits.detach(), *passes)
        coarse = self._passes is not None and not self._in_float32
        if coarse or self.goal.slack:
            margin = self.goal.margin(logits.detach())
            if coarse:
                self.tally.believed.index_add_(0, self._rows, (margin <= 0).long())
            if self.goal.slack:
                self.tally.note_near(self._rows, margin, self.goal.slack)

    def _judged(self, logits: Logits) -> Logits:
        """The logits; NaN where a search in bfloat16 was believed."""
        judged = None if self._passes is None else self._passes.judged
        return logits if judged is None else logits.where(judged.unsqueeze(1), torch.nan)


class Tally:
    """Passes of each image of the whole problem, and the limits on them.

    Attributes:
        forwards, backwards: The passes.
        out_of_budget: Images that were refused a pass beyond the limit.
        out_of_time: Images that were refused a pass after the time limit.
        refused: Images that were refused an answer, for these reasons or because the model failed.
        deadline: When the time is over, by ``time.perf_counter``; None for never.
        time_is_over: Whether a forward pass was requested after that, or after a stop.
        watch: Sees every candidate and may stop the run; None for nobody.
        failures: Why a remote model gave no answer, by the row of the image.
        flat: Number of gradients that were all zero.
        untried: Images that the attack says it never changed.
        near: Candidates that met the goal without its slack, but not with it.
        believed: Candidates of a search in bfloat16 whose margin is at most zero, confirmed or not.
        refuted: Images that did not fool in float32 after a search in bfloat16.
        stages: The passes of each stage of an attack that has several, in order.
        found_by: Index of the stage that found the best of each image; -1 for none.
        remark: Why the attack's own steps are slow; empty text for no reason.
        generator: Passes through a network of the attack's own; None if it has none.
        one, no: Constants on the device, expanded to the number of rows.
    """

    def __init__(
        self,
        images: int,
        device: torch.device,
        max_forwards: int | None,
        max_backwards: int | None,
        max_passes: int | None,
        strict: bool,
        deadline: float | None,
        watch: Watch | None,
    ) -> None:
        self.forwards: Counts = torch.zeros(images, dtype=torch.long, device=device)
        self.backwards: Counts = torch.zeros_like(self.forwards)
        self.out_of_budget: Mask = torch.zeros_like(self.forwards, dtype=torch.bool)
        self.out_of_time: Mask = torch.zeros_like(self.out_of_budget)
        self.refused: Mask = torch.zeros_like(self.out_of_budget)
        self.deadline, self.time_is_over, self.watch = deadline, False, watch
        self.failures: dict[int, str] = {}
        self.flat: Counts = torch.zeros_like(self.forwards)
        self.untried: Mask = torch.zeros_like(self.out_of_budget)
        self.near: Counts = torch.zeros_like(self.forwards)
        self.believed: Counts = torch.zeros_like(self.forwards)
        self.refuted: Mask = torch.zeros_like(self.out_of_budget)
        self.stages: dict[str, Passes] = {}
        self.found_by: Counts = torch.full_like(self.forwards, -1)
        self.remark = ""
        self.generator: Counts | None = None
        self.max_forwards, self.max_backwards, self.max_passes = (
            max_forwards,
            max_backwards,
            max_passes,
        )
        self.strict = strict
        self.one = torch.ones((), dtype=torch.long, device=device)
        self.no = self.one == 0

    @property
    def limits_forwards(self) -> bool:
        return self.max_forwards is not None or self.max_passes is not None

    def look_at_clock(self) -> None:
        if self.deadline is not None and not self.time_is_over:
            self.time_is_over = time.perf_counter() >= self.deadline
        if self.watch is not None and self.watch.stopped:
            self.time_is_over = True

    def may_forward(self, rows: Tensor) -> Mask:
        """Which of the rows may be forwarded; the others are refused."""
        may = ~self.refused[rows]
        if self.time_is_over:
            self.out_of_time[rows[may]] = True
            self.refused[rows[may]] = True
            return torch.zeros_like(may)
        if self.limits_forwards:
            within = self._within(self.forwards, rows[may], self.max_forwards, "forward")
            self.refused[rows[may][~within]] = True
            may = may.index_put((may,), within)
        return may

    def may_backward(self, rows: Tensor) -> Mask | None:
        if self.max_backwards is None and self.max_passes is None:
            return None
        return self._within(self.backwards, rows, self.max_backwards, "backward")

    def note_failures(self, rows: Tensor, reasons: dict[int, str]) -> None:
        """Record that the model gave no answer for some rows, so they had no pass."""
        lost = rows[list(reasons)]
        self.forwards.index_add_(0, lost, -torch.ones_like(lost))
        self.refused[lost] = True
        for row, reason in zip(lost.tolist(), reasons.values(), strict=True):
            self.failures.setdefault(row, reason)

    def note_stage(self, name: str, before: Passes) -> None:
        """Add the passes since ``before`` to those of a stage."""
        none = torch.zeros_like(self.forwards)
        known = self.stages.get(name, Passes(none, none))
        self.stages[name] = Passes(
            known.forwards + self.forwards - before.forwards,
            known.backwards + self.backwards - before.backwards,
        )

    def note_gradient(self, rows: Tensor, grad: Images) -> None:
        self.flat.index_add_(0, rows, grad.flatten(1).any(dim=1).logical_not().long())

    def note_near(self, rows: Tensor, margin: PerImage, slack: float) -> None:
        near = (margin >= 0) & (margin < slack)
        self.near.index_add_(0, rows, near.long())

    def _within(self, spent: Tensor, rows: Tensor, limit: int | None, kind: str) -> Mask:
        copies = _copies_before(rows)
        within = torch.ones_like(rows, dtype=torch.bool)
        if limit is not None:
            within = spent[rows] + copies < limit
        if self.max_passes is not None:
            within &= (self.forwards + self.backwards)[rows] + copies < self.max_passes
        self.out_of_budget[rows[~within]] = True
        if self.strict and not within.all():
            most = f"{limit} {kind}" if self.max_passes is None else str(self.max_passes)
            raise OverBudget(f"an image needs more than its {most} passes")
        return within


def _spread(some: Tensor, rows: Mask) -> Tensor:
    """One row per image, where ``rows`` says which of them ``some`` has; the others are zero."""
    whole = some.new_zeros((len(rows), *some.shape[1:]))
    whole[rows] = some
    return whole


def _copies_before(rows: Tensor) -> Tensor:
    """For each entry, how many equal ones stand before it."""
    order = rows.argsort(stable=True)
    ranked = rows[order]
    first = torch.searchsorted(ranked, ranked)
    index = torch.arange(len(rows), device=rows.device)
    return torch.empty_like(rows).index_put_((order,), index - first)


class _CountBackward(torch.autograd.Function):
    """The identity; counts one backward pass per row."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, tally: Tally, rows: Tensor) -> Tensor:
        ctx.tally, ctx.rows = tally, rows
        return images.view_as(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        within = ctx.tally.may_backward(ctx.rows)
        if within is None:
            ctx.tally.backwards.index_add_(0, ctx.rows, ctx.tally.one.expand(len(ctx.rows)))
            return grad, None, None
        ctx.tally.backwards.index_add_(0, ctx.rows, within.long())
        return grad.where(within.view(-1, 1, 1, 1), 0), None, None
