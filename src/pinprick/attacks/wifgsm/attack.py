"""WI-FGSM: weigh a dense attack element by element, and open as few gates as will do.

Lin, Lou, Wang, Jalaian, Yuan: Towards interpretable adversarial examples via sparse adversarial
attack. 2025. Equations 6 to 22 and Algorithm 1.

    delta   = I-FGSM(x),   y_adv = the class it reaches, or the target
    w       = pi(w - tau / eps)                             pi: ReLU; tailored by tau
    J       = CE(f(x + w * delta), y_adv) + lam * sum_j H(w_j)
    w       = w - lr * v,   v = momentum * v + grad J       H' replaced by q_a, a Gaussian
    x*      = x + Omega * H(w) * delta                      Omega: room that stays in [0, 1]

The steps are in ``learning.py``, ``H`` and ``q_a`` in ``parts/heaviside.py``. Two forward passes a
step, one for the gradient and one to judge ``x*``, and one backward pass; before that those of the
start, once or twice, and, if there is no target, one forward pass to see the class it reaches.

Where the text cannot be taken literally, and what is done instead:

- Scale. With ``lr`` = 0.01 on ``J`` as printed, ``w`` moves 1e-6 per step while tau / eps = 19 is
  taken off: no gate ever opens. The authors' code multiplies ``J`` by 1e5, which suits one size of
  image and one eps. By default the gradient of CE is divided by its largest value over the gates,
  step by step and image by image, and ``J`` is multiplied by (1 - momentum) / (lr * eps). So a gate
  that is pulled steadily with the largest force crosses the range of pixel values in one step,
  whatever the network, the size of the image and eps; tau is then a share of that range, and
  ``lam`` weighs the count against the largest force. ``loss_scale`` = 1e5 gives the constant.
- tau. One value for all images leaves some unfooled. By default each image finds its own, starting
  from the printed 0.30: up by ``tau_rate`` after a step that fooled, down after one that did not;
  ``lam`` goes up and down with it. A number stays as it is.
- Box. Nothing holds ``x + w * delta`` inside [0, 1] while gates are learnt, so the loss is met by
  images that cannot exist. By default ``w`` is held below ``Omega``; then that image is valid, and
  is judged too, for nothing. ``Omega`` as printed, "symmetric", has no room where a value is 0 or
  1; "directed" is the room on the side that delta points to. Both satisfy Proposition 2.
- Shut gates. Where w is 0, Algorithm 1 has the slope q_a(0); in Equation 20 the ReLU is flat there
  and nothing pulls a gate shut that is shut already. ``penalise`` says which, "all" or "open". With
  "open", gates pass through the width of q_a in one step, and ``lam`` has next to no effect.
- Lost images. Where no gates have fooled after all steps, they are all opened and the steps taken
  anew, shutting from there; not with a tau of one's own.
- Result. Not the last gates, but the sparsest valid image that met the goal.
- Where the start does not change the class, ``y_adv`` is the strongest other class after it, and
  the start is run again towards that, as Algorithm 1 has it: a start that led nowhere leaves gates
  that lead nowhere.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.ifgsm import IFGSM
from pinprick.attacks.wifgsm.learning import TAU, Learning
from pinprick.errors import BadInput
from pinprick.goal import Goal, strongest_other
from pinprick.parts.best import Best
from pinprick.parts.heaviside import Box
from pinprick.problem import Problem
from pinprick.random import LARGEST_NORMAL
from pinprick.settings import setting
from pinprick.types import Images, Labels


@dataclass(frozen=True, kw_only=True)
class WIFGSM(Attack):
    """Gates over the change that a dense attack makes, learnt so that few are open.

    Attributes:
        start: The dense attack; its radius is ``eps``, its length of a step ``alpha``.
        steps: Number of gradient steps, ``T``.
        lam: Weight of the count of open gates, ``lambda``.
        a: Width of the Gaussian that stands in for the derivative of the step function.
        tau: What each step takes off the gates, where pixel values run from 0 to 1; None to find
            a value for each image.
        tau_rate: The factor by which such a value moves in a step.
        lr: Learning rate, ``eta``.
        momentum: Share of the last update that is kept.
        loss_scale: What the loss is multiplied by; None for units of the image's own gradient.
        gates: The first ``w``, standard "normal" or "zeros".
        penalise: The gates that the count pulls shut, "all" or those that are "open".
        box: The room given to an open gate, "directed" or, as printed, "symmetric".
        bounded: Whether gates stay within that room while they are learnt.
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
        revision=2,
        differences=(
            "The gradient is divided by its largest value over the gates, per image and step, "
            "and scaled by `(1 - momentum) / (lr eps)`; as printed no gate ever opens. The "
            "authors' code multiplies by 1e5, as does `loss_scale=1e5`.",
            "Each image finds its own `tau`, starting from the printed 0.30, and `lam` goes "
            "with it; a number given as `tau` stays as it is.",
            "`w` is held below `Omega`, so that `x + w delta` stays in [0, 1] while gates are "
            "learnt; `bounded=False` leaves that out.",
            "`Omega` is the room on the side that `delta` points to; the printed one, "
            '`box="symmetric"`, has none where a value is 0 or 1.',
            "Where a gate is shut, the slope is that of Algorithm 1, not that of Equation 20, "
            'which is `penalise="open"`.',
            "Where no gates have fooled after all steps, all are opened and the steps are taken "
            "anew.",
            "The sparsest valid image that met the goal is returned, not the last.",
            "Where the start does not change the class, it is run again towards the strongest "
            "other class, as in Algorithm 1.",
        ),
    )

    start: Attack = field(default_factory=IFGSM)
    steps: int = setting(100, least=1)
    lam: float = setting(1e-2, least=0)
    a: float = 0.1
    tau: float | None = setting(None, least=0)
    tau_rate: float = setting(1.1, least=1)
    lr: float = setting(1e-2, above=0)
    momentum: float = setting(0.9, least=0, below=1)
    loss_scale: float | None = setting(None, above=0)
    gates: Literal["normal", "zeros"] = "normal"
    penalise: Literal["all", "open"] = "all"
    box: Box = "directed"
    bounded: bool = True

    @classmethod
    def mnist(cls, **settings: Any) -> "WIFGSM":
        """The paper's values for MNIST, but for those given."""
        return cls(**{"steps": 100, "lam": 1e-2, **settings})

    @classmethod
    def cifar10(cls, **settings: Any) -> "WIFGSM":
        """The paper's values for CIFAR-10, but for those given."""
        return cls(**{"steps": 100, "lam": 1e-2, **settings})

    @classmethod
    def imagenet(cls, **settings: Any) -> "WIFGSM":
        """The paper's values for ImageNet, but for those given."""
        return cls(**{"steps": 200, "lam": 1e-3, **settings})

    @classmethod
    def printed(cls, **settings: Any) -> "WIFGSM":
        """The text as it stands, with the authors' scale: one tau, no bound, the symmetric box."""
        as_it_stands = {
            "tau": TAU,
            "loss_scale": 1e5,
            "penalise": "open",
            "box": "symmetric",
            "bounded": False,
        }
        return cls(**{**as_it_stands, **settings})

    def __post_init__(self) -> None:
        if getattr(self.start, "eps", None) is None:
            raise BadInput(
                "wifgsm needs a start with a radius eps, as ifgsm or pgd have, "
                f"got {self.start.card.name}"
            )
        if not 0 < abs(self.a) < math.inf:
            raise BadInput(f"wifgsm needs a other than 0, 0.1 as a rule, got {self.a:g}")

    def facts(self) -> Card:
        start = self.start.facts()
        forwards, backwards = start.max_forwards, start.max_backwards
        turns = 2 if self.tau is None and self.bounded else 1
        survive = self._first_tau() < LARGEST_NORMAL * _radius(self.start)  # the first shrinking
        return replace(
            self.card,
            targeted=start.targeted,
            masked=start.masked,
            random=start.random or (self.gates == "normal" and survive),
            max_forwards=None if forwards is None else 2 * forwards + 1 + 2 * turns * self.steps,
            max_backwards=None if backwards is None else 2 * backwards + turns * self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        best, rows = Best(problem.images), torch.arange(len(problem), device=problem.images.device)
        started, reached = self._dense(problem)
        learn = Learning(
            steps=self.steps,
            lam=self.lam,
            a=self.a,
            tau=self._first_tau(),
            tau_rate=self.tau_rate if self.tau is None else None,
            lr=self.lr,
            momentum=self.momentum,
            loss_scale=self.loss_scale,
            open_only=self.penalise == "open",
            box=self.box,
            bounded=self.bounded,
            eps=_radius(self.start),
        )
        found = learn(problem, started, reached, self._first_gates(problem))
        best.offer(found.images, found.cost, found.cost.isfinite(), rows)
        if self.tau is None and self.bounded:
            rows = best.cost.isinf().nonzero().squeeze(1)
            if len(rows):  # all gates open, and shut from there
                wide = torch.full_like(problem.images[rows], torch.inf)
                found = learn(problem[rows], started[rows], reached[rows], wide)
                best.offer(found.images, found.cost, found.cost.isfinite(), rows)
        return best.images

    def _dense(self, problem: Problem) -> tuple[Images, Labels]:
        """What the start makes of the images, and the classes to reach."""
        started, goal = self.start(problem), problem.goal
        if goal.targets is not None:
            return started, goal.targets
        logits = problem.logits(started)
        reached = strongest_other(logits, goal.labels)
        rows = (~goal.met(logits)).nonzero().squeeze(1)
        if len(rows) and self.start.facts().targeted:
            part = problem[rows]
            part.goal = Goal(part.goal.labels, reached[rows])
            started = started.index_copy(0, rows, self.start(part))
        return started, reached

    def _first_tau(self) -> float:
        return TAU if self.tau is None else self.tau

    def _first_gates(self, problem: Problem) -> Images:
        if self.gates == "zeros":
            return torch.zeros_like(problem.images)
        return problem.rng.normal(*problem.images.shape[1:], step=0, use="wifgsm gates")


def _radius(start: Attack) -> float:
    eps: float = start.eps  # type: ignore[attr-defined]
    return eps
