"""The contribution of each group: its Shapley value in the games of obscuring and leading.

    v_O(A) = s_y(x) - s_y(x_A)      v_L(A) = s_t(x_A) - s_t(x)

``x_A`` is the clean image with the groups in ``A`` changed. ``s_y`` and ``s_t`` are the scores of
the true class and of the rival. The Shapley value of a group is the change of ``v`` when it is
added, in the mean over all orders of the groups. The values of all groups sum to the whole change.

Up to ``exact`` groups, all 2^m coalitions are evaluated. Above, random orders are drawn together
with their reverses. The mean of an order and its reverse is one sample; standard errors are over
such pairs. Every group gets ``least_pairs``. Sampling continues up to ``max_pairs`` for groups
whose standard error is above ``error`` of the change of the margin, and for groups whose label is
undecided. It costs at most 4 passes per group and pair. Values with different numbers of pairs sum
to the whole change only within their standard errors.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pinprick.explain.noise.coalitions import Coalitions, Effects, Rows
from pinprick.types import Counts

_PAIRS_AT_ONCE = 8  # pairs of orders between two checks of the errors

Covariance = Float[Tensor, "batch group 3"]  # two variances, then the covariance
Ranks = Int[Tensor, "some pair group"]  # the position of each group in an order
Undecided = Callable[[Rows, Effects, Covariance], Bool[Tensor, "some group"]]


@dataclass(frozen=True)
class Shapley:
    """Shapley values with their standard errors.

    Attributes:
        effects: The obscuring and the leading effect of each group.
        covariance: Covariance of the two estimates; zeros where the values are exact.
        pairs: Most pairs of orders drawn for a group; 0 where the values are exact.
    """

    effects: Effects
    covariance: Covariance
    pairs: Counts


def shapley_values(
    coalitions: Coalitions,
    *,
    exact: int = 8,
    error: float = 0.05,
    least_pairs: int = 16,
    max_pairs: int = 256,
    is_undecided: Undecided | None = None,
) -> Shapley:
    """The Shapley values of all groups of all images.

    Args:
        coalitions: The images and their groups.
        exact: Largest number of groups for which all coalitions are evaluated.
        error: Largest accepted standard error, as a share of the change of the margin.
        least_pairs: Least number of pairs of orders.
        max_pairs: Largest number of pairs, whatever the errors and the labels.
        is_undecided: Gives the groups whose label is undecided; None to stop by the error only.
    """
    count, most = coalitions.groups.count, coalitions.groups.most
    effects = torch.zeros(len(count), most, 2, dtype=torch.double, device=count.device)
    covariance, pairs = effects.new_zeros(len(count), most, 3), torch.zeros_like(count)
    rows = ((count > 0) & (count <= exact)).nonzero().squeeze(1)
    if len(rows):
        effects[rows] = _exact(coalitions, rows)
    rows = (count > exact).nonzero().squeeze(1)
    if len(rows):
        sums = _sampled(coalitions, rows, error, least_pairs, max_pairs, is_undecided)
        effects[rows], covariance[rows] = sums.mean, sums.covariance
        pairs[rows] = sums.pairs.amax(dim=1)
    return Shapley(effects, covariance, pairs)


def _exact(coalitions: Coalitions, rows: Rows) -> Float[Tensor, "some group 2"]:
    """From all coalitions; a group that an image lacks changes nothing."""
    count = coalitions.groups.count[rows]
    most = int(count.max())
    number = torch.arange(most, device=rows.device)
    several = 2**count
    start = several.cumsum(dim=0) - several
    which = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), several)
    code = torch.arange(len(which), device=rows.device) - start[which]
    members = _widen((code.unsqueeze(1) >> number) % 2 == 1, coalitions)
    known = coalitions.values(rows[which], members)
    codes = torch.arange(2**most, device=rows.device)
    worth = known[start.unsqueeze(1) + (codes & (several - 1).unsqueeze(1))]
    weight = worth.new_tensor([1 / (most * math.comb(most - 1, k)) for k in range(most)])
    values = worth.new_zeros(len(rows), coalitions.groups.most, 2)
    for group in range(most):
        without = codes[codes >> group & 1 == 0]
        size = (without.unsqueeze(1) >> number & 1).sum(dim=1)
        gain = worth[:, without + 2**group] - worth[:, without]
        values[:, group] = (gain * weight[size].view(1, -1, 1)).sum(dim=1)
    return values


class _Sums:
    """Running sums over pairs of orders, for each group of each image."""

    def __init__(self, images: int, groups: int, device: torch.device) -> None:
        self.pairs = torch.zeros(images, groups, dtype=torch.long, device=device)
        self._first = torch.zeros(images, groups, 2, dtype=torch.double, device=device)
        self._second = torch.zeros(images, groups, 3, dtype=torch.double, device=device)

    def add(
        self,
        rows: Rows,
        draws: Float[Tensor, "some pair group 2"],
        drawn: Bool[Tensor, "some group"],
    ) -> None:
        """Add the samples of the ``drawn`` groups."""
        self.pairs[rows] += drawn * draws.shape[1]
        draws = draws * drawn.view(len(drawn), 1, -1, 1)
        self._first[rows] += draws.sum(dim=1)
        squares = torch.cat([draws.square(), draws.prod(dim=3, keepdim=True)], dim=3)
        self._second[rows] += squares.sum(dim=1)

    @property
    def mean(self) -> Effects:
        return self._first / self.pairs.unsqueeze(2)

    @property
    def covariance(self) -> Covariance:
        """Covariance of the means; variances are never negative, whatever the rounding."""
        pairs, mean = self.pairs.unsqueeze(2), self.mean
        squares = torch.cat([mean.square(), mean.prod(dim=2, keepdim=True)], dim=2)
        spread = (self._second / pairs - squares) / (pairs - 1)
        return torch.cat([spread[:, :, :2].clamp_min(0), spread[:, :, 2:]], dim=2)

    @property
    def error(self) -> Float[Tensor, "image group"]:
        """The larger standard error of each group's two estimates."""
        return self.covariance[:, :, :2].sqrt().amax(dim=2)


def _sampled(
    coalitions: Coalitions,
    rows: Rows,
    error: float,
    least_pairs: int,
    max_pairs: int,
    is_undecided: Undecided | None,
) -> _Sums:
    bound = error * coalitions.totals[rows].sum(dim=1).abs()
    sums = _Sums(len(rows), coalitions.groups.most, rows.device)
    unsure = torch.ones_like(sums.pairs, dtype=torch.bool)
    for step, start in enumerate(range(0, max_pairs, _PAIRS_AT_ONCE)):
        active = unsure.any(dim=1).nonzero().squeeze(1)
        if not len(active):
            break
        wanted, pairs = unsure[active], min(_PAIRS_AT_ONCE, max_pairs - start)
        sums.add(active, _draws(coalitions, rows[active], wanted, step, pairs), wanted)
        if start + pairs >= least_pairs:
            inaccurate = sums.error > bound.unsqueeze(1)
            if is_undecided is not None:
                inaccurate |= is_undecided(rows, sums.mean, sums.covariance)
            unsure &= inaccurate
    return sums


def _draws(
    coalitions: Coalitions,
    rows: Rows,
    wanted: Bool[Tensor, "some group"],
    step: int,
    pairs: int,
) -> Float[Tensor, "some pair group 2"]:
    """What each wanted group adds, in the mean of an order and its reverse, for new orders.

    Only the coalitions just before and just after a wanted group are evaluated. The numbers of the
    other groups are meaningless.
    """
    count, most = coalitions.groups.count[rows], coalitions.groups.most
    rank = _orders(coalitions, rows, step, pairs)  # (some, pair, group)
    last = (count - 1).view(-1, 1, 1)
    rank = torch.stack([rank, torch.where(rank <= last, last - rank, rank)], dim=2)
    length = torch.arange(1, most, device=rows.device).view(1, 1, 1, -1)
    needed = (length < count.view(-1, 1, 1, 1)) & _around(rank, wanted)[:, :, :, 1:-1]
    members = rank.unsqueeze(3) < length.unsqueeze(4)
    which = torch.arange(len(rows), device=rows.device).view(-1, 1, 1, 1).expand_as(needed)[needed]
    values = torch.empty(*rank.shape[:3], most + 1, 2, dtype=torch.double, device=rows.device)
    clean, adversarial = (end[rows] for end in coalitions.end_values)
    values[:] = adversarial.view(-1, 1, 1, 1, 2)  # from the image's last group on
    values[:, :, :, 0] = clean.view(-1, 1, 1, 2)
    between = values[:, :, :, 1:most]
    between[needed] = coalitions.values(rows[which], members[needed])
    gains = values.diff(dim=3).gather(3, rank.unsqueeze(4).expand(*rank.shape, 2))
    return gains.mean(dim=2)


def _around(
    rank: Int[Tensor, "some pair 2 group"], wanted: Bool[Tensor, "some group"]
) -> Bool[Tensor, "some pair 2 length"]:
    """Per length 0 to all: does the coalition of an order's first groups border a wanted group?"""
    chosen = torch.zeros_like(rank, dtype=torch.bool)
    chosen.scatter_(3, rank, wanted.view(len(wanted), 1, 1, -1).expand_as(rank))
    beside = torch.zeros(*rank.shape[:3], rank.shape[3] + 1, dtype=torch.bool, device=rank.device)
    beside[:, :, :, :-1] |= chosen
    beside[:, :, :, 1:] |= chosen
    return beside


def _orders(coalitions: Coalitions, rows: Rows, step: int, pairs: int) -> Ranks:
    """The position of each group in random orders; groups that an image lacks come last.

    An image draws the same orders in any batch, because each group has its own part of the image's
    random stream.
    """
    stream = coalitions.problem.rng[rows]
    keys = [
        stream.uniform(pairs, step=step, use=f"order of group {group}")
        for group in range(coalitions.groups.most)
    ]
    present: Bool[Tensor, "some group"] = coalitions.everything[rows]
    ranked = torch.stack(keys, dim=2).masked_fill(~present.unsqueeze(1), 2.0)
    return ranked.argsort(dim=2, stable=True).argsort(dim=2)


def _widen(members: Bool[Tensor, "some few"], coalitions: Coalitions) -> Bool[Tensor, "some group"]:
    """The same coalitions, with a column for every group that any image has."""
    wide = members.new_zeros(len(members), coalitions.groups.most)
    wide[:, : members.shape[1]] = members
    return wide
