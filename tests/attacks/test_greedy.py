"""Greedy pays one pass each way a pixel, and knows when to stop."""

import torch
from torch import Tensor

from pinprick import Classifier, run_attack
from pinprick.attacks import Greedy
from pinprick.goal import Goal
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images


def test_finds_the_fewest_pixels_between_two_classes() -> None:
    model = exact_linear(2, (3, 8, 8))
    images = sure_images(model, exact_images(6, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(Greedy(), model, images, labels)
    assert torch.equal(result.needed_pixels, fewest_pixels(model, images, Goal(labels)))


def test_a_pixel_costs_one_pass_each_way_and_seeing_the_end_one_more(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(Greedy(), linear, images, labels)
    assert result.success.all()
    assert torch.equal(result.forwards, result.l0_pixels + 1)
    assert torch.equal(result.backwards, result.l0_pixels + 1)


def test_the_last_pixel_is_looked_at_too(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    free = run_attack(Greedy(), linear, images, labels)
    for row, pixels in enumerate(free.l0_pixels.tolist()):
        only = slice(row, row + 1)
        just = run_attack(Greedy(max_pixels=pixels), linear, images[only], labels[only])
        assert torch.equal(just.adversarial, free.adversarial[only])
        assert (just.forwards.item(), just.backwards.item()) == (pixels + 1, pixels)


def test_one_pixel_short_is_a_failure_and_leaves_the_image(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    most = int(run_attack(Greedy(), linear, images, labels).l0_pixels.max())
    short = run_attack(Greedy(max_pixels=most - 1), linear, images, labels)
    assert not short.success.all()
    assert torch.equal(short.adversarial[~short.success], images[~short.success])


def test_gives_up_where_no_pixel_promises_anything(images: Tensor) -> None:
    def flat(images: Tensor) -> Tensor:
        return 0 * images.flatten(1)[:, :2] + torch.tensor([1.0, 0.0]).to(images)

    result = run_attack(Greedy(), flat, images, torch.zeros(len(images), dtype=torch.long))
    assert (result.forwards == 1).all()
    assert set(result.remarks) == {"the model's gradient was zero or not finite"}


def test_gives_up_once_every_pixel_was_pushed(linear: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        labels = linear(images).argmax(dim=1)
    corner = torch.zeros(6, 5, dtype=torch.bool)
    corner[0, :2] = True
    result = run_attack(Greedy(), linear, images, labels, allowed=corner)
    lost = ~result.success
    assert lost.any()
    assert (result.forwards[lost] == 3).all()  # two pushes, and a look at what they came to
