"""The k largest values of each row, with a k per row; of equal values the first are chosen.

Random keys have 24 bits, so some of the 50,176 keys of a large image are equal, and so are many
scores of images on the 8-bit grid. Which of them ``topk`` takes depends on the largest k, hence on
the other images of the batch. Here the choice does not depend on the batch.

On a CPU, ``topk`` finds the smallest chosen value. Only units of that value are in doubt, and the
first of them are found by counting along the row, in tied rows only. A GPU would have to wait to
know which rows are tied. There each score and its index make one whole number, so none are equal.
"""

import torch
from torch import Tensor


def mask_largest(scores: Tensor, count: Tensor, most: int, *, above: float = 0.0) -> Tensor:
    """A mask of the ``count`` largest scores of each row; of equal ones the first.

    Args:
        scores: What is compared, along the last dimension.
        count: How many to choose in each row, in the shape of the rows or one that expands to it.
        most: A bound on the counts, so that nothing has to wait for them.
        above: Only scores above this are chosen.
    """
    values, places = _largest(scores, count, most, above)
    chosen = _chosen(values, count, above)
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(-1, places, chosen)


def find_largest(
    scores: Tensor, count: Tensor, most: int, *, above: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The indices of the same units, largest first, equal ones in order, and which are chosen.

    The arguments are those of ``mask_largest``. Each row has ``most`` different indices. Those that
    are not chosen may be any others.
    """
    values, places = _largest(scores, count, most, above)
    if scores.is_cpu:
        equal = (values[..., 1:] == values[..., :-1]) & (values[..., 1:] > above)
        tied = equal.any(dim=-1)
        if tied.any():
            places[tied] = _in_order(values[tied], places[tied], scores.shape[-1])
    return places, _chosen(values, count, above)


def _chosen(values: Tensor, count: Tensor, above: float) -> Tensor:
    rank = torch.arange(values.shape[-1], device=values.device)
    return (rank < count.unsqueeze(-1)) & (values > above)


def _largest(scores: Tensor, count: Tensor, most: int, above: float) -> tuple[Tensor, Tensor]:
    """The ``most`` largest and their indices, of which the first ``count`` are the right ones."""
    units = scores.shape[-1]
    most = max(1, min(most, units))
    if not scores.is_cpu:
        places = _ranked(scores, most, signed=above < 0)
        return scores.gather(-1, places), places
    number = count.long().clamp(0, most).expand(scores.shape[:-1]).unsqueeze(-1)
    values, places = scores.topk(min(most + 1, units), dim=-1)
    last, after = (values.gather(-1, (number + i).clamp(0, values.shape[-1] - 1)) for i in (-1, 0))
    tied = ((last == after) & (last > above) & (number > 0) & (number < units)).squeeze(-1)
    values, places = values[..., :most], places[..., :most]
    if tied.any():
        places[tied] = _first_equal(scores[tied], number[tied], values[tied], places[tied])
    return values, places


def _ranked(scores: Tensor, most: int, *, signed: bool) -> Tensor:
    """The indices of the ``most`` largest, equal ones in order, without waiting for the device.

    Unless ``signed``, scores below zero come last in any order.
    """
    if scores.dtype == torch.float64:  # does not fit into a whole number with its index
        return scores.sort(dim=-1, descending=True, stable=True).indices[..., :most]
    keys = scores
    if scores.is_floating_point():  # the bits of floats above zero have the order of the floats
        keys = scores.float().view(torch.int32)
        if signed:
            keys = (scores.float() + 0.0).view(torch.int32)  # -0.0 equals 0.0
            keys = keys ^ ((keys >> 31) & 0x7FFFFFFF)
    last = scores.shape[-1] - 1
    index = torch.arange(last, -1, -1, device=scores.device)
    ranks = (keys.long() * 2**32 + index).topk(most, dim=-1).values
    return last - (ranks & 0xFFFFFFFF)


def _first_equal(scores: Tensor, number: Tensor, values: Tensor, places: Tensor) -> Tensor:
    """``places``, where those of the least chosen value are the first in the row that have it."""
    least = values.gather(-1, (number - 1).clamp_min(0))
    equal = (scores == least).contiguous().cumsum(dim=-1, dtype=torch.int32)
    rank = torch.arange(1, values.shape[-1] + 1, device=values.device)
    wanted = (rank - (values > least).sum(dim=-1, keepdim=True)).int()
    first = torch.searchsorted(equal, wanted).clamp_max(scores.shape[-1] - 1)
    return torch.where(values == least, first, places)


def _in_order(values: Tensor, places: Tensor, units: int) -> Tensor:
    """``places`` of falling ``values``, where those of equal values are in order."""
    falls = torch.zeros_like(places)
    torch.cumsum(values[..., 1:] != values[..., :-1], dim=-1, out=falls[..., 1:])
    return (falls * units + places).sort(dim=-1).values % units
