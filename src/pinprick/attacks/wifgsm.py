"""WI-FGSM: gates over a dense change, learnt so that as few as possible are open.

Lin, Lou, Wang, Jalaian, Yuan: Towards interpretable adversarial examples via sparse adversarial
attack. 2025. ``wifgsm_printed`` is the paper line by line. This is our form of it:

    w       = pi(w - tau)                              the shrink; pi: ReLU
    x_w     = x + w * d, inside [0, 1]                 d: the side to which a gate opens
    g       = grad_w L(x_w) / max_j |grad_w L(x_w)|_j  L: cross-entropy of the goal
    v       = momentum * v + (1 - momentum) * (g + lam * q_a(w))
    w       = w - step_size * v                        q_a: stands in for the slope of the count
    x*      = x + Omega * H(w) * d                     open gates go to the edge of [0, 1]

Gates are in pixel values here, ``eps`` times those of the paper. ``x_w`` and ``x*`` change the same
elements. Both are queried after every step, and the sparsest image that met the goal is kept.
A step takes two forward passes and one backward pass. Two forward passes judge the last gates.

Departures from the paper, and what each is for:

- Scale. The paper's step depends on ``eps`` and on how steep the network is. Here the gate that is
  pulled most moves by ``step_size`` per step, for any network, image size and ``eps``.
- tau. Each image finds its own, from 0.30: times ``tau_rate`` after a step that fooled, divided by
  it after a step that did not. ``lam`` goes up and down with it. A number stays as it is.
- lam. Shut gates feel ``lam * q_a(0)``, as in Algorithm 1. So a gate needs more force to open than
  to stay open. The paper's 0.01 is nearly without effect in units of the largest force.
- Sides. A gate may open to either side (``turn``), so that the dense change goes on following the
  gradient. The paper fixes the sides by I-FGSM at the clean image, as does ``turn=False``.
- Loss. Without a target, ``L`` lets any other class win. ``aim="reached"`` heads for the class that
  I-FGSM reached, as in the paper.
- Sizes. All gates act alike. In the paper a gate acts in proportion to what I-FGSM changed there.
- Box. ``x_w`` stays in [0, 1] while gates are learnt, and an open gate has the room on its own
  side. ``box="symmetric"`` is the paper's room, which is 0 where a value is 0 or 1.
- Lost images. Where nothing has fooled, all gates are opened to the sides of the dense attack
  ``start``, and the steps are taken again. Only then is ``start`` run, unless ``turn`` or ``aim``
  need it before.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.ifgsm import IFGSM
from pinprick.errors import BadInput
from pinprick.goal import Goal, strongest_other
from pinprick.parts.best import Best
from pinprick.parts.box import keep_allowed
from pinprick.parts.heaviside import Box, apply_gates, heaviside_slope, room, shrink
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Labels

_TAU = 0.30  # the printed value, where the search for others begins
_LEAST_TAU = 1e-4


@dataclass(frozen=True, kw_only=True)
class WIFGSM(Attack):
    """Gates over a dense change, learnt so that few are open.

    Attributes:
        start: The dense attack; only the signs of its change are used.
        steps: Number of gradient steps, ``T``.
        lam: Weight of the count of open gates, ``lambda``, where the largest force is 1.
        a: Width of the Gaussian that stands in for the derivative of the step function, where
            pixel values run from 0 to 1.
        tau: What each step takes off the gates, where pixel values run from 0 to 1; None to find
            a value for each image.
        tau_rate: The factor by which such a value moves in a step.
        step_size: How far the gate that is pulled most moves in a step, where pixel values run
            from 0 to 1.
        momentum: Share of the last update that is kept.
        turn: Whether a gate may open to either side, or only to that of ``start``.
        aim: Without a target, head for any other class ("goal") or for the class that ``start``
            reached ("reached").
        box: The room of an open gate: to the edge on its side ("directed") or, as printed, to the
            nearer edge ("symmetric").
    """

    card: ClassVar[Card] = Card(
        name="wifgsm",
        title="WI-FGSM",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        paper="Towards interpretable adversarial examples via sparse adversarial attack, 2025",
        revision=3,
        differences=(
            "The gradient is divided by its largest value over the gates, per image and step. So "
            "the gate that is pulled most moves by `step_size`.",
            "As printed no gate ever opens; the authors' code multiplies the loss by 1e5.",
            "Each image finds its own `tau`, starting from the printed 0.30, and `lam` goes "
            "with it. A number given as `tau` stays as it is.",
            "`lam` is 0.1 of the largest force; the printed 0.01 has little effect.",
            "A gate may open to either side; `turn=False` keeps the sides of I-FGSM.",
            'Without a target, the loss lets any other class win; `aim="reached"` heads for the '
            "class that I-FGSM reached.",
            "All gates act alike; in the paper they act in proportion to the change of I-FGSM.",
            "`x + w delta` stays in [0, 1] while gates are learnt.",
            'An open gate has the room on its own side; the printed one, `box="symmetric"`, has '
            "none where a value is 0 or 1.",
            "Where nothing has fooled after all steps, all gates are opened to the sides of "
            "I-FGSM, and the steps are taken again.",
            "The sparsest valid image that met the goal is returned, not the last.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "imagenet": {"steps": 200, "lam": 0.3, "momentum": 0.9},
    }

    start: Attack = field(default_factory=IFGSM)
    steps: int = setting(100, least=1)
    lam: float = setting(0.1, least=0)
    a: float = 0.1
    tau: float | None = setting(None, least=0)
    tau_rate: float = setting(1.2, least=1)
    step_size: float = setting(2.0, above=0)
    momentum: float = setting(0.75, least=0, below=1)
    turn: bool = True
    aim: Literal["goal", "reached"] = "goal"
    box: Box = "directed"

    def __post_init__(self) -> None:
        if self.start.facts().norm == "l0":
            raise BadInput(
                "wifgsm needs a dense start, such as ifgsm or pgd: only the signs of its change "
                f"are used, and {self.start.card.name} is sparse"
            )
        if not 0 < abs(self.a) < math.inf:
            raise BadInput(f"wifgsm needs a other than 0, 0.1 as a rule, got {self.a:g}")

    def facts(self) -> Card:
        start = self.start.facts()
        forwards, backwards = start.max_forwards, start.max_backwards
        learning = 4 * (self.steps + 1)
        return replace(
            self.card,
            targeted=start.targeted,
            masked=start.masked,
            random=start.random,
            max_forwards=None if forwards is None else 2 * forwards + 1 + learning,
            max_backwards=None if backwards is None else 2 * backwards + 2 * self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        best, towards, dense = Best(problem.images), problem.goal, None
        sides = torch.ones_like(problem.images)
        if not self.turn or self.aim == "reached":
            dense, reached = self._dense(problem)
            sides = sides if self.turn else dense
            towards = towards if self.aim == "goal" else Goal(towards.labels, reached)
        self._learn(problem, towards, sides, torch.zeros_like(sides), best)
        rows = best.cost.isinf().nonzero().squeeze(1)
        if len(rows):  # all gates open, to the sides of the dense attack
            part, found = problem[rows], best[rows]
            dense = self._dense(part)[0] if dense is None else dense[rows]
            wide = dense if self.turn else torch.ones_like(dense)
            self._learn(part, towards[rows], sides[rows], wide, found)
            best.offer(found.images, found.cost, found.cost.isfinite(), rows)
        return best.images

    def _learn(
        self, problem: Problem, towards: Goal, sides: Images, gates: Images, best: Best
    ) -> None:
        """Learn gates and offer what fools to ``best``.

        Args:
            problem: The images.
            towards: What the loss heads for.
            sides: The side to which a gate above 0 opens, 1 or -1; 0 for a gate without effect.
            gates: The first gates.
            best: Receives the images that met the goal.
        """
        images, count = problem.images, Units("elements").count
        x = images.to(torch.promote_types(images.dtype, torch.float32))
        sides, gates, velocity = sides.to(x.dtype), gates.to(x.dtype), torch.zeros_like(x)
        tau = x.new_full((len(x), 1, 1, 1), _TAU if self.tau is None else self.tau)
        opened = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        for step in range(self.steps + 1):
            gates = gates.sign() * shrink(gates.abs(), tau) if self.turn else shrink(gates, tau)
            gates, soft, hard = self._apply(gates, x, sides)
            soft, hard = soft.to(images.dtype), hard.to(images.dtype)
            met = problem.goal.met(problem.logits(hard))
            best.offer(hard, count(hard, images), met)
            if step == self.steps:
                logits = problem.logits(soft)
            else:
                logits, grad = problem.logits_and_gradient(soft, towards.cross_entropy)
            soft_met, open_gates = problem.goal.met(logits), count(soft, images)
            best.offer(soft, open_gates, soft_met)
            opened |= open_gates > 0
            if step == self.steps or problem.all_refused:
                break

            velocity = self.momentum * velocity
            velocity = velocity + (1 - self.momentum) * self._slope(
                keep_allowed(grad * sides, torch.zeros_like(grad), problem.allowed), gates, tau
            )
            gates = gates - self.step_size * velocity
            if self.tau is None:
                factor = torch.where(met | soft_met, self.tau_rate, 1 / self.tau_rate)
                tau = tau * factor.to(tau.dtype).view(-1, 1, 1, 1)
                tau = tau.clamp(_LEAST_TAU, self.step_size)
        problem.note_untried(~opened)

    def _apply(self, gates: Images, x: Images, sides: Images) -> tuple[Images, Images, Images]:
        """The gates within their room, and the images x_w and x* that they give."""
        change = gates * sides
        most = room(x, change, self.box)
        soft = (x + change.clamp(-most, most)).clamp(0, 1)
        gates = (soft - x) * sides
        return gates, soft, apply_gates(x, change.sign(), most, gates.abs())

    def _scale(self, force: Images) -> Images:
        """The force in units of the largest of its image."""
        largest = force.abs().amax(dim=(1, 2, 3), keepdim=True)
        return force / largest.clamp_min(torch.finfo(force.dtype).tiny)

    def _slope(self, force: Images, gates: Images, tau: Tensor) -> Images:
        """The gradient by the gates: of the loss, at most 1, and of the count of open gates."""
        force = self._scale(force)
        penalty = self.lam * tau / _TAU * heaviside_slope(gates, self.a)
        if not self.turn:
            return force + penalty
        shut = gates == 0  # either side is a way to open it
        held = force.sign() * shrink(force.abs(), penalty)
        return torch.where(shut, held, force + penalty * gates.sign())

    def _dense(self, problem: Problem) -> tuple[Images, Labels]:
        """The sides that the start gives, and the classes to reach."""
        started, goal = self.start(problem), problem.goal
        if goal.targets is not None:
            return self._sides(started - problem.images), goal.targets
        logits = problem.logits(started)
        reached = strongest_other(logits, goal.labels)
        rows = (~goal.met(logits)).nonzero().squeeze(1)
        if len(rows) and self.start.facts().targeted:
            towards = Goal(goal.labels[rows], reached[rows])
            again = self.start(problem[rows].with_goal(towards))
            started = started.index_copy(0, rows, again)
        return self._sides(started - problem.images), reached

    def _sides(self, change: Images) -> Images:
        """The sides to which gates open, from the change that the dense attack makes."""
        return change.sign()
