"""The best adversarial image seen so far, for each image of a batch."""

import torch

from pinprick.types import Images, Mask, PerImage


class Best:
    """Keeps, for each image, the cheapest candidate that met the goal.

    Images for which nothing was found stay as they came, at infinite cost.
    """

    def __init__(self, images: Images) -> None:
        self.images = images.clone()
        self.cost = images.new_full((len(images),), torch.inf)

    def offer(self, candidates: Images, cost: PerImage, met: Mask) -> None:
        better = met & (cost < self.cost)
        self.cost = torch.where(better, cost, self.cost)
        self.images = torch.where(better.view(-1, 1, 1, 1), candidates.detach(), self.images)
