"""Adam against torch's own, and images that start anew on their own."""

import torch

from pinprick.oracle import exact_images
from pinprick.parts.adam import Adam


def test_steps_are_those_of_torch() -> None:
    start = exact_images(3, (2, 2, 2))
    point = start.clone().requires_grad_()
    torchs, ours, here = torch.optim.Adam([point], lr=0.1), Adam(start), start.clone()
    for step in range(6):
        point.grad = (point * (step - 2)).detach()
        here = here - 0.1 * ours.step(here * (step - 2))
        torchs.step()
        torch.testing.assert_close(here, point.detach(), rtol=1e-12, atol=1e-12)


def test_an_image_that_starts_anew_does_not_disturb_the_others() -> None:
    grads = [exact_images(3, (2, 2, 2), seed=seed) - 0.5 for seed in range(5)]
    adam, steady, fresh = Adam(grads[0]), Adam(grads[0]), Adam(grads[0])
    for grad in grads[:3]:
        adam.step(grad)
        steady.step(grad)
    adam.restart(torch.tensor([False, True, False]))
    for grad in grads[3:]:
        step, old, new = adam.step(grad), steady.step(grad), fresh.step(grad)
        assert torch.equal(step[[0, 2]], old[[0, 2]])
        assert torch.equal(step[1], new[1])


def test_a_cut_goes_on_where_the_whole_was() -> None:
    grads = [exact_images(3, (2, 2, 2), seed=seed) - 0.5 for seed in range(2)]
    adam = Adam(grads[0])
    adam.step(grads[0])
    cut = adam[torch.tensor([2, 0])]
    whole = adam.step(grads[1])
    assert torch.equal(cut.step(grads[1][[2, 0]]), whole[[2, 0]])
