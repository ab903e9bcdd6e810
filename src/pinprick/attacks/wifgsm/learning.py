"""The steps of WI-FGSM: gates over a dense change are learnt, and shut where they can be spared."""

from dataclasses import dataclass

import torch

from pinprick.goal import Goal
from pinprick.parts.best import Best
from pinprick.parts.heaviside import Box, apply_gates, heaviside, heaviside_slope, room, shrink
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.types import Images, Labels

TAU = 0.30  # the printed value, where the search for others begins
_LOWEST, _HIGHEST = 1e-4, 2.0  # no gate stays open under a tau above 2


@dataclass(frozen=True, kw_only=True)
class Learning:
    """The settings of ``WIFGSM`` that its steps need; calling it takes them.

    ``tau_rate`` is None where tau stays as it is, ``open_only`` whether the count pulls only at
    open gates; ``eps`` is the radius of the dense change.
    """

    steps: int
    lam: float
    a: float
    tau: float
    tau_rate: float | None
    lr: float
    momentum: float
    loss_scale: float | None
    open_only: bool
    box: Box
    bounded: bool
    eps: float

    def __call__(self, problem: Problem, started: Images, reached: Labels, w: Images) -> Best:
        """The sparsest valid images that met the goal.

        Args:
            problem: The images.
            started: What the dense attack made of them.
            reached: The classes to head for.
            w: The first gates; infinite ones are as open as the box lets them be.
        """
        images, best, count = problem.images, Best(problem.images), Units("elements").count
        towards = Goal(problem.goal.labels, reached)
        clean = images.to(torch.promote_types(images.dtype, torch.float32))
        delta = started.to(clean.dtype) - clean
        omega = room(clean, delta, self.box) / self.eps
        w, velocity = w.to(clean.dtype), torch.zeros_like(clean)
        tau = clean.new_full((len(clean), 1, 1, 1), self.tau)
        for _ in range(self.steps):
            w = shrink(w, tau / self.eps)
            if self.bounded:
                w = torch.minimum(w, omega)
            soft = clean + w * delta
            asked = (soft.clamp(0, 1) if self.bounded else soft).to(images.dtype)
            logits, grad = problem.logits_and_gradient(asked, towards.cross_entropy)
            valid = apply_gates(clean, delta, omega, w).to(images.dtype)
            met = problem.goal.met(problem.logits(valid))
            best.offer(valid, count(valid, images), met)
            if self.bounded:
                soft_met = problem.goal.met(logits)
                best.offer(asked, count(asked, images), soft_met)
                met = met | soft_met
            if problem.all_refused:
                break

            penalty = self.lam * heaviside_slope(w, self.a)
            if self.open_only:
                penalty = penalty * heaviside(w)
            if self.tau_rate is not None:
                penalty = penalty * tau / TAU
            velocity = self.momentum * velocity + self._scaled(grad * delta, penalty)
            w = w - self.lr * velocity
            if self.tau_rate is not None:
                factor = torch.where(met, self.tau_rate, 1 / self.tau_rate).to(tau.dtype)
                tau = (tau * factor.view(-1, 1, 1, 1)).clamp(_LOWEST, _HIGHEST)
        return best

    def _scaled(self, slope: Images, penalty: Images) -> Images:
        """The gradient of the loss by the gates, at the scale that ``loss_scale`` asks for."""
        if self.loss_scale is not None:
            return self.loss_scale * (slope + penalty)
        largest = slope.abs().amax(dim=(1, 2, 3), keepdim=True)
        slope = slope / largest.clamp_min(torch.finfo(slope.dtype).tiny)
        return (1 - self.momentum) / (self.lr * self.eps) * (slope + penalty)
