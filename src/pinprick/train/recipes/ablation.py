"""Randomised ablation: training on images of which a few random pixels are left.

Levine, Feizi: Robustness certificates for sparse adversarial attacks by randomized ablation.
AAAI 2020.

    u  ~ subsets of ``kept`` pixels, a new one per image and step
    x' = (x, 1 - x) at the pixels of u, (0, 0) at all others, per channel

No attack runs. What is saved is a network that votes over ``draws`` such subsets (zoo/voting.py).
It is that network which is measured, and its certificates are in ``bounds/``.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from pinprick.errors import BadInput
from pinprick.parts.largest import mask_largest
from pinprick.problem import Problem
from pinprick.settings import setting
from pinprick.train.recipes.pgd_at import PGDAT
from pinprick.train.recipes.recipe import Recipe
from pinprick.types import Images
from pinprick.zoo.card import Ablation
from pinprick.zoo.voting import encode


@dataclass(frozen=True, kw_only=True)
class RandomisedAblation(Recipe):
    """Training on a few random pixels of each image.

    Attributes:
        kept: Pixels that are left of an image.
        draws: Draws that vote in the trained network.
    """

    name: ClassVar[str] = "ablation"
    title: ClassVar[str] = "randomised ablation"
    paper: ClassVar[str] = "arXiv:1911.09272"

    kept: int = setting(45, least=1)
    draws: int = setting(64, least=1, most=10_000)

    def perturb(self, problem: Problem, strength: float) -> Images:
        images = problem.images
        height, width = images.shape[2:]
        if self.kept > height * width:
            raise BadInput(
                f"ablation keeps at most all {height * width} pixels, got kept {self.kept}"
            )
        keys = problem.rng.uniform(height * width, step=0, use="ablation pixels")
        count = torch.full((len(images),), self.kept, device=images.device)
        seen = mask_largest(keys, count, self.kept, above=-1.0)
        return encode(images, seen.view(-1, 1, height, width))

    def probe(self, eps: float) -> Recipe:
        return PGDAT(eps=eps, steps=2, step_size=eps / 2)

    def ablation(self, seed: int) -> Ablation:
        return Ablation(kept=self.kept, draws=self.draws, seed=seed)
