"""The worst case over several attacks on the same images: per image, the run that changed least."""

from dataclasses import replace

import torch

from pinprick.errors import BadInput
from pinprick.metrics.unit import Unit, check_unit
from pinprick.result import AttackResult, cost_together
from pinprick.results_by_name import Results, by_name, same_images
from pinprick.trace import Passes


def best_of(results: Results, unit: Unit = "pixels") -> AttackResult:
    """Per image, the run that fooled with the fewest units.

    Passes and seconds are those of all runs together, since all of them were spent. ``stages`` has
    the passes of each run, and ``found_by`` the run that was best: the first one of those alike,
    none where all failed or the image was skipped.

    Args:
        results: Results of the same images, goals and model: a list, or by name. Several seeds of
            an attack are further runs.
        unit: Whether "pixels" or "elements" are compared.
    """
    check_unit(unit)
    runs = {
        name if len(group) == 1 else f"{name}, seed {run.seed}": run
        for name, group in by_name(results).items()
        for run in group
    }
    every = [run.to("cpu") for run in runs.values()]
    first, size = every[0], len(every[0])
    models = {run.model for run in every}
    if len(models) > 1:
        raise BadInput(f"the worst case is over runs on one model, got {', '.join(sorted(models))}")
    if not same_images(every):
        raise BadInput("the worst case is over runs on the same images with the same goals")
    needed = torch.stack([getattr(run, f"needed_{unit}") for run in every])
    best = needed.argmin(dim=0)  # the first one of those alike
    bare = [replace(run, stages={}, found_by=(), trace=None) for run in every]
    chosen = AttackResult.join(bare)[best * size + torch.arange(size)]
    found = (needed.amin(dim=0) < torch.inf) & ~first.skipped
    return replace(
        chosen,
        forwards=sum((run.forwards for run in every), torch.zeros_like(first.forwards)),
        backwards=sum((run.backwards for run in every), torch.zeros_like(first.backwards)),
        stages={
            name: Passes(run.forwards, run.backwards) for name, run in zip(runs, every, strict=True)
        },
        found_by=tuple(
            list(runs)[row] if fooled else ""
            for row, fooled in zip(best.tolist(), found.tolist(), strict=True)
        ),
        attack={"name": "best_of", "unit": unit, "attacks": [run.attack for run in every]},
        **cost_together(every),
    ).to(next(iter(runs.values())).images.device)
