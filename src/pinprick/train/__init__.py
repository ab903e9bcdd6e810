"""Adversarial training. The recipes by name: to add one, write its file, then add its line here."""

from pinprick.errors import UnknownName
from pinprick.train.fast_at import FastAT
from pinprick.train.n_fgsm import NFGSM
from pinprick.train.pgd_at import PGDAT
from pinprick.train.recipe import Recipe
from pinprick.train.sparse_at import SparseAT
from pinprick.train.standard import Standard

RECIPES: dict[str, type[Recipe]] = {
    cls.name: cls for cls in (Standard, PGDAT, FastAT, NFGSM, SparseAT)
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
    "Recipe",
    "SparseAT",
    "Standard",
    "find_recipe",
]
