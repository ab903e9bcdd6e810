"""The images that a script explains: from stores of benchmark runs, or attacked now."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from case import read_attack
from write_rows import surroundings

from pinprick import Attack, AttackResult, Classifier, describe, least_likely, run_attack
from pinprick.bench.cache import Cache, LabelledImages
from pinprick.bench.run_cell import predictions
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


def open_images(
    options: argparse.Namespace, cache: Cache
) -> tuple[Classifier, LabelledImages, dict[str, Any]]:
    """The model, the first images that it classifies correctly, and the circumstances."""
    model = cache.model(options.model, torch.device(options.device).type)
    data = cache.dataset(options.model, options.data)
    every = cache.images(options.model, options.data, 0, len(data))
    chosen = (predictions(model, every.images) == every.labels).nonzero().squeeze(1)
    rows = chosen[: options.images]
    about = {
        "model": options.model,
        "data": options.data,
        "goal": "least likely" if options.least_likely else "untargeted",
        "images": len(rows),
        **surroundings(options.device),
    }
    given = LabelledImages(every.images[rows], every.labels[rows], every.ids[rows])
    return model, given, about


def attacked_here(
    options: argparse.Namespace, attack: Attack, model: Classifier, given: LabelledImages
) -> Stored:
    """The images of an attack that runs now."""
    about, targets = surroundings(options.device), None
    if options.least_likely:
        with torch.no_grad(), model.frozen():
            targets = least_likely(model(given.images.to(model.device)).cpu(), given.labels)
    result = run_attack(
        attack,
        model,
        given.images,
        given.labels,
        targets=targets,
        ids=given.ids,
        batch_size=options.batch_size,
    )
    return Stored(result, about["commit"][:10], about["device"])


def results(
    options: argparse.Namespace, cache: Cache, model: Classifier, given: LabelledImages
) -> Iterator[tuple[str, Attack, Stored]]:
    """The images of each attack, first those of stores."""
    goal = "least_likely" if options.least_likely else "untargeted"
    for text in options.attack:
        attack = read_attack(text)
        found = stored_images(
            options.store, attack, options.model, options.data, goal, given.ids.tolist(), cache
        )
        if found is None:
            print(f"{text}: no store has it", flush=True)
        else:
            yield text, attack, found
    for text in options.attack_here:
        attack = read_attack(text)
        yield text, attack, attacked_here(options, attack, model, given)
