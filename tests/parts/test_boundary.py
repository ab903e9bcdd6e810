"""On a linear model the nearest boundary is known, so the step that is given must reach it."""

from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.rivals import nearest_boundary

SHAPE = (3, 6, 5)
Norm = Literal["l2", "linf"]


def case(model: Classifier, images: Tensor, allowed: Tensor | None = None) -> Problem:
    with torch.no_grad():
        goal = Goal(model(images).argmax(dim=1))
    return Problem(model, images, goal, Streams(0, torch.arange(len(images))), allowed=allowed)


def distances(model: Classifier, problem: Problem, norm: Norm) -> Tensor:
    """To the boundary of each class, from the weights; infinite to the label's own."""
    assert isinstance(model.net, nn.Module)
    weight = next(model.net.parameters()).detach()
    labels = problem.goal.labels
    logits = problem.images.flatten(1) @ weight.T
    gaps = logits.gather(1, labels.unsqueeze(1)) - logits
    sizes: Tensor = (weight - weight[labels].unsqueeze(1)).norm(p=2 if norm == "l2" else 1, dim=2)
    return (gaps / sizes).scatter(1, labels.unsqueeze(1), torch.inf)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_step_ends_on_the_nearest_boundary(norm: Norm) -> None:
    model, images = exact_linear(5, SHAPE), exact_images(8, SHAPE)
    problem = case(model, images)
    near = nearest_boundary(problem, images, 4, norm)
    assert torch.allclose(near.distance, distances(model, problem, norm).amin(dim=1))
    assert torch.equal(near.logits, model(images))
    with torch.no_grad():
        there = model(images + near.distance.view(-1, 1, 1, 1) * near.direction)
    assert torch.allclose(problem.goal.margin(there), there.new_zeros(8), atol=1e-12)
    assert (problem.tally.forwards.tolist(), problem.tally.backwards.tolist()) == ([1] * 8, [4] * 8)


def test_only_the_rivals_that_are_named_are_looked_at() -> None:
    model, images = exact_linear(5, SHAPE), exact_images(8, SHAPE)
    problem = case(model, images)
    farthest = distances(model, problem, "l2").nan_to_num(posinf=-1).argmax(dim=1, keepdim=True)
    near = nearest_boundary(problem, images, farthest, "l2")
    assert torch.allclose(
        near.distance, distances(model, problem, "l2").gather(1, farthest).squeeze(1)
    )
    assert torch.equal(near.rivals, farthest)
    assert problem.tally.backwards.tolist() == [1] * 8


def test_where_nothing_can_move_the_boundary_is_infinitely_far() -> None:
    model, images = exact_linear(3, SHAPE), exact_images(2, SHAPE)
    allowed = torch.ones(2, *SHAPE, dtype=torch.bool)
    allowed[1] = False
    near = nearest_boundary(case(model, images, allowed), images, 2, "l2")
    assert near.distance.isfinite().tolist() == [True, False]
    assert not near.direction[1].any()


def test_a_step_leads_neither_out_of_the_box_nor_of_the_mask() -> None:
    model = exact_linear(3, SHAPE)
    images = (exact_images(4, SHAPE) > 0.5).double()  # all at an edge
    allowed = exact_images(4, SHAPE, seed=9) > 0.5
    direction = nearest_boundary(case(model, images, allowed), images, 2, "linf").direction
    assert direction.any()
    assert (direction[images == 1] <= 0).all()
    assert (direction[images == 0] >= 0).all()
    assert not direction[~allowed].any()


def test_the_slack_of_the_goal_lies_behind_the_boundary() -> None:
    model, images = exact_linear(3, SHAPE), exact_images(4, SHAPE)
    problem = case(model, images)
    problem.goal = replace(problem.goal, slack=0.25)
    near = nearest_boundary(problem, images, 2, "l2")
    with torch.no_grad():
        there = model(images + near.distance.view(-1, 1, 1, 1) * near.direction)
    margin = problem.goal.plain.margin(there)
    assert torch.allclose(margin, torch.full_like(margin, -0.25), atol=1e-12)


def test_the_size_of_the_logits_does_not_matter() -> None:
    model, images = exact_linear(5, SHAPE), exact_images(4, SHAPE)
    large, small = (
        nearest_boundary(case(each, images), images, 4, "l2")
        for each in (model, Classifier(lambda batch: model(batch) / 1024))
    )
    assert torch.equal(small.distance, large.distance)
    assert torch.equal(small.direction, large.direction)


def test_of_boundaries_as_near_the_one_with_the_highest_logit_is_taken() -> None:
    def tied(batch: Tensor) -> Tensor:
        first, second = batch.flatten(1).unbind(dim=1)
        return torch.stack((torch.ones_like(first), first, second), dim=1)

    images = torch.full((1, 1, 1, 2), 0.5)
    near = nearest_boundary(case(Classifier(tied), images), images, 2, "l2")
    assert (near.distance.item(), near.rivals.tolist()) == (0.5, [[1, 2]])
    assert near.direction.flatten().tolist() == [1, 0]
