"""The count to first order is the true one where the model is linear."""

from functools import partial

import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.rivals import cheapest_rivals, rivals_of
from pinprick.parts.units import Units

SHAPE = (3, 6, 5)


def case(classes: int, allowed: Tensor | None = None) -> tuple[Classifier, Problem]:
    model = exact_linear(classes, SHAPE, seed=4)
    images = sure_images(model, exact_images(12, SHAPE))
    with torch.no_grad():
        goal = Goal(model(images).argmax(dim=1))
    rng = Streams(0, torch.arange(len(images)))
    return model, Problem(model, images, goal, rng, allowed=allowed)


def pick(model: Classifier, classes: Tensor, images: Tensor) -> Tensor:
    return model(images)[:, classes]


def fewest_of_each(model: Classifier, problem: Problem, unit: str) -> Tensor:
    """The optimum against each class by itself, from a model of that class and the label alone."""
    count = fewest_elements if unit == "elements" else fewest_pixels
    images, labels = problem.images, problem.goal.labels
    with torch.no_grad():
        found = torch.full((len(images), model(images).shape[1]), torch.inf).double()
    for row, label in enumerate(labels.tolist()):
        for other in range(found.shape[1]):
            if other == label:
                continue
            pair = torch.tensor([min(label, other), max(label, other)])
            duel = Classifier(partial(pick, model, pair))
            only = torch.tensor([int(pair[1] == label)])
            allowed = None if problem.allowed is None else problem.allowed[row : row + 1]
            here = images[row : row + 1]
            found[row, other] = count(duel, here, Goal(only), allowed=allowed).item()
    return found


def test_ranks_the_rivals_by_what_each_takes() -> None:
    for units in (Units("elements"), Units("pixels")):
        model, problem = case(5)
        ranked = cheapest_rivals(problem, units, 9)
        fewest = fewest_of_each(model, problem, units.unit)
        assert ranked.shape == (12, 4)
        assert not (ranked == problem.goal.labels.unsqueeze(1)).any()
        along = fewest.gather(1, ranked)
        assert (along.diff(dim=1) >= 0).all()
        assert torch.equal(along[:, 0], fewest.amin(dim=1))
        in_order_of_logits = rivals_of(model(problem.images), problem.goal.labels, 9)
        assert not torch.equal(ranked, in_order_of_logits)


def test_looks_at_the_strongest_rivals_alone_for_one_backward_pass_each() -> None:
    model, problem = case(10)
    ranked = cheapest_rivals(problem, Units("elements"), 3)
    with torch.no_grad():
        strongest = rivals_of(model(problem.images), problem.goal.labels, 3)
    assert torch.equal(ranked.sort(dim=1).values, strongest.sort(dim=1).values)
    assert problem.tally.forwards.tolist() == [1] * 12
    assert problem.tally.backwards.tolist() == [3] * 12


def test_what_is_out_of_reach_comes_last() -> None:
    allowed = torch.zeros(12, *SHAPE, dtype=torch.bool)
    allowed[:, :, :3, :2] = True
    model, problem = case(5, allowed)
    fewest = fewest_of_each(model, problem, "elements")
    along = fewest.gather(1, cheapest_rivals(problem, Units("elements"), 4))
    assert along.isinf().any()
    assert along.isfinite().any()
    assert (along.nan_to_num(posinf=100).diff(dim=1) >= 0).all()


def test_out_of_reach_too_the_nearer_comes_first() -> None:
    def apart(x: Tensor) -> Tensor:
        x = x.flatten(1)
        return torch.cat((0 * x, 0.1 * x - 2, 2 * x - 4), dim=1)  # short of 0 by 1.9 and by 2

    images, goal = torch.full((1, 1, 1, 1), 0.5), Goal(torch.tensor([0]))
    problem = Problem(Classifier(apart), images, goal, Streams(0, torch.arange(1)))
    assert cheapest_rivals(problem, Units("elements"), 2).tolist() == [[2, 1]]  # 3 such, or 39


def test_rivals_are_the_highest_logits_without_the_label() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.0, 9.0], [0.0, 5.0, 5.0, 7.0]])
    labels = torch.tensor([3, 1])
    assert rivals_of(logits, labels, 2).tolist() == [[0, 2], [3, 2]]
    assert rivals_of(logits, labels, 9).tolist() == [[0, 2, 1], [3, 2, 0]]
    assert rivals_of(logits[:, :2], torch.tensor([0, 1]), 9).tolist() == [[1], [0]]


def test_without_a_gradient_the_logits_decide() -> None:
    images = exact_images(2, SHAPE)

    def flat(x: Tensor) -> Tensor:
        return 0 * x.flatten(1)[:, :4] + torch.tensor([4.0, 1.0, 3.0, 2.0]).to(x)

    rng = Streams(0, torch.arange(2))
    problem = Problem(Classifier(flat), images, Goal(torch.zeros(2, dtype=torch.long)), rng)
    assert cheapest_rivals(problem, Units("elements"), 9).tolist() == [[2, 3, 1]] * 2
