"""There and back between the box and the free variable, and the slope against autograd."""

import torch

from pinprick.oracle import exact_images
from pinprick.parts.box import FARTHEST, from_free, slope, to_free


def test_there_and_back_to_within_a_millionth_also_at_the_edges() -> None:
    images = (exact_images(4, (3, 4, 4)) * 2 - 0.5).clamp(0, 1)
    assert (images == 0).any()
    assert (images == 1).any()
    for values in (images, images.float()):
        free = to_free(values)
        assert free.abs().max() <= FARTHEST * 1.01
        assert (from_free(free) - values).abs().max() <= 1e-6
        assert from_free(free).dtype == values.dtype


def test_stays_in_the_box_however_far_out() -> None:
    free = torch.tensor([-1e4, -50.0, 0.0, 50.0, 1e4]).view(1, 1, 1, 5)
    assert from_free(free).flatten().tolist() == [0, 0, 0.5, 1, 1]
    assert slope(free).flatten().tolist() == [0, 0, 0.5, 0, 0]


def test_the_slope_is_the_derivative() -> None:
    free = torch.linspace(-8, 8, 33).double().view(1, 1, 1, -1).requires_grad_()
    (wanted,) = torch.autograd.grad(from_free(free).sum(), free)
    torch.testing.assert_close(slope(free.detach()), wanted)
