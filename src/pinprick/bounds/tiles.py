"""Tiles of an image: boxes of neighbouring units, halved down to single units.

A change of few units close to each other reaches few neurons of a convolutional network. So tiles
are boxes, and every tile knows which neurons of each layer depend on its units.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from pinprick.bounds.affine_layers import AffineLayers

_AT_ONCE = 256  # tiles whose neurons are gathered together, to limit memory

_Box = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]  # planes, rows, columns


@dataclass(frozen=True, eq=False)
class Tiles:
    """All tiles of at most so many units, one row per tile.

    Attributes:
        halves: The two tiles that make up each one; -1 for a single unit.
        sizes: Units per tile.
        members: The units of each tile, filled up with ``units``, which is none.
        units: Units of an image.
        starts: The largest tiles, which cover the image without overlap.
    """

    halves: Int[Tensor, "tile 2"]
    sizes: Int[Tensor, " tile"]
    members: Int[Tensor, "tile most"]
    units: int
    starts: Int[Tensor, " start"]

    def free(self, may_change: Bool[Tensor, "image unit"]) -> Int[Tensor, "image tile"]:
        """How many units of each tile may change, per image."""
        padded = torch.nn.functional.pad(may_change, (0, 1))
        return padded[:, self.members].sum(dim=2)


def make_tiles(shape: tuple[int, int, int], most: int, device: torch.device) -> Tiles:
    """The tiles of an image of (planes, rows, columns) units, of at most ``most`` units each."""
    planes, rows, columns = shape
    halves: list[tuple[int, int]] = []
    members: list[list[int]] = []
    starts: list[int] = []

    def add(box: _Box) -> int:
        number = len(halves)
        halves.append((-1, -1))
        units = [
            (plane * rows + row) * columns + column
            for plane in range(*box[0])
            for row in range(*box[1])
            for column in range(*box[2])
        ]
        members.append(units)
        if len(units) > 1:
            first, second = _halve(box)
            halves[number] = add(first), add(second)
        return number

    waiting: list[_Box] = [((0, planes), (0, rows), (0, columns))]
    while waiting:
        box = waiting.pop()
        if _volume(box) <= most:
            starts.append(add(box))
        else:
            waiting.extend(reversed(_halve(box)))
    total = planes * rows * columns
    longest = max(map(len, members))
    padded = [each + [total] * (longest - len(each)) for each in members]
    return Tiles(
        halves=torch.tensor(halves, device=device),
        sizes=torch.tensor([len(each) for each in members], device=device),
        members=torch.tensor(padded, device=device),
        units=total,
        starts=torch.tensor(starts, device=device),
    )


def _volume(box: _Box) -> int:
    size = 1
    for start, end in box:
        size *= end - start
    return size


def _halve(box: _Box) -> tuple[_Box, _Box]:
    """Two halves along the longer side of the image, or of the planes once it is one pixel."""
    lengths = [end - start for start, end in box]
    axis = 0 if max(lengths[1:]) == 1 else 1 if lengths[1] >= lengths[2] else 2
    start, end = box[axis]
    middle = (start + end + 1) // 2
    first, second = list(box), list(box)
    first[axis], second[axis] = (start, middle), (middle, end)
    return (first[0], first[1], first[2]), (second[0], second[1], second[2])


def reached_neurons(layers: AffineLayers, tiles: Tiles) -> list[Tensor]:
    """Which neurons depend on the units of each tile: per hidden layer (tile, neuron)."""
    weight = layers.weights[0] != 0
    per_unit = weight.view(len(weight), -1, tiles.units).any(dim=1).T
    found = []
    for number in range(len(layers.weights) - 1):
        if number:
            connected = (layers.weights[number] != 0).float()
            per_unit = (per_unit.float() @ connected.T) > 0
        padded = torch.cat((per_unit, torch.zeros_like(per_unit[:1])))
        some = tiles.members.split(_AT_ONCE)
        found.append(torch.cat([padded[each].any(dim=1) for each in some]))
    return found
