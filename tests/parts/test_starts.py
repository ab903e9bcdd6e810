"""Where attacks begin that see classes alone: the first noise that fools, every try counted."""

from typing import Any

import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.starts import find_starts, salt_and_pepper, uniform_noise

SHAPE = (3, 4, 5)


def problem_of(count: int = 6, **settings: Any) -> Problem:
    model, images = exact_linear(4, SHAPE), exact_images(count, SHAPE)
    with torch.no_grad():
        logits = model(images)
    goal, ids = Goal(logits.argmax(dim=1)), torch.arange(count)
    return Problem(model, images, goal, Streams(0, ids), clean_logits=logits, **settings)


def towards(problem: Problem, bright: Tensor) -> Any:
    """Candidates that fool the image ``row`` at the try ``bright[row]``, and are clean before."""
    ids = {tuple(image.flatten().tolist()): row for row, image in enumerate(problem.images)}

    def propose(part: Problem, number: int) -> Tensor:
        rows = [ids[tuple(image.flatten().tolist())] for image in part.images]
        fools = torch.tensor([number >= int(bright[row]) for row in rows])
        return torch.where(fools.view(-1, 1, 1, 1), torch.ones_like(part.images), part.images)

    return propose


def by_corner(images: Tensor) -> Tensor:
    """Class 1 where the last value is 1, class 0 elsewhere."""
    fools = (images[:, -1, -1, -1] == 1).double()
    return torch.stack((1 - fools, fools), dim=1)


def corner_problem(count: int, **settings: Any) -> Problem:
    images = exact_images(count, SHAPE)
    goal, ids = Goal(torch.zeros(count, dtype=torch.long)), torch.arange(count)
    clean = by_corner(images)
    return Problem(
        Classifier(by_corner), images, goal, Streams(0, ids), clean_logits=clean, **settings
    )


def test_the_first_candidate_that_fools_is_kept_and_every_try_counted() -> None:
    problem = corner_problem(4)
    starts = find_starts(problem, towards(problem, torch.tensor([0, 2, 9, 4])), tries=5, queries=9)
    assert starts.met.tolist() == [True, True, False, True]
    assert starts.asked.tolist() == [1, 3, 5, 5]
    assert torch.equal(problem.forwards, starts.asked)
    assert (starts.images[starts.met] == 1).all()
    assert torch.equal(starts.images[2], problem.images[2])


def test_an_image_out_of_budget_is_given_up() -> None:
    problem = corner_problem(3, max_forwards=2)
    starts = find_starts(problem, towards(problem, torch.tensor([1, 2, 0])), tries=5, queries=9)
    assert starts.met.tolist() == [True, False, True]
    assert problem.forwards.tolist() == [2, 2, 1]
    assert torch.equal(starts.images[1], problem.images[1])


def test_no_image_is_asked_about_more_often_than_it_may() -> None:
    problem = corner_problem(2)
    starts = find_starts(problem, towards(problem, torch.tensor([2, 3])), tries=9, queries=3)
    assert starts.met.tolist() == [True, False]
    assert problem.forwards.tolist() == [3, 3]


def test_what_was_given_is_asked_about_first() -> None:
    images = exact_images(4, SHAPE)
    given = images.clone()
    given[0, -1, -1, -1] = 1  # fools
    given[1, 0, 0, 0] = 1  # does not
    given[2, -1, -1, -1] = 1  # would, but for the mask; what is left of it is the clean image
    allowed = torch.ones(4, *SHAPE, dtype=torch.bool)
    allowed[2, -1, -1, -1] = False
    problem = corner_problem(4, start=given, allowed=allowed)
    starts = find_starts(problem, towards(problem, torch.tensor([0, 1, 0, 0])), tries=3, queries=3)
    assert starts.met.tolist() == [True, True, False, True]
    assert starts.asked.tolist() == [1, 3, 3, 1]
    assert torch.equal(problem.forwards, starts.asked)
    assert torch.equal(starts.images[0], given[0])
    assert (starts.images[[1, 3]] == 1).all()


def test_what_was_given_counts_against_the_limit() -> None:
    images = exact_images(2, SHAPE)
    given = images.clone()
    given[:, 0, 0, 0] = 1
    problem = corner_problem(2, start=given, max_forwards=1)
    starts = find_starts(problem, towards(problem, torch.tensor([0, 0])), tries=3, queries=1)
    assert problem.forwards.tolist() == [1, 1]
    assert not starts.met.any()
    assert not problem.refused.any()


def test_candidates_keep_to_the_mask() -> None:
    allowed = torch.zeros(2, *SHAPE, dtype=torch.bool)
    allowed[:, :, -1] = True
    problem = corner_problem(2, allowed=allowed)
    starts = find_starts(problem, towards(problem, torch.tensor([0, 0])), tries=1, queries=9)
    assert starts.met.all()
    assert torch.equal(starts.images[~allowed], problem.images[~allowed])
    assert (starts.images[allowed] == 1).all()


def test_salt_and_pepper_takes_its_share_of_whole_pixels() -> None:
    problem = problem_of(400)
    adv = salt_and_pepper(problem, 0.3, step=0, use="test")
    changed = adv != problem.images
    assert torch.equal(changed.any(dim=1), changed.all(dim=1))  # exact images have no 0 and no 1
    assert ((adv == 0) | (adv == 1))[changed].all()
    places = changed[:, 0].double()
    assert abs(places.mean().item() - 0.3) < 4 * (0.21 / places.numel()) ** 0.5
    assert abs(adv[changed].mean().item() - 0.5) < 4 * (0.25 / int(changed.sum())) ** 0.5
    assert (salt_and_pepper(problem, 1.0, step=0, use="test") != problem.images).all()


def test_uniform_noise_fills_the_box_and_does_not_look_at_the_image() -> None:
    problem = problem_of(200)
    noise = uniform_noise(problem, step=3, use="test")
    assert noise.dtype == problem.images.dtype
    assert noise.shape == problem.images.shape
    assert (noise >= 0).all()
    assert (noise < 1).all()
    assert abs(noise.mean().item() - 0.5) < 4 * (1 / 12 / noise.numel()) ** 0.5
    assert not torch.equal(noise, uniform_noise(problem, step=4, use="test"))


class Constant(Streams):
    """Gives the same number always."""

    def uniform(self, *shape: int, step: int | Tensor, use: str) -> Tensor:
        return torch.full((6, *shape), 0.25)


def test_a_pixel_is_noisy_where_its_number_is_below_the_share() -> None:
    problem = problem_of(6)
    problem.rng = Constant(0, torch.arange(6))
    for share, noisy in ((0.25, False), (0.26, True)):
        adv = salt_and_pepper(problem, share, step=0, use="test")
        assert (adv != problem.images).all() == (adv != problem.images).any() == noisy
