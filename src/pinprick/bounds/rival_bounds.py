"""Upper bounds on how far a rival class gets ahead of the label within a sub-problem.

With a target, every class but the target is one that the target has to get ahead of. A single class
that it does not get ahead of is enough for a proof.

Everything is a change from the clean image: d of the units, dz_k before and dh_k after the ReLUs of
layer k. Neurons that no tile of the sub-problem reaches do not change, so they are left out.

Linear functions of d have exact bounds (ball.py), so those of layer one are exact. Beyond, each
ReLU lies between two lines over its bounds, and a linear function of a layer becomes one of d
(CROWN, Zhang et al., NeurIPS 2018).

Rounding. A computed bound is a sum of products. Their absolute values add up to at most a small
factor times m_k = |W_k| m_(k-1) + |b_k|, m_0 = 1: slopes are at most 1, changes and the values of
lines at zero at most twice a value. A sum over n terms has a relative error of n u, u = 2^-53. So
every bound is widened by 16 u (n_0 + n_1 + … + 64) m_k.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from pinprick.bounds.affine_layers import AffineLayers
from pinprick.bounds.ball import Ball
from pinprick.bounds.subproblems import SubProblems
from pinprick.bounds.tiles import Tiles, reached_neurons
from pinprick.goal import Goal
from pinprick.types import Allowed, Images

_UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class _Lines:
    """Two lines around the change of each ReLU: dh is between below and above.

    Attributes:
        neuron: The index of each ReLU; the number of neurons stands for none.
        above, below: Slopes of the lines.
        above_at_zero, below_at_zero: Their values where dz is zero.
    """

    neuron: Int[Tensor, "problem neuron"]
    above: Float[Tensor, "problem neuron"]
    above_at_zero: Float[Tensor, "problem neuron"]
    below: Float[Tensor, "problem neuron"]
    below_at_zero: Float[Tensor, "problem neuron"]


@dataclass(frozen=True, eq=False)
class Bounded:
    """What is known about sub-problems.

    Attributes:
        problems: The sub-problems, with their values limited to those of the image.
        ahead: Upper bound of the rival's logit minus the label's, for the rival with the largest.
            With a target, that of the target's logit minus another one's, for the smallest.
        change: The change at which that linear bound is reached, a guess at an attack.
        spread: How far the linear bound moves with each value of that change.
    """

    problems: SubProblems
    ahead: Float[Tensor, " problem"]
    change: Float[Tensor, "problem channel unit"]
    spread: Float[Tensor, "problem slot channel"]


class RivalBounds:
    """Bounds for sub-problems of some images of one network."""

    def __init__(
        self,
        layers: AffineLayers,
        tiles: Tiles,
        images: Images,
        goal: Goal,
        may_change: Allowed,
    ) -> None:
        self._tiles = tiles
        self._channels = images.shape[1:].numel() // tiles.units
        values = images.double()
        low, high = -values * may_change, (1 - values) * may_change
        self._low, self._high = (self._planes(limit) for limit in (low, high))
        *hidden, logits = layers.values(images)
        self._hidden = [F.pad(each, (0, 1)) for each in hidden]
        first = layers.weights[0].view(-1, self._channels, tiles.units).transpose(1, 2)
        self._first = F.pad(first, (0, 0, 0, 1, 0, 1)).contiguous()
        self._weights = [F.pad(each, (0, 1, 0, 1)) for each in layers.weights[1:-1]]
        self._reach = reached_neurons(layers, tiles)
        *self._room, last = _room_for_rounding(layers)
        self._targeted = goal.targets is not None
        own = goal.labels if goal.targets is None else goal.targets
        others = torch.arange(layers.classes, device=own.device).expand(len(own), -1)
        others = others[others != own.unsqueeze(1)].view(len(own), layers.classes - 1)
        weight = F.pad(layers.weights[-1], (0, 1))
        rivals = weight[others] - weight[own].unsqueeze(1)
        ahead = logits.gather(1, others) - logits.gather(1, own.unsqueeze(1))
        room = last[others] + last[own].unsqueeze(1)
        self._rivals = -rivals if self._targeted else rivals
        self._ahead = (-ahead if self._targeted else ahead) + room

    def __call__(self, problems: SubProblems) -> Bounded:
        problems = self._within_image(problems)
        ball = Ball.of(problems, self._tiles, self._low, self._high)
        maps: list[Tensor] = []  # between the neurons of layer k - 1 and of layer k
        lines: list[_Lines] = []
        for layer, reach in enumerate(self._reach):
            neuron = _compact(reach[problems.tile].any(dim=1))
            rows = self._map(layer, neuron, lines, ball)
            room = self._room[layer][neuron]
            least, most = _ends(rows, maps, lines, ball)
            least, most = least - room, most + room
            before = self._hidden[layer][problems.image.unsqueeze(1), neuron]
            kept = _compact((before > 0) | (before + most > 0))
            neuron, before, most, least = (
                F.pad(each, (0, 1), value=fill).gather(1, kept)
                for each, fill in (
                    (neuron, len(self._room[layer]) - 1),
                    (before, 0.0),
                    (most, 0.0),
                    (least, 0.0),
                )
            )
            maps.append(_choose(rows, kept))
            lines.append(_lines(neuron, before, least, most))
        rivals = self._rivals[problems.image]
        if lines:
            at = lines[-1].neuron.unsqueeze(1).expand(-1, rivals.shape[1], -1)
            rivals = rivals.gather(2, at)
        else:
            rivals = self._straight(rivals, ball)
        slopes, at_zero = _to_units(rivals, maps, lines)
        ahead = ball.most(slopes) + at_zero
        ahead = ahead + self._ahead[problems.image]
        ahead, rival = ahead.min(dim=1) if self._targeted else ahead.max(dim=1)
        rows = torch.arange(len(rival), device=rival.device)
        return Bounded(problems, ahead, *ball.best(slopes[rows, rival]))

    def batch_size(self, changes: int, room: int) -> int:
        """How many sub-problems of so many changes fit into so many bytes."""
        widths = [changes * int(self._tiles.sizes.max()) * self._channels]
        for reach in self._reach:
            widths.append(min(reach.shape[1], changes * int(reach.sum(dim=1).max())))
        rivals = self._rivals.shape[1]
        largest = max(widths[0] * rivals, *(one * two for one, two in pairwise(widths)), 1)
        return max(1, room // (6 * 8 * largest))

    def _planes(self, values: Tensor) -> Tensor:
        """Values of images as (image, unit, channel), with a unit of zeros at the end."""
        planes = values.reshape(len(values), self._channels, self._tiles.units).transpose(1, 2)
        return F.pad(planes, (0, 0, 0, 1)).contiguous()

    def _within_image(self, problems: SubProblems) -> SubProblems:
        """The values of single units limited to those of the image."""
        unit = self._tiles.members[problems.tile, 0]
        single = (self._tiles.sizes[problems.tile] == 1).unsqueeze(2)
        image = problems.image.unsqueeze(1)
        low = torch.maximum(problems.low, self._low[image, unit])
        high = torch.minimum(problems.high, self._high[image, unit])
        return replace(
            problems,
            low=torch.where(single, low, problems.low),
            high=torch.where(single, high, problems.high),
        )

    def _map(self, layer: int, neuron: Tensor, lines: list[_Lines], ball: Ball) -> Tensor:
        """The weights between these neurons and those of the layer before, or the units."""
        if layer == 0:
            return self._first[neuron.unsqueeze(2), ball.unit.unsqueeze(1)].flatten(2)
        return self._weights[layer - 1][neuron.unsqueeze(2), lines[-1].neuron.unsqueeze(1)]

    def _straight(self, rivals: Tensor, ball: Ball) -> Tensor:
        """The weights of rivals of a network without ReLUs."""
        planes = rivals[:, :, :-1].reshape(*rivals.shape[:2], self._channels, -1).transpose(2, 3)
        padded = F.pad(planes, (0, 0, 0, 1))
        at = ball.unit[:, None, :, None].expand(-1, padded.shape[1], -1, self._channels)
        return padded.gather(2, at).flatten(2)


def _compact(mask: Bool[Tensor, "problem neuron"]) -> Int[Tensor, "problem kept"]:
    """The indices where the mask is True, filled up with the length of a row."""
    problem, neuron = mask.nonzero(as_tuple=True)
    position = (mask.cumsum(dim=1) - 1)[problem, neuron]
    most = max(1, int(mask.sum(dim=1).max()))
    index = torch.full((len(mask), most), mask.shape[1], device=mask.device)
    index[problem, position] = neuron
    return index


def _choose(rows: Tensor, kept: Int[Tensor, "problem kept"]) -> Tensor:
    """These rows of each sub-problem; no function uses the rows that stand for none."""
    count = rows.shape[1]
    first = count * torch.arange(len(rows), device=rows.device).unsqueeze(1)
    flat = (kept.clamp(max=count - 1) + first).flatten()
    return rows.flatten(0, 1).index_select(0, flat).view(*kept.shape, rows.shape[2])


def _lines(neuron: Tensor, before: Tensor, least: Tensor, most: Tensor) -> _Lines:
    low, high = before + least, before + most
    on, off = low >= 0, high <= 0
    chord = torch.where(on, 1.0, torch.where(off, 0.0, high / (high - low)))
    floor = torch.where(on | (~off & (high > -low)), 1.0, 0.0)  # of the valid lines the nearer one
    clean = before.relu()
    return _Lines(
        neuron=neuron,
        above=chord,
        above_at_zero=torch.where(on, before, torch.where(off, 0.0, -chord * least)) - clean,
        below=floor,
        below_at_zero=floor * before - clean,
    )


def _ends(
    rows: Tensor, maps: list[Tensor], lines: list[_Lines], ball: Ball
) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds of linear functions of the last of ``lines``, or of the units."""
    count = rows.shape[1]
    if lines and count > maps[-1].shape[2]:
        both, at_zero = _through_map(rows, maps[-1], lines[-1])
        maps, lines = maps[:-1], lines[:-1]
    else:
        both, at_zero = torch.cat((rows, -rows), dim=1), rows.new_zeros(len(rows), 2 * count)
    slopes, more = _to_units(both, maps, lines)
    bounds = ball.most(slopes) + at_zero + more
    return -bounds[:, count:], bounds[:, :count]


def _through_map(rows: Tensor, weight: Tensor, line: _Lines) -> tuple[Tensor, Tensor]:
    """As ``_to_units`` for ``rows`` and ``-rows`` and one layer; faster if there are many rows.

    The lines are multiplied into the map, which is smaller than the rows.
    """
    sides = ((line.above, line.above_at_zero), (line.below, line.below_at_zero))
    parts = [
        part
        for slope, at_zero in sides
        for part in (slope.unsqueeze(2) * weight, at_zero.unsqueeze(2))
    ]
    across = torch.cat(parts, dim=2)
    up_above, up_below = (rows.clamp(min=0) @ across).chunk(2, dim=2)
    down_above, down_below = (rows.clamp(max=0) @ across).chunk(2, dim=2)
    both = torch.cat((up_above + down_below, -(up_below + down_above)), dim=1)
    return both[:, :, :-1], both[:, :, -1]


def _to_units(rows: Tensor, maps: list[Tensor], lines: list[_Lines]) -> tuple[Tensor, Tensor]:
    """Linear functions of the units that are nowhere below those of the last of ``lines``."""
    at_zero = rows.new_zeros(rows.shape[:2])
    for weight, line in zip(reversed(maps), reversed(lines), strict=True):
        up = rows > 0
        at_zero = at_zero + (rows * _pick(up, line.above_at_zero, line.below_at_zero)).sum(dim=2)
        rows = (rows * _pick(up, line.above, line.below)) @ weight
    return rows, at_zero


def _pick(up: Tensor, above: Tensor, below: Tensor) -> Tensor:
    return torch.where(up, above.unsqueeze(1), below.unsqueeze(1))


def _room_for_rounding(layers: AffineLayers) -> list[Tensor]:
    """By how much the bounds of each layer are widened, with a zero for no neuron."""
    size = torch.ones_like(layers.weights[0][0])
    terms = sum(weight.shape[1] for weight in layers.weights) + 64
    found = []
    for weight, bias in zip(layers.weights, layers.biases, strict=True):
        size = weight.abs() @ size + bias.abs()
        found.append(F.pad(16 * _UNIT_ROUNDOFF * terms * size, (0, 1)))
    return found
