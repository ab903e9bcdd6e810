"""Adversarial training. The recipes by name: to add one, write its file, then add its line here."""

from pinprick.errors import UnknownName
from pinprick.train.recipes.ablation import RandomisedAblation
from pinprick.train.recipes.fast_at import FastAT
from pinprick.train.recipes.n_fgsm import NFGSM
from pinprick.train.recipes.pgd_at import PGDAT
from pinprick.train.recipes.recipe import Recipe
from pinprick.train.recipes.sparse_at import SparseAT
from pinprick.train.recipes.standard import Standard

RECIPES: dict[str, type[Recipe]] = {
    cls.name: cls for cls in (Standard, PGDAT, FastAT, NFGSM, SparseAT, RandomisedAblation)
}


def find_recipe(name: str) -> type[Recipe]:
    try:
        return RECIPES[name]
    except KeyError:
        raise UnknownName("recipe", name, RECIPES) from None


__all__ = [
    "NFGSM",
    "PGDAT",
    "RECIPES",
    "FastAT",
    "RandomisedAblation",
    "Recipe",
    "SparseAT",
    "Standard",
    "find_recipe",
]
