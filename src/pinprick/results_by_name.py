"""Results of several attacks and seeds on some images, by the name of the attack."""

from collections.abc import Iterable, Mapping, Sequence

import torch

from pinprick.errors import BadInput
from pinprick.result import AttackResult

Results = (
    AttackResult | Sequence[AttackResult] | Mapping[str, AttackResult | Sequence[AttackResult]]
)


def by_name(results: Results) -> dict[str, tuple[AttackResult, ...]]:
    """The results of each attack, one per seed.

    Args:
        results: One result; several by name, each a result or a list with one per seed; or a plain
            list. In a plain list, results of the same attack and model are its seeds.
    """
    if isinstance(results, AttackResult):
        results = [results]
    if not isinstance(results, Mapping):
        results = _grouped(results)
    named = {
        name: (given,) if isinstance(given, AttackResult) else tuple(given)
        for name, given in results.items()
    }
    for name, runs in named.items():
        _check_runs(name, runs)
    if not named:
        raise BadInput("there is no result; give at least one")
    return named


def same_images(results: Iterable[AttackResult]) -> bool:
    """Whether all results are of the same images, in the same order, with the same goals."""
    first, *others = results
    return all(_same(first, other) for other in others)


def _same(first: AttackResult, other: AttackResult) -> bool:
    if first.images.shape != other.images.shape:
        return False
    other = other.to(first.images.device)
    targets = first.goal.targets, other.goal.targets
    if targets[0] is None or targets[1] is None:
        alike = targets[0] is targets[1]
    else:
        alike = torch.equal(targets[0], targets[1])
    return (
        alike
        and torch.equal(first.goal.labels, other.goal.labels)
        and torch.equal(first.images, other.images)
    )


def _grouped(results: Sequence[AttackResult]) -> dict[str, list[AttackResult]]:
    """Results of the same attack and model together, under names that differ."""
    groups: list[list[AttackResult]] = []
    for result in results:
        _check_result(result)
        key = result.attack, result.model
        known = (group for group in groups if (group[0].attack, group[0].model) == key)
        group = next(known, None)
        if group is None:
            groups.append([result])
        else:
            group.append(result)
    several_models = len({group[0].model for group in groups}) > 1
    named: dict[str, list[AttackResult]] = {}
    for group in groups:
        name = str(group[0].attack.get("name", "attack"))
        name = f"{name} on {group[0].model}" if several_models else name
        number = 1 + sum(known.partition(" #")[0] == name for known in named)
        named[name if number == 1 else f"{name} #{number}"] = group
    return named


def _check_runs(name: str, runs: Sequence[AttackResult]) -> None:
    for run in runs:
        _check_result(run)
    if not runs:
        raise BadInput(f"{name} has no result; give at least one")
    if len({run.seed for run in runs}) < len(runs):
        seeds = ", ".join(str(run.seed) for run in runs)
        raise BadInput(f"each result of {name} needs a seed of its own, got the seeds {seeds}")
    if not same_images(runs):
        raise BadInput(f"the results of {name} are not of the same images and goals")


def _check_result(result: object) -> None:
    if not isinstance(result, AttackResult):
        raise BadInput(f"expected an AttackResult as run_attack gives it, got {result!r:.80}")
