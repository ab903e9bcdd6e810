"""Adversarial images that change more than they need to, for what shortens them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.best import Best
from pinprick.parts.remove_units import UnitRemoval
from pinprick.parts.units import Units

SHAPE = (3, 6, 5)


def problem_of(model: Classifier, images: Tensor, goal: Goal, *, gradients: bool = True) -> Problem:
    with model.frozen():
        rng = Streams(0, torch.arange(len(images)))
        return Problem(model, images, goal, rng, gradients=gradients)


def as_found(adv: Tensor, images: Tensor, units: Units) -> Best:
    found = Best(adv)
    found.cost = units.count(adv, images)
    return found


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def noisy(model: Classifier, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Which images random noise fools, and what they become: long results, good to shorten."""
    draws = exact_images(20 * len(images), SHAPE, seed=5).view(20, *images.shape)
    adv = images.clone()
    fooled = torch.zeros_like(labels, dtype=torch.bool)
    for draw in draws.round():  # values at the ends of the box
        new = (guesses(model, draw) != labels) & ~fooled
        adv[new], fooled = draw[new], fooled | new
    return fooled, adv


def long_case(model: Classifier, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The images that noise fools, what they become, and their labels."""
    fooled, adv = noisy(model, images, labels)
    return images[fooled], adv[fooled], labels[fooled]


def tied_case() -> tuple[Problem, Tensor]:
    """Images that are fooled by many more units than need be, all of them worth the same.

    One changes a few of its 300 elements, one most of them, so that they are bad company.
    """
    shape = (3, 10, 10)
    linear = exact_linear(2, shape)
    assert isinstance(linear.net, nn.Module)
    for parameter in linear.net.parameters():
        parameter.data = parameter.data.sign() / 4
    images = exact_images(1, shape).round().mul(0.5).add(0.25).repeat(2, 1, 1, 1)
    labels = guesses(linear, images)
    problem = problem_of(linear, images, Goal(labels))
    edge = (problem.gradient(images, problem.goal.margin) < 0).to(images.dtype)
    useful = (edge - images).abs().flatten(1) * (edge != images.round()).flatten(1)
    order = useful.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return problem, torch.where((order < torch.tensor([[90], [250]])).view_as(images), edge, images)


def cut_on_the_way(whole: UnitRemoval, other: UnitRemoval, rows: Tensor) -> UnitRemoval:
    """``other`` after some steps, some of its images: it must find what ``whole`` does."""
    for _ in range(6):
        whole.step()
        other.step()
    cut = other[rows]
    for _ in range(20):
        whole.step()
        cut.step()
    assert torch.equal(cut.found.images, whole.found.images[rows])
    return cut


def shortened_with_and_without_company(
    shorten: Callable[[Problem, Best, Units], object],
) -> tuple[Tensor, Tensor, Tensor]:
    """The tied case before, and its first image shortened beside the other one and alone."""
    problem, adv = tied_case()
    units, shortened = Units("elements"), []
    for rows in (torch.arange(2), torch.tensor([0])):
        part = problem[rows]
        found = as_found(adv[rows], part.images, units)
        shorten(part, found, units)
        shortened.append(found.images[0])
    return adv[0], shortened[0], shortened[1]
