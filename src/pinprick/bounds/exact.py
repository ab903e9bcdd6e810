"""The fewest units that fool a ReLU network, proved by integer programs.

Where an attack needs k units, one program per rival class asks for an image with at most k - 1
units that lifts the rival to the label (program.py). With a target there is one program. If none
has a solution, k is the optimum. If one has, its image is a better attack, and the other programs
have to beat that. The programs are given bounds of all hidden values over the images that change
at most k - 1 units (linear_bounds.py). A rival that these bounds rule out needs no program.

Neither tolerances nor rounding can make a proof:

- A program accepts images that miss the goal by up to ``slack`` logits. That is twice what the
  solver's tolerance can change, plus twice the numerical noise of the result. So every image that
  fools is well inside of what the program rules out.
- A solution is an attack only after it is rebuilt from its units and the network itself says so, in
  float32 and float64. Its values are those of the widest margin on these units.
- A solution that misses the goal is no attack, and no proof either: both bounds stay apart.
"""

import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from pinprick.bounds.linear_bounds import Ball, Range, hidden_ranges, upper_bounds
from pinprick.bounds.program import Solved, fewest_units, tolerance_effect, widest_margin
from pinprick.bounds.proof import Judge, Proof, status_of, wrong_claims
from pinprick.bounds.read_network import AffineMap, Floats, ReluNetwork, read_network
from pinprick.bounds.tighten import tighten
from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.intake import full_mask
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier, Model, as_classifier
from pinprick.numerical_noise import largest_noise
from pinprick.parts.units import Units
from pinprick.result import AttackResult
from pinprick.types import Allowed, Images, PerImage

_SAFETY = 2  # the slack, against what the tolerance of the solver can change
_SHORTEST = 0.2  # seconds; less time is not worth another program


def prove(
    result: AttackResult,
    model: Classifier | Model,
    *,
    unit: Unit = "elements",
    allowed: Any = None,
    seconds: float = 60.0,
) -> Proof:
    """Bounds on the fewest units that fool the network, per image; equal where proved optimal.

    Needs SciPy (extra ``bounds``). The network is an ``nn.Sequential`` of affine layers and ReLUs,
    with at most 1024 ReLUs and images of at most 4096 elements. The better the attack, the faster
    the proof.

    Args:
        result: The result of an attack; where it failed, the proof starts without an upper bound.
        model: The attacked model.
        unit: What is counted.
        allowed: Where values may change, as for ``run_attack``; the result must have kept to it.
        seconds: Time limit per image. When it ends, the bounds found so far hold.
    """
    check_unit(unit)
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not seconds > 0:
        raise BadInput(f"seconds must be a number above 0, got {seconds!r}")
    classifier = as_classifier(model)
    home, result = result.images.device, result.to("cpu")
    mask = None if allowed is None else full_mask(allowed, result.images).cpu()
    if mask is not None and ((result.adversarial != result.images) & ~mask).any():
        raise BadInput("the result changes values where allowed is False; give the attack's mask")
    judge = Judge(classifier)
    network = read_network(classifier, result.images)
    _check_classes(network, result.goal)
    noise = largest_noise(result)
    masks = [None] * len(result) if mask is None else mask.split(1)
    proofs = [
        _Search(network, judge, one, unit, may, noise, float(seconds)).proof()
        for one, may in zip(result, masks, strict=True)
    ]
    proof = Proof.join(proofs) if proofs else _nothing(result, unit, classifier.name)
    wrong = list(wrong_claims(proof, judge))
    if wrong:
        raise RuntimeError(f"a proof with wrong claims, which is a bug: {'; '.join(wrong)}")
    return proof.to(home)


@dataclass(frozen=True)
class _Bounded:
    """A ball, bounds of its hidden values, and upper bounds of each rival's functions."""

    ball: Ball
    ranges: Sequence[Range]
    tops: Sequence[Floats]


class _Search:
    """The search for the fewest units of one image."""

    def __init__(
        self,
        network: ReluNetwork,
        judge: Judge,
        result: AttackResult,
        unit: Unit,
        allowed: Allowed | None,
        noise: float,
        seconds: float,
    ) -> None:
        self._start = time.monotonic()
        self._deadline = self._start + seconds
        self._network, self._judge, self._result = network, judge, result
        self._units, self._noise = Units(unit), noise
        self._ball = _ball(result, unit, allowed)
        self._rivals = _rivals(network, result.goal)
        self._best = result.images
        self._upper = np.inf
        self._offer(result.adversarial)
        self._floors = [0.0] * len(self._rivals)
        self._open = list(range(len(self._rivals)))
        self._slack = np.inf  # the smallest of all programs

    def proof(self) -> Proof:
        """What can be said about the image."""
        first = self._upper
        if self._judge.fools(self._result.images, self._result.goal).item():
            self._best, self._upper, first, self._open = self._result.images, 0.0, 0.0, []
        while self._open and self._left > _SHORTEST:
            self._rule_out()
            before = self._upper
            for number, rival in enumerate(
                todo := sorted(self._open, key=self._floors.__getitem__)
            ):
                if self._upper == before and self._left > _SHORTEST:
                    self._try(rival, self._left / (len(todo) - number))
        lower = min([*self._floors, self._upper]) if self._rivals else self._upper
        return Proof(
            images=self._result.images,
            goal=self._result.goal,
            lower=_one(lower),
            upper=_one(self._upper),
            status=(status_of(first, lower, self._upper),),
            adversarial=self._best,
            slack=_one(self._slack if self._slack < np.inf else 0.0),
            seconds=_one(time.monotonic() - self._start),
            unit=self._units.unit,
            model=self._network.name,
        )

    @property
    def _left(self) -> float:
        return self._deadline - time.monotonic()

    @property
    def _budget(self) -> int:
        """The most units that a better attack may change."""
        free = len(np.unique(self._ball.free % self._ball.units))
        return free if np.isinf(self._upper) else min(free, int(self._upper) - 1)

    @cache  # noqa: B019  (a search lives for one image)
    def _bounded(self, budget: int) -> _Bounded:
        ball = self._ball.within(budget)
        ranges = hidden_ranges(self._network, ball)
        tops = [upper_bounds(self._network, ball, ranges, rival) for rival in self._rivals]
        return _Bounded(ball, ranges, tops)

    def _slack_of(self, rival: int) -> float:
        found = self._bounded(self._budget)
        effect = tolerance_effect(self._network, found.ball, found.ranges, self._rivals[rival])
        return _SAFETY * (effect + self._noise)

    def _rule_out(self) -> None:
        """Raise the floors of the rivals by linear bounds, and close those that cannot win."""
        for rival in list(self._open):
            slack = self._slack_of(rival)
            self._slack = min(self._slack, slack)

            def reaches(budget: int, rival: int = rival, slack: float = slack) -> bool:
                return bool(self._bounded(budget).tops[rival].min() >= -slack)

            fewest = bisect_left(range(self._budget + 1), True, key=reaches)
            hopeless = fewest > self._budget or self._tight(rival, self._budget, slack) is None
            self._raise(rival, np.inf if hopeless else float(fewest))

    @cache  # noqa: B019
    def _tight(self, rival: int, budget: int, slack: float) -> tuple[Ball, list[Range]] | None:
        found = self._bounded(budget)
        return tighten(self._network, found.ball, found.ranges, self._rivals[rival], slack)

    def _raise(self, rival: int, floor: float) -> None:
        self._floors[rival] = max(self._floors[rival], floor)
        if self._floors[rival] > self._budget and rival in self._open:
            self._open.remove(rival)

    def _try(self, rival: int, seconds: float) -> None:
        """Solve the program of a rival, and take its image if the network is fooled."""
        slack = self._slack_of(rival)
        solved = self._solve(rival, slack, seconds)
        fooled = solved.change is not None and self._rebuild(rival, solved.change)
        if solved.finished and solved.change is not None and not fooled:
            strict = self._solve(rival, -slack, max(self._left, _SHORTEST))
            if strict.change is not None:
                self._rebuild(rival, strict.change)
        self._raise(rival, solved.bound)
        if solved.finished and rival in self._open:
            self._open.remove(rival)

    def _solve(self, rival: int, slack: float, seconds: float) -> Solved:
        tight = self._tight(rival, self._budget, slack)
        if tight is None:
            return Solved(None, np.inf, finished=True)
        return fewest_units(
            self._network,
            *tight,
            self._rivals[rival],
            least=int(self._floors[rival]),
            slack=slack,
            seconds=seconds,
        )

    def _rebuild(self, rival: int, change: Floats) -> bool:
        """Offer the image of a solution, with the widest margin that its units allow."""
        free = (change != 0).reshape(self._ball.channels, -1).any(axis=0)
        free = np.tile(free, self._ball.channels)
        low, high = np.where(free, self._ball.low, 0.0), np.where(free, self._ball.high, 0.0)
        ball = replace(self._ball, low=low, high=high, budget=self._ball.units)
        wide = widest_margin(
            self._network,
            ball,
            hidden_ranges(self._network, ball),
            self._rivals[rival],
            seconds=max(self._left, _SHORTEST),
        )
        found = [self._offer(self._image(each)) for each in (wide, change) if each is not None]
        return any(found)

    def _image(self, change: Floats) -> Images:
        clean = self._result.images
        moved = torch.from_numpy((self._ball.image + change).clip(0, 1)).to(clean.dtype)
        kept = torch.from_numpy(change == 0)
        return torch.where(kept, clean.flatten(), moved).view_as(clean)

    def _offer(self, image: Images) -> bool:
        """Take an image if it fools with fewer units; gives whether it fools."""
        if not self._judge.fools(image, self._result.goal).item():
            return False
        count = float(self._units.changed(image, self._result.images).sum())
        if count < self._upper:
            self._best, self._upper = image, count
        return True


def _ball(result: AttackResult, unit: Unit, allowed: Allowed | None) -> Ball:
    image = result.images.double().flatten().numpy()
    low, high = -image, 1 - image
    if allowed is not None:
        may = allowed.flatten().numpy()
        low, high = np.where(may, low, 0.0), np.where(may, high, 0.0)
    channels = result.images.shape[1] if unit == "pixels" else 1
    return Ball(image, low, high, channels, len(image) // channels)


def _rivals(network: ReluNetwork, goal: Goal) -> list[AffineMap]:
    """Per program, the functions of the last hidden layer that have to be above zero."""
    last, classes = network.maps[-1], np.arange(len(network.maps[-1].bias))
    if goal.targets is None:
        label = int(goal.labels)
        return [_difference(last, np.array([rival]), label) for rival in classes[classes != label]]
    target = int(goal.targets)
    others = classes[classes != target]
    lead = _difference(last, others, target)
    return [AffineMap(-lead.weight, -lead.bias)]


def _difference(last: AffineMap, of: Any, against: int) -> AffineMap:
    return AffineMap(last.weight[of] - last.weight[against], last.bias[of] - last.bias[against])


def _check_classes(network: ReluNetwork, goal: Goal) -> None:
    classes = len(network.maps[-1].bias)
    for name, numbers in (("label", goal.labels), ("target", goal.targets)):
        if numbers is not None and len(numbers) and not int(numbers.max()) < classes:
            raise BadInput(f"{network.name} has {classes} classes, got the {name} {numbers.max()}")


def _one(value: float) -> PerImage:
    return torch.tensor([value], dtype=torch.float64)


def _nothing(result: AttackResult, unit: Unit, name: str) -> Proof:
    none = torch.empty(0, dtype=torch.float64)
    return Proof(result.images, result.goal, none, none, (), result.images, none, none, unit, name)
