"""Results of several attacks and seeds on some images, by the name of the attack."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from pinprick.errors import BadInput
from pinprick.result import AttackResult

Results = (
    AttackResult | Sequence[AttackResult] | Mapping[str, AttackResult | Sequence[AttackResult]]
)

_NONE = object()  # differs from every value


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
        attack = group[0].attack
        alike = [one[0].attack for one in groups if one[0].attack.get("name") == attack.get("name")]
        words = [str(attack.get("name", "attack")), *_differing(attack, alike)]
        name = ", ".join(words) + (f" on {group[0].model}" if several_models else "")
        number = 1 + sum(known.partition(" #")[0] == name for known in named)
        named[name if number == 1 else f"{name} #{number}"] = group
    return named


def _differing(attack: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings of an attack that are not the same in all others, as "unit=pixels"."""
    return [
        f"{key}={value.get('name') if isinstance(value, Mapping) else value}"
        for key, value in attack.items()
        if any(other.get(key, _NONE) != value for other in others)
    ]


def _check_runs(name: str, runs: Sequence[AttackResult]) -> None:
    for run in runs:
        _check_result(run)
    if not runs:
        raise BadInput(f"{name} has no result; give at least one")
    if len({run.seed for run in runs}) < len(runs):
        seeds = ", ".join(str(run.seed) for run in runs)
        raise BadInput(f"each result of {name} needs a seed of its own, got the seeds {seeds}")
    different = [", ".join(_differing(run.attack, [one.attack for one in runs])) for run in runs]
    if any(run.attack != runs[0].attack for run in runs):
        raise BadInput(
            f"the results of {name} differ in more than the seed: {' and '.join(different)}; "
            "give each setting a name of its own"
        )
    if not same_images(runs):
        raise BadInput(f"the results of {name} are not of the same images and goals")


def _check_result(result: object) -> None:
    if not isinstance(result, AttackResult):
        raise BadInput(f"expected an AttackResult as run_attack gives it, got {result!r:.80}")
