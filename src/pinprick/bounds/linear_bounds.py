"""Bounds of a ReLU network over all images that change at most t units.

A linear function c of the change d is largest at the ends of the box, unit by unit:

    max c(d) = sum of the t largest gains,  gain_u = sum over i in u of max(c_i low_i, c_i high_i)

Layer one is linear, so its bounds are exact. For later layers each ReLU lies between two lines over
its bounds [l, u], and a linear function of the layer becomes one of the image (CROWN, Zhang et al.,
NeurIPS 2018). Interval arithmetic bounds the same; the tighter of the two holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pinprick.bounds.read_network import AffineMap, Floats, Indices, ReluNetwork

WIDER = 1e-9  # rounding in float64, as a share of a bound


@dataclass(frozen=True)
class Ball:
    """All images that change at most ``budget`` units of one image.

    Attributes:
        image: The flat image.
        low, high: How far each element may fall and rise; both zero where nothing may change.
        channels: Elements per unit, which lie one plane apart; 1 where elements are counted.
        budget: Most units that change.
    """

    image: Floats
    low: Floats
    high: Floats
    channels: int
    budget: int

    def within(self, budget: int) -> "Ball":
        """The same with another budget."""
        return replace(self, budget=budget)

    @property
    def units(self) -> int:
        """How many units an image has, whether or not they may change."""
        return len(self.image) // self.channels

    @property
    def free(self) -> Indices:
        """The elements that may change."""
        return np.flatnonzero((self.low < 0) | (self.high > 0))

    def gains(self, weights: Floats) -> Floats:
        """The most that each unit adds to linear functions of the change, one per row."""
        gains = np.maximum(weights * self.low, weights * self.high)
        together: Floats = gains.reshape(len(weights), self.channels, self.units).sum(axis=1)
        return together

    def most(self, weights: Floats) -> Floats:
        """The maximum of linear functions of the change, one per row."""
        gains = self.gains(weights)
        if self.budget < self.units:
            rest = self.units - self.budget
            gains = np.partition(gains, rest - 1, axis=1)[:, rest:]
        total: Floats = gains.sum(axis=1)
        return total


@dataclass(frozen=True)
class Range:
    """Lower and upper bounds of the values before a layer of ReLUs."""

    low: Floats
    high: Floats

    @property
    def unstable(self) -> Indices:
        """The ReLUs that may be on either side of zero."""
        return np.flatnonzero((self.low < 0) & (self.high > 0))


def hidden_ranges(network: ReluNetwork, ball: Ball) -> list[Range]:
    """Bounds of the values before each layer of ReLUs."""
    ranges: list[Range] = []
    for each in network.maps[:-1]:
        high = upper_bounds(network, ball, ranges, each)
        low = -upper_bounds(network, ball, ranges, AffineMap(-each.weight, -each.bias))
        ranges.append(Range(low, high))
    return ranges


def upper_bounds(
    network: ReluNetwork, ball: Ball, ranges: Sequence[Range], function: AffineMap
) -> Floats:
    """Upper bounds of affine functions of the layer after the last of ``ranges``."""
    weight, bias = linear_upper(network, ranges, function)
    bound = weight @ ball.image + bias + ball.most(weight)
    size = np.abs(weight).sum(axis=1) + np.abs(bias)  # values of images are at most 1
    if ranges:
        below, above = (np.maximum(end, 0) for end in (ranges[-1].low, ranges[-1].high))
        up, down = np.maximum(function.weight, 0), np.minimum(function.weight, 0)
        bound = np.minimum(bound, up @ above + down @ below + function.bias)
        size += np.abs(function.weight) @ above + np.abs(function.bias)
    wider: Floats = bound + WIDER * size
    return wider


def linear_upper(
    network: ReluNetwork, ranges: Sequence[Range], function: AffineMap
) -> tuple[Floats, Floats]:
    """Affine functions of the image that are nowhere below those of the layer."""
    weight, bias = function.weight, function.bias
    for each, bounds in reversed(list(zip(network.maps, ranges, strict=False))):
        low, high = np.minimum(bounds.low, 0), np.maximum(bounds.high, 0)
        width = high - low
        chord = np.divide(high, width, out=np.zeros_like(high), where=width > 0)
        chord = np.where(bounds.low >= 0, 1.0, chord)  # the identity, where always on
        floor = np.where(high > -low, 1.0, 0.0)  # the line through zero that is nearer
        floor = np.where(bounds.low >= 0, 1.0, np.where(bounds.high <= 0, 0.0, floor))
        lift = np.where(bounds.low >= 0, 0.0, -low * chord)
        up, down = np.maximum(weight, 0), np.minimum(weight, 0)
        bias = bias + up @ lift
        weight = up * chord + down * floor
        bias = bias + weight @ each.bias
        weight = weight @ each.weight
    return weight, bias
