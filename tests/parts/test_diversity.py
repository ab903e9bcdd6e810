"""Random views: what the network is shown, and the gradient on the way back."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick import Goal, Problem, Streams
from pinprick.oracle import exact_images
from pinprick.parts.diversity import Resize, diverse_gradient

SHAPE = (3, 12, 8)


class Watching(nn.Module):
    """A network that keeps what it was shown; works at any size."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        self.shown.append(images.detach())
        ramp = torch.linspace(-1, 1, images[0].numel(), dtype=images.dtype)
        score = (images.flatten(1).sin() * ramp).sum(dim=1)
        return torch.stack((score, -score), dim=1)


def gradient(net: nn.Module, images: Tensor, *, resize: Resize, probability: float = 1.0) -> Tensor:
    goal = Goal(torch.zeros(len(images), dtype=torch.long))
    problem = Problem(net, images, goal, Streams(3, torch.arange(len(images))))
    return diverse_gradient(
        problem, images, step=0, probability=probability, resize=resize, ratio=0.75, pad_value=0.25
    )


@pytest.mark.parametrize(
    ("resize", "canvas", "sides"),
    [
        ("shrink", (12, 8), {(9, 6), (10, 6), (10, 7), (11, 7)}),
        ("enlarge", (16, 11), {(12, 8), (13, 8), (13, 9), (14, 9), (14, 10), (15, 10)}),
    ],
)
def test_a_view_is_the_image_resized_on_a_padded_canvas(
    resize: Resize, canvas: tuple[int, int], sides: set[tuple[int, int]]
) -> None:
    net, images = Watching(), exact_images(40, SHAPE)
    gradient(net, images, resize=resize)
    (shown,) = net.shown
    assert shown.shape == (40, 3, *canvas)
    found = set()
    edges = torch.zeros(4, dtype=torch.bool)  # top, bottom, left, right
    for view, image in zip(shown, images, strict=True):
        places = (view != 0.25).any(dim=0).nonzero()
        (top, left), (bottom, right) = places.amin(dim=0).tolist(), places.amax(dim=0).tolist()
        size = (bottom - top + 1, right - left + 1)
        nearest = F.interpolate(image.unsqueeze(0), size=size, mode="nearest").squeeze(0)
        assert torch.equal(view[:, top : bottom + 1, left : right + 1], nearest)
        found.add(size)
        edges |= torch.tensor(
            [top == 0, bottom == canvas[0] - 1, left == 0, right == canvas[1] - 1]
        )
    assert found <= sides
    assert len(found) >= 3
    assert edges.all()


@pytest.mark.parametrize("resize", ["shrink", "enlarge"])
def test_the_gradient_is_that_of_the_chain_rule(resize: Resize) -> None:
    """A nudge of one element changes the loss of the same view as the gradient says."""
    images = exact_images(3, SHAPE)
    grad = gradient(Watching(), images, resize=resize)
    nudge = 1e-6
    for place in ((0, 0, 0), (1, 5, 3), (2, 11, 7), (0, 6, 7)):
        losses = []
        for sign in (-1, 1):
            moved, net = images.clone(), Watching()
            moved[(slice(None), *place)] += sign * nudge
            gradient(net, moved, resize=resize)
            losses.append(F.logsigmoid(2 * net(net.shown[0])[:, 0]))  # minus the cross-entropy
        slope = (losses[1] - losses[0]) / (2 * nudge)
        assert torch.allclose(grad[(slice(None), *place)], slope, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("resize", ["shrink", "enlarge"])
def test_some_images_are_shown_as_they_are(resize: Resize) -> None:
    net, images = Watching(), exact_images(200, SHAPE)
    gradient(net, images, resize=resize, probability=0.3)
    same = [view for shown in net.shown if shown.shape[2:] == images.shape[2:] for view in shown]
    plain = sum(any(torch.equal(view, image) for image in images) for view in same)
    assert 0.55 < plain / 200 < 0.85
