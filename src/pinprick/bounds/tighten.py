"""Bounds over the images of a ball that also reach the goal, which are far fewer.

Images that change few units hardly reach the goal, so the goal says a lot about all other values.
Let m(x) be a linear upper bound of a function that has to be at least -slack, and p(x) one of a
hidden value. Then for every weight w >= 0 and every image that reaches the goal

    hidden value  <=  p(x) + w (m(x) + slack),

whose maximum over the ball is a sum of t gains (linear_bounds.py). The best of several w holds. A
unit whose change leaves m below -slack, whatever else changes, is in no solution. Tighter bounds
make m tighter, so this is repeated.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pinprick.bounds.linear_bounds import WIDER, Ball, Range, linear_upper
from pinprick.bounds.read_network import AffineMap, Flags, Floats, ReluNetwork

_WEIGHTS = np.array([0.0, *np.geomspace(0.02, 20, 14)])  # tried, as shares of the gains' ratio
_ROUNDS = 6


def tighten(
    network: ReluNetwork,
    ball: Ball,
    ranges: Sequence[Range],
    functions: AffineMap,
    slack: float,
) -> tuple[Ball, list[Range]] | None:
    """The ball without hopeless units, and bounds of the hidden values of its solutions.

    A solution is an image of the ball at which all functions are at least ``-slack``. None where
    there is none.

    Args:
        network: The network.
        ball: The images.
        ranges: Bounds of the hidden values over the ball.
        functions: Affine functions of the last hidden layer.
        slack: By how much a function may stay below zero.
    """
    found = list(ranges)
    for _ in range(_ROUNDS):
        before = _size(ball, found)
        weight, bias = linear_upper(network, found, functions)
        bias = bias + slack + WIDER * (np.abs(weight).sum(axis=1) + np.abs(bias))
        start = weight @ ball.image + bias
        tops = start + ball.most(weight)
        if (tops < 0).any():
            return None
        ball = _without(ball, (_with_each(ball, weight) + start[:, None] < 0).any(axis=0))
        hardest = int(tops.argmin())
        for layer, each in enumerate(network.maps[:-1]):
            goal = weight[hardest], float(bias[hardest])
            high = _joint(network, ball, found[:layer], each, goal)
            low = -_joint(network, ball, found[:layer], AffineMap(-each.weight, -each.bias), goal)
            new = Range(np.maximum(found[layer].low, low), np.minimum(found[layer].high, high))
            if (new.low > new.high).any():
                return None
            found[layer] = new
        if _size(ball, found) >= 0.98 * before:
            break
    return ball, found


def _size(ball: Ball, ranges: Sequence[Range]) -> float:
    """What tightening makes smaller: units that may change, and bounds around zero."""
    around = sum(
        float(np.minimum(-each.low, each.high).clip(min=0).sum()) / float(each.high.max() + 1e-12)
        for each in ranges
    )
    return float(len(ball.free) + 10 * around)


def _with_each(ball: Ball, weight: Floats) -> Floats:
    """The most that a linear function gains where each unit is one of the changed ones."""
    gains = ball.gains(weight)
    if not ball.budget:
        return np.full_like(gains, -np.inf)
    least = np.partition(gains, -min(ball.budget, ball.units), axis=1)
    least = least[:, -min(ball.budget, ball.units)][:, None]
    total: Floats = ball.most(weight)[:, None] - least + np.minimum(gains, least)
    return total


def _without(ball: Ball, units: Flags) -> Ball:
    shut = np.tile(units, ball.channels)
    return replace(ball, low=np.where(shut, 0.0, ball.low), high=np.where(shut, 0.0, ball.high))


def _joint(
    network: ReluNetwork,
    ball: Ball,
    ranges: Sequence[Range],
    function: AffineMap,
    goal: tuple[Floats, float],
) -> Floats:
    """Upper bounds of hidden values where the goal's linear bound is at least zero."""
    weight, bias = linear_upper(network, ranges, function)
    bias = bias + WIDER * (np.abs(weight).sum(axis=1) + np.abs(bias))
    scale = ball.most(weight) / max(float(ball.most(goal[0][None])[0]), 1e-12)
    bound = np.full(len(weight), np.inf)
    for share in _WEIGHTS:
        by = share * scale[:, None]
        both = weight + by * goal[0]
        value = both @ ball.image + bias + by[:, 0] * goal[1] + ball.most(both)
        bound = np.minimum(bound, value)
    return bound
