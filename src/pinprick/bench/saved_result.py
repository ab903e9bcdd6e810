"""The result of a finished cell: its adversarial images, rebuilt and judged again.

It is polished, explained and drawn as any other result. Nothing is attacked again.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import torch

from pinprick.arithmetic import arithmetic
from pinprick.bench.cache import Cache, device_here
from pinprick.bench.cell_file import NO_VICTIMS
from pinprick.bench.rows import rebuild_images
from pinprick.bench.store import Store
from pinprick.goal import Goal
from pinprick.result import AttackResult, Failure
from pinprick.run import final_logits, logits_or_nan

_LIMITS = ("max_forwards", "max_backwards", "max_passes")


def saved_result(
    store: Store, key: str, loaded: Cache | None = None, *, ids: Collection[int] | None = None
) -> AttackResult:
    """The result of a cell, on the CPU and without its trace.

    Images are left out whose perturbation was not saved, or whose rows hold an error. That a limit
    was reached is known of images that failed, and of no others.

    Args:
        store: The store.
        key: The key of the cell.
        loaded: Models and images that are loaded already.
        ids: The indices in the dataset of the images to take; None for all.
    """
    cell, origin, table = store.read(key)
    cell, cache = replace(cell, device=device_here(cell.device)), loaded or Cache()
    model, given = cache.model_of(cell), cache.images_of(cell)
    adversarial, rebuilt = rebuild_images(table, given.images)
    wanted = torch.tensor([ids is None or one in ids for one in given.ids.tolist()])
    rows = (rebuilt & wanted).nonzero().squeeze(1)
    stored = table.take(rows.numpy()).to_pydict()
    images, adversarial = given.images[rows], adversarial[rows]
    with arithmetic(cell.precision), model.frozen():
        here = model.device or images.device
        clean = logits_or_nan(model, images.to(here))[0].cpu()
        logits, rounded = (one.cpu() for one in final_logits(model, adversarial.to(here))[:2])
    remarks = [one.partition(NO_VICTIMS)[0].removesuffix("; ") for one in stored["remark"]]
    untargeted = cell.goal == "untargeted"
    limits = {name: getattr(cell, name) for name in _LIMITS if getattr(cell, name) is not None}
    return AttackResult(
        images=images,
        adversarial=adversarial,
        goal=Goal(given.labels[rows], None if untargeted else _numbers(stored["target"])),
        clean_logits=clean,
        adversarial_logits=logits,
        rounded_logits=rounded,
        forwards=_numbers(stored["forwards"]),
        backwards=_numbers(stored["backwards"]),
        out_of_budget=_marked(remarks, Failure.OUT_OF_BUDGET, Failure.SPENT_IN_BFLOAT16),
        out_of_time=_marked(remarks, Failure.OUT_OF_TIME),
        ids=given.ids[rows],
        batch_size=torch.full_like(rows, cell.batch_size),
        remarks=tuple(remarks),
        seconds=sum(stored["seconds"]),
        peak_memory=origin.peak_memory,
        noise=None if None in stored["noise"] else torch.tensor(stored["noise"]),
        attack={**cell.attack, **({"limits": limits} if limits else {})},
        model=model.name,
        model_from=cell.model,
        seed=cell.seed,
    )


def _numbers(values: list[Any]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.long)


def _marked(remarks: list[str], *reasons: Failure) -> torch.Tensor:
    return torch.tensor([one in reasons for one in remarks], dtype=torch.bool)
