"""Pixle against its tries written out, and where its pixels come from and go to."""

import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import Pixle
from pinprick.goal import strongest_other
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images


def problem_of(model: Classifier, images: Tensor, goal: Goal) -> Problem:
    return Problem(model, images, goal, Streams(0, torch.arange(len(images))))


def as_published(model: Classifier, problem: Problem, attack: Pixle) -> tuple[Tensor, list[int]]:
    """The loop over rounds and tries, pixel by pixel, and the queries of each image."""
    ends, queries = [], []
    for row, clean in enumerate(problem.images):
        part = problem[torch.tensor([row])]
        rng, (height, width) = part.rng, clean.shape[1:]

        def ask(image: Tensor, goal: Goal = part.goal) -> tuple[float, bool]:
            with torch.no_grad():
                logits = model(image.unsqueeze(0))
            return goal.cross_entropy(logits).item(), bool(goal.met(logits))

        best, lowest, end, asked = clean, ask(clean)[0], clean, 1
        now = best
        for number in range(attack.rounds * attack.tries):
            now = best if number % attack.tries == 0 else now
            sides = attack.most_side - attack.least_side + 1
            side = attack.least_side + rng.integers(sides, 2, step=number, use="pixle, sides")[0]
            top = int(rng.integers(height, step=number, use="pixle, top"))
            left = int(rng.integers(width, step=number, use="pixle, left"))
            draw = rng.uniform(attack.most_side**2, step=number, use="pixle, places")[0]
            candidate = now.clone()
            for y in range(top, min(height, top + int(side[0]))):
                for x in range(left, min(width, left + int(side[1]))):
                    turn = (y - top) * attack.most_side + x - left
                    place = int(draw[turn] * (height * width))
                    candidate[:, place // width, place % width] = clean[:, y, x]
            loss, met = ask(candidate)
            asked += 1
            if met:
                end = candidate
                break
            if loss < lowest:
                best, lowest = candidate, loss
        ends.append(end)
        queries.append(asked)
    return torch.stack(ends), queries


@pytest.mark.parametrize("targeted", [False, True])
def test_follows_the_published_search(
    curved: Classifier, images: Tensor, curved_labels: Tensor, targeted: bool
) -> None:
    with torch.no_grad():
        second = strongest_other(curved(images), curved_labels)
    targets = second if targeted else None
    attack = Pixle(rounds=8, tries=4, most_side=3, least_side=1)
    problem = problem_of(curved, images, Goal(curved_labels, targets))
    with curved.frozen():
        adv, queries = as_published(curved, problem, attack)
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert result.success.any()
    assert torch.equal(result.adversarial, adv)
    assert result.forwards.tolist() == queries


def test_every_colour_is_one_of_the_clean_image(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = run_attack(Pixle(), curved, images, curved_labels)
    assert result.success.any()
    for clean, adv in zip(images, result.adversarial, strict=True):
        colours = set(map(tuple, clean.flatten(1).T.tolist()))
        assert set(map(tuple, adv.flatten(1).T.tolist())) <= colours


@pytest.mark.parametrize("mapping", ["similarity", "distance"])
def test_pixels_go_to_the_nearest_other_or_the_farthest_colour(mapping: str) -> None:
    image = torch.tensor([0.0, 0.0, 0.1, 0.7, 1.0]).view(1, 1, 1, 5)
    problem = problem_of(exact_linear(2, (1, 1, 5)), image, Goal(torch.tensor([0])))
    attack = Pixle(mapping="similarity" if mapping == "similarity" else "distance")
    source = torch.tensor([[0, 2, 3, 4]])
    places = attack._places(problem, image.flatten(2), source, 0)
    expected = [2, 0, 4, 3] if mapping == "similarity" else [4, 4, 0, 0]
    assert places.tolist() == [expected]


def test_pixels_go_to_allowed_places_only(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = torch.zeros(6, 5, dtype=torch.bool)
    allowed[2:4, 1:] = True
    result = run_attack(
        Pixle(rounds=10, tries=3, most_side=4), linear, images, labels, allowed=allowed
    )
    changed = (result.adversarial != images).any(dim=1)
    assert result.success.any()
    assert not changed[:, ~allowed].any()


def test_never_beats_the_optimum_of_a_linear_model() -> None:
    model = exact_linear(4, (3, 8, 8), seed=1)
    images = exact_images(8, (3, 8, 8))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(Pixle(most_side=4), model, images, labels)
    assert result.fooling_rate >= 0.5
    assert (result.needed_pixels >= fewest_pixels(model, images, Goal(labels))).all()


def test_an_image_that_does_not_fool_is_returned_clean() -> None:
    model = exact_linear(2, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(4, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(Pixle(rounds=2, tries=2, most_side=2), model, images, labels)
    assert not result.success.any()
    assert torch.equal(result.adversarial, images)
    assert (result.forwards == 5).all()


def test_sides_must_fit_each_other() -> None:
    with pytest.raises(BadInput, match=r"least_side of pixle must be at most most_side, 2, got 3"):
        Pixle(least_side=3, most_side=2)
