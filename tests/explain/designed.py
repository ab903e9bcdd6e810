"""Models on which what each pixel does is known, and results made without an attack."""

from collections.abc import Callable

import torch
from torch import Tensor

from pinprick import AttackResult, Classifier, Goal
from pinprick.explain.class_scores import rivals
from pinprick.explain.noise.coalitions import Coalitions
from pinprick.explain.noise.groups import Groups, single_pixels
from pinprick.problem import Problem
from pinprick.random import Streams

SHAPE = (1, 4, 5)


def model_of(answer: Callable[[Tensor], Tensor], name: str = "designed") -> Classifier:
    """A model that answers by a function of flattened images."""
    return Classifier(lambda images: answer(images.flatten(1)), name=name)


def changed_at(images: Tensor, places: list[int], value: float = 1.0) -> Tensor:
    """The same images with the first channel set to ``value`` at some places."""
    flat = images.flatten(2).clone()
    flat[:, 0, places] = value
    return flat.view_as(images)


def result_of(
    model: Classifier,
    images: Tensor,
    adversarial: Tensor,
    labels: Tensor | list[int],
    targets: Tensor | list[int] | None = None,
    ids: Tensor | None = None,
) -> AttackResult:
    """The result of an attack that came up with ``adversarial``."""
    goal = Goal(torch.as_tensor(labels), None if targets is None else torch.as_tensor(targets))
    with torch.no_grad():
        clean_logits, adversarial_logits = model(images), model(adversarial)
    count = len(images)
    numbers = torch.arange(count)
    return AttackResult(
        images=images,
        adversarial=adversarial,
        goal=goal,
        clean_logits=clean_logits,
        adversarial_logits=adversarial_logits,
        rounded_logits=adversarial_logits,
        forwards=torch.zeros_like(numbers),
        backwards=torch.zeros_like(numbers),
        out_of_budget=torch.zeros(count, dtype=torch.bool),
        out_of_time=torch.zeros(count, dtype=torch.bool),
        ids=numbers if ids is None else ids,
        batch_size=torch.full_like(numbers, count),
        remarks=tuple("" if met else "not found" for met in goal.met(adversarial_logits)),
        seconds=0.0,
        attack={"name": "by hand"},
        model=model.name,
    )


def coalitions_of(
    model: Classifier, result: AttackResult, groups: Groups | None = None, *, seed: int = 0
) -> Coalitions:
    """What can be asked about a result; every pixel its own group if none are given."""
    if groups is None:
        groups = single_pixels((result.adversarial != result.images).any(dim=1))
    problem = Problem(model, result.images, result.goal, Streams(seed, result.ids))
    return Coalitions(problem, result.adversarial, groups, rivals(result), block=7)
