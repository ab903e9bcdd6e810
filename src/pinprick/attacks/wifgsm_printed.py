"""WI-FGSM as printed: the paper's sparse attack and nothing else.

Lin, Lou, Wang, Jalaian, Yuan: Towards interpretable adversarial examples via sparse adversarial
attack. 2025. Equations 3 to 22 and Algorithm 1, whose lines are

    1   delta = I-FGSM(eps, x, y_adv)
    2   Omega = min(x / eps, (1 - x) / eps)
    3   for t = 1 to T:
    4       w     = pi(w - tau / eps)                            pi: ReLU
    5       J_adv = J(f(x + w * delta), y_adv) + lambda * sum_j H(w_j)
    6       w     = w - eta * grad_w J_adv                       H' replaced by q_a
    7   delta* = Omega * H(pi(w - tau / eps)) * delta

The comments in the code name these lines. Each step takes one forward and one backward pass. One
more forward pass judges the last image, or one per step with ``keep="sparsest"``.

``loss_scale`` is the one addition, and nothing works without it: with ``eta`` = 0.01 on ``J_adv``
as printed, ``w`` moves by about 1e-6 per step while line 4 takes off tau / eps = 19. The authors'
code multiplies the loss by 1e5.

The paper contradicts itself in four places. A setting names the reading, and the default is that of
Algorithm 1, except for the momentum, which only the text gives.

- ``reading``: Algorithm 1 overwrites ``w`` by the shrink, so that shut gates get a gradient from
  both terms. Equation 20 keeps the shrink inside the loss, so that they get none. There ``w``
  starts at tau / eps plus the size of the normal draw, since it must start above tau / eps.
- ``keep``: Algorithm 1 returns the last image. The authors' code keeps the sparsest that fools.
- ``momentum``: the text has 0.9, Algorithm 1 none.
- ``start_label``: Algorithm 1 steps towards ``y_adv`` (Equation 4), the proof of Proposition 2 away
  from ``y_true`` (Equation 3). Without a target, ``y_adv`` is the class that Equation 3 reaches, or
  the strongest other class where it reaches none.

``wifgsm`` is the form that holds for all sizes, networks and radii.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch

from pinprick.attacks.card import Attack, Card
from pinprick.attacks.ifgsm import IFGSM
from pinprick.goal import Goal, strongest_other
from pinprick.parts.best import Best
from pinprick.parts.heaviside import apply_gates, heaviside, heaviside_slope, room, shrink
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.random import LARGEST_NORMAL
from pinprick.settings import pixel_distance, setting
from pinprick.types import Images, Labels


@dataclass(frozen=True, kw_only=True)
class WIFGSMPrinted(Attack):
    """The paper's gates over the change of I-FGSM, learnt as Algorithm 1 has it.

    Attributes:
        start_eps, start_step_size, start_steps: Radius, step size and steps of I-FGSM.
        steps: Number of steps that learn the gates, ``T``.
        lam: Weight of the count of open gates, ``lambda``.
        tau: What each step takes off the gates, where pixel values run from 0 to 1.
        a: Width of the Gaussian that stands in for the derivative of the step function.
        lr: Learning rate, ``eta``.
        momentum: Share of the last update that is kept.
        loss_scale: What ``J_adv`` is multiplied by. Not in the paper.
        reading: "algorithm1", or "eq20" for the shrink inside the loss.
        keep: "last" for the image of line 7, or "sparsest" for the sparsest that fooled.
        start_label: "adversarial" for a start towards ``y_adv``, or "true" for one away from
            ``y_true``.
    """

    card: ClassVar[Card] = Card(
        name="wifgsm_printed",
        title="WI-FGSM as printed",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="Towards interpretable adversarial examples via sparse adversarial attack, 2025",
        differences=(
            "The loss is multiplied by `loss_scale`, 1e5 as in the authors' code; as printed no "
            "gate ever opens.",
            "The paper does not say where `w` starts; it is drawn from the standard normal "
            "distribution, as in the authors' code.",
            "An image that the last gates do not fool is returned as it came.",
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "mnist": {"steps": 100, "lam": 1e-2, "tau": 0.30},
        "cifar10": {"steps": 100, "lam": 1e-2, "tau": 0.30},
        "imagenet": {"steps": 200, "lam": 1e-3, "tau": 0.30},
    }

    start_eps: float = pixel_distance(4 / 255)
    start_step_size: float = pixel_distance(1 / 255)
    start_steps: int = setting(10, least=1)
    steps: int = setting(100, least=1)
    lam: float = setting(1e-2, least=0)
    tau: float = setting(0.30, least=0)
    a: float = setting(0.1, above=0)
    lr: float = setting(1e-2, above=0)
    momentum: float = setting(0.9, least=0, below=1)
    loss_scale: float = setting(1e5, above=0)
    reading: Literal["algorithm1", "eq20"] = "algorithm1"
    keep: Literal["last", "sparsest"] = "last"
    start_label: Literal["adversarial", "true"] = "adversarial"

    def facts(self) -> Card:
        starts = 2 if self.start_label == "adversarial" else 1
        judged = self.steps if self.keep == "sparsest" else 1
        survive = (
            self.reading == "eq20" or self.tau < LARGEST_NORMAL * self.start_eps
        )  # the first shrink
        return replace(
            self.card,
            random=survive,
            max_forwards=starts * self.start_steps + 1 + self.steps + judged,
            max_backwards=starts * self.start_steps + self.steps,
        )

    def __call__(self, problem: Problem) -> Images:
        best, count = Best(problem.images), Units("elements").count
        x = problem.images.to(torch.promote_types(problem.images.dtype, torch.float32))
        started, y_adv = self._start(problem)
        delta = started.to(x.dtype) - x  # line 1
        omega = room(x, delta, "symmetric") / self.start_eps  # line 2, Proposition 2
        w, velocity = self._first_gates(problem).to(x.dtype), torch.zeros_like(x)
        towards = Goal(problem.goal.labels, y_adv)
        opened = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        for step in range(1, self.steps + 1):  # line 3
            gates = self._gates(w)  # line 4
            asked = (x + gates * delta).to(problem.images.dtype)
            slope = delta * problem.gradient(asked, towards.cross_entropy)  # line 5, Eq. 20: J
            slope = slope + self.lam * self._count_slope(gates)  # line 5: sum H
            if self.reading == "eq20":  # the ReLU of Eq. 19 passes no gradient to shut gates
                slope = slope * heaviside(gates)
            else:  # line 4 overwrites w
                w = gates
            velocity = self.momentum * velocity + self.loss_scale * slope
            w = w - self.lr * velocity  # line 6
            opened |= (w > self.tau / self.start_eps).flatten(1).any(dim=1)
            if self.keep == "sparsest" or step == self.steps:
                valid = self._valid(x, delta, omega, self._gates(w))  # line 7
                valid = valid.to(problem.images.dtype)
                met = problem.goal.met(problem.logits(valid))
                best.offer(valid, count(valid, problem.images), met)
            if problem.all_refused:
                break
        problem.note_untried(~opened)
        return best.images

    def _gates(self, w: Images) -> Images:
        """Eq. 19."""
        return shrink(w, self.tau / self.start_eps)

    def _count_slope(self, gates: Images) -> Images:
        """Eq. 18: ``q_a``, the slope of the count of open gates."""
        return heaviside_slope(gates, self.a)

    def _valid(self, x: Images, delta: Images, omega: Images, gates: Images) -> Images:
        """Eq. 22."""
        return apply_gates(x, delta, omega, gates)

    def _dense(self) -> Attack:
        return IFGSM(eps=self.start_eps, steps=self.start_steps, step_size=self.start_step_size)

    def _start(self, problem: Problem) -> tuple[Images, Labels]:
        """What I-FGSM makes of the images, and ``y_adv``."""
        start = self._dense()
        labels, targets = problem.goal.labels, problem.goal.targets
        if targets is None or self.start_label == "true":
            started = start(problem.with_goal(Goal(labels)))  # Eq. 3
            if targets is None:  # the class that it reaches
                logits = problem.logits(started)
                targets = strongest_other(logits, labels)
            if self.start_label == "true":
                return started, targets
        return start(problem.with_goal(Goal(labels, targets))), targets  # Eq. 4

    def _first_gates(self, problem: Problem) -> Images:
        drawn = problem.rng.normal(*problem.images.shape[1:], step=0, use="wifgsm gates")
        if self.reading == "algorithm1":
            return drawn
        return self.tau / self.start_eps + drawn.abs()
