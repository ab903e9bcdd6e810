"""The best so far of each image, of a minimal attack (``Best``) or a budget attack (``Lowest``)."""

import torch

from pinprick.batch_rows import BatchRows
from pinprick.goal import Goal
from pinprick.types import Images, Labels, Logits, Mask, PerImage


class Best(BatchRows):
    """The cheapest candidate per image that met the goal.

    Images for which nothing was found stay clean, at infinite cost. Costs are in float32 at least,
    since half precision ends at 65,504.
    """

    def __init__(self, images: Images) -> None:
        self.images = images.clone()
        precise = torch.promote_types(images.dtype, torch.float32)
        self.cost: PerImage = images.new_full((len(images),), torch.inf, dtype=precise)

    def offer(
        self, candidates: Images, cost: PerImage, met: Mask, rows: Labels | None = None
    ) -> None:
        """Keep the candidates that are better; ``rows`` are their images, None for all."""
        images, least = (self.images, self.cost) if rows is None else self._of(rows)
        better = met & (cost < least)
        if better.is_cpu and not better.any():
            return  # the usual case; a GPU would have to wait to know
        least = torch.where(better, cost, least)
        images = torch.where(better.view(-1, 1, 1, 1), candidates.detach(), images)
        if rows is not None:
            least = self.cost.to(least.dtype).index_copy(0, rows, least)
            images = self.images.index_copy_(0, rows, images)  # no second copy of all images
        self.images, self.cost = images, least

    def _of(self, rows: Labels) -> tuple[Images, PerImage]:
        return self.images[rows], self.cost[rows]


class Lowest:
    """The first candidate per image that met the goal; until then, the one with the lowest loss.

    Attributes:
        images: The best candidates; the clean image where every loss was NaN.
        loss: Their cross-entropy to the goal; minus infinity once the goal is met.
    """

    def __init__(self, images: Images) -> None:
        self.images = images.clone()
        precise = torch.promote_types(images.dtype, torch.float32)
        self.loss: PerImage = images.new_full((len(images),), torch.inf, dtype=precise)

    @property
    def met(self) -> Mask:
        return self.loss == -torch.inf

    def offer(self, tries: Images, logits: Logits, goal: Goal, rows: Labels) -> Mask:
        """Keep the tries of some images that are better; returns which of them met the goal."""
        met = goal.met(logits)
        loss = goal.cross_entropy(logits.to(self.loss.dtype)).clamp_min(-1e30)  # met is lower yet
        loss = loss.nan_to_num(nan=torch.inf).masked_fill(met, -torch.inf)
        better = loss < self.loss[rows]
        self.loss[rows] = torch.where(better, loss, self.loss[rows])
        self.images[rows] = torch.where(better.view(-1, 1, 1, 1), tries.detach(), self.images[rows])
        return met
