"""VFGA: one unit per step, moved by the best of several random amounts up or down.

Césaire, Schott, Hajri, Lamprier, Gallinari: Stochastic sparse adversarial attacks. ICTAI 2021.

``p`` is the probability of the label, which is to fall, or of the target, which is to rise. Of the
elements that have not changed yet, two are chosen, one to raise and one to lower:

    i+ = argmax_i  (1 - x_i) * s_i,    i- = argmax_i  x_i * (-s_i)      s: slope towards the goal
    x_i+ + |n| * (1 - x_i+),           x_i- - |n| * x_i-                n: normal, ``samples`` each

Values are clipped to [0, 1]. The samples vote: one that meets the goal wins, otherwise the one
whose ``p`` is best. The step is repeated until the goal is met. One forward and one backward pass
per step, and one forward pass per sample.

With ``unit="pixels"`` every channel of a pixel has its own direction, and all of them move by the
same share of their way. A pixel is raised or lowered by the direction that promises more in sum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card
from pinprick.goal import Goal
from pinprick.parts.choose_units import corner
from pinprick.parts.score_loss import blocks
from pinprick.parts.units import Units
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.types import Images, Labels, Logits, Mask, PerImage


@dataclass(frozen=True, kw_only=True)
class VFGA(Attack):
    """Random amounts for the unit that promises most upwards and the one that does downwards.

    Attributes:
        steps: Most steps, each of which changes one unit; None for as many as there are units.
        samples: Random amounts per step and direction.
        unit: What is changed and counted: "elements" (channel values), as in the paper, or
            "pixels" (all channels of a pixel together).
    """

    card: ClassVar[Card] = Card(
        name="vfga",
        title="VFGA",
        norm="l0",
        unit="elements",
        kind="minimal",
        access="gradients",
        targeted=True,
        masked=True,
        random=True,
        paper="arXiv:2011.12423",
        differences=(
            "The gradient is that of the log odds of the class instead of its probability. It "
            "ranks elements alike and does not vanish if the network is confident.",
            "If no unit has a gain in one direction, its samples go to the unit of the other. If "
            "none has a gain in either, the image leaves. The published code continues.",
            '`unit="pixels"` is ours.',
        ),
    )
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"quick": {"steps": 110, "samples": 4}}

    steps: int | None = setting(None, least=1)
    samples: int = setting(10, least=1)
    unit: Literal["elements", "pixels"] = "elements"

    def facts(self) -> Card:
        card = replace(self.card, unit=self.unit)
        if self.steps is None:
            return card
        most = self.steps * (1 + 2 * self.samples)
        return replace(card, max_forwards=most, max_backwards=self.steps)

    def __call__(self, problem: Problem) -> Images:
        units, found, adv = Units(self.unit), problem.images.clone(), problem.images.clone()
        free = ~units.changed(adv, adv)
        rows = torch.arange(len(adv), device=adv.device)  # images still on their way
        for step in range(self.steps or free.shape[1]):
            part, x = problem[rows], adv[rows]
            grad = part.gradient(x, _odds_of(part.goal))
            edge = corner(grad, part)
            pair, hope = two_units(grad, edge, x, free[rows], units)
            if not hope.any():
                break
            rows, part, x, edge, pair = rows[hope], part[hope], x[hope], edge[hope], pair[hope]
            unit = pair.repeat_interleave(self.samples, dim=1)
            share = part.rng.normal(2 * self.samples, step=step, use="vfga, share").abs()
            best, met = _vote(part, x, edge, unit, share, units)
            unit, share = unit.gather(1, best).squeeze(1), share.gather(1, best).squeeze(1)
            x = moved(x, edge, unit, share, units)
            adv[rows], found[rows[met]] = x, x[met]
            free[rows, unit] = False
            rows = rows[~met & ~part.refused]
            if not len(rows):
                break
        return found


def two_units(
    grad: Images, edge: Images, adv: Images, free: Tensor, units: Units
) -> tuple[Tensor, Mask]:
    """The free units to raise and to lower, (batch, 2), and where any of them promises a gain.

    Without a unit for one direction, that of the other stands for both.
    """
    gain = grad * (adv - edge)
    rise = units.total(gain.where(edge > adv, 0))
    both = units.total(gain).masked_fill(~free, 0)
    upwards = 2 * rise >= both
    sides = torch.stack((both.where(upwards, 0), both.where(~upwards, 0)), dim=1)
    most, unit = sides.max(dim=2)
    return torch.where(most > 0, unit, unit.flip(1)), (most > 0).any(dim=1)


def moved(adv: Images, edge: Images, unit: Labels, share: PerImage, units: Units) -> Images:
    """``adv`` with one unit of each moved by a share of its way to ``edge``, at most all of it."""
    one = torch.zeros_like(units.total(adv), dtype=torch.bool).scatter_(1, unit.unsqueeze(1), True)
    wide = share.to(adv.dtype).view(-1, 1, 1, 1)
    there = torch.where(wide < 1, adv + wide * (edge - adv), edge)
    return torch.where(units.spread(one, adv), there, adv)


def _vote(
    problem: Problem, adv: Images, edge: Images, unit: Tensor, share: Tensor, units: Units
) -> tuple[Tensor, Mask]:
    """Which sample of each image is best, and whether it meets the goal."""
    odds, met = torch.full_like(share, torch.inf), torch.zeros_like(share, dtype=torch.bool)
    image = torch.arange(len(problem), device=share.device)
    for some in blocks(problem, share.shape[1]):
        copies = image.repeat_interleave(some.stop - some.start)
        part, amounts = problem[copies], share[:, some].flatten()
        tries = moved(adv[copies], edge[copies], unit[:, some].flatten(), amounts, units)
        logits = part.logits(tries)
        loss = _odds_of(part.goal)(logits).nan_to_num(nan=torch.inf)
        odds[:, some] = loss.view(len(problem), -1).to(odds.dtype)
        met[:, some] = part.goal.met(logits).view(len(problem), -1)
    wins = met.any(dim=1)
    best = odds.masked_fill(wins.unsqueeze(1) & ~met, torch.inf).argmin(dim=1, keepdim=True)
    return best, wins


def _odds_of(goal: Goal) -> Callable[[Logits], PerImage]:
    """The log odds of the label, or minus those of the target."""
    anchor = (goal.labels if goal.targets is None else goal.targets).unsqueeze(1)

    def odds(logits: Logits) -> PerImage:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        own = logits.gather(1, anchor).squeeze(1)
        rest = logits.scatter(1, anchor, -torch.inf).logsumexp(dim=1)
        return own - rest if goal.targets is None else rest - own

    return odds
