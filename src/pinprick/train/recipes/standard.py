"""Standard training: on the images as they are."""

from dataclasses import dataclass
from typing import ClassVar

from pinprick.problem import Problem
from pinprick.train.recipes.pgd_at import PGDAT
from pinprick.train.recipes.recipe import Recipe
from pinprick.types import Images


@dataclass(frozen=True, kw_only=True)
class Standard(Recipe):
    """No perturbation at all."""

    name: ClassVar[str] = "standard"
    title: ClassVar[str] = "standard training"

    def perturb(self, problem: Problem, strength: float) -> Images:
        return problem.images

    def probe(self, eps: float) -> Recipe:
        return PGDAT(eps=eps, steps=5, step_size=eps / 2)
