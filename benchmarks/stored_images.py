"""Adversarial images of an attack from stores of benchmark runs, in place of attacking again."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pinprick import Attack, AttackResult, describe
from pinprick.bench.cache import Cache
from pinprick.bench.saved_result import saved_result
from pinprick.bench.store import Store, existing_store
from pinprick.data.subset import parse
from pinprick.result import join


class Stored(NamedTuple):
    """A result, and where its rows come from: their commits and devices."""

    result: AttackResult
    commit: str
    device: str


def stored_images(
    stores: Sequence[Path],
    attack: Attack,
    model: str,
    data: str,
    goal: str,
    ids: Sequence[int],
    cache: Cache,
) -> Stored | None:
    """The attack's images of the first store that has some; None if none has.

    Args:
        stores: The folders of the stores.
        attack: The attack; only rows of its current revision count.
        model: The name of the model.
        data: The data; any subset of the same split may hold the images.
        goal: The goal, as in a plan.
        ids: The indices of the images in their dataset, in order.
        cache: Models and images that are loaded already.
    """
    wanted = describe(attack), attack.facts().revision, model, goal, _split(data)
    for folder in stores:
        store, left = existing_store(folder), set(ids)
        found: list[AttackResult] = []
        commits: dict[str, None] = {}
        devices: dict[str, None] = {}
        for key, (cell, origin) in store.cells().items():
            what = cell.attack, cell.revision, cell.model, cell.goal, _split(cell.data)
            if what == wanted and (part := _part(store, key, cache, left)):
                left -= set(part.ids.tolist())
                found.append(part)
                commits[origin.commit[:10]] = devices[origin.device] = None
        if found:
            result = join(found)
            order = sorted(range(len(result)), key=lambda row: ids.index(int(result.ids[row])))
            return Stored(result[order], ", ".join(commits), ", ".join(devices))
    return None


def _part(store: Store, key: str, cache: Cache, ids: set[int]) -> AttackResult | None:
    part = saved_result(store, key, cache, ids=ids)
    return part if len(part) else None


def _split(data: str) -> tuple[str, str]:
    subset = parse(data)
    return subset.name, subset.split
