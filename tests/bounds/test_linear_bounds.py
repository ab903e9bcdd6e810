"""Bounds hold for every image of the ball, and are exact where they are said to be."""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bounds.small_networks import small_images, small_network
from pinprick import Classifier
from pinprick.bounds.linear_bounds import Ball, hidden_ranges, upper_bounds
from pinprick.bounds.read_network import AffineMap, ReluNetwork, read_network
from pinprick.bounds.tighten import tighten

Floats = NDArray[np.float64]


def network_and_ball(seed: int, budget: int, channels: int) -> tuple[ReluNetwork, Ball]:
    images = small_images(1, (2, 2, 3), seed=seed)
    network = read_network(Classifier(small_network(12, 6, 5, 3, seed=seed)), images)
    flat = images.double().flatten().numpy()
    low, high = -flat, 1 - flat
    low[:1] = high[:1] = 0.0  # nothing may change there
    return network, Ball(flat, low, high, channels, budget)


def drawn(ball: Ball, count: int) -> Floats:
    """Random images of the ball, many of whose changes go to an end of the box."""
    random = np.random.default_rng(0)
    units = random.random((count, ball.units)).argsort(axis=1) < ball.budget
    towards = (random.random((count, len(ball.image))) * 2 - 0.5).clip(0, 1)
    change = ball.low + towards * (ball.high - ball.low)
    moved: Floats = ball.image + np.tile(units, (1, ball.channels)) * change
    return moved


def hidden_values(network: ReluNetwork, images: Floats) -> list[Floats]:
    """The values before each layer of ReLUs."""
    found, hidden = [], images
    for each in network.maps[:-1]:
        found.append(hidden @ each.weight.T + each.bias)
        hidden = np.maximum(found[-1], 0)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("budget", "channels"), [(0, 1), (2, 1), (2, 2), (12, 1)])
def test_bounds_hold_for_images_of_the_ball(seed: int, budget: int, channels: int) -> None:
    network, ball = network_and_ball(seed, min(budget, 12 // channels), channels)
    images = drawn(ball, 2000)
    ranges = hidden_ranges(network, ball)
    for values, bounds in zip(hidden_values(network, images), ranges, strict=True):
        assert (values >= bounds.low - 1e-9).all()
        assert (values <= bounds.high + 1e-9).all()
    tops = upper_bounds(network, ball, ranges, network.maps[-1])
    assert (network.logits(images) <= tops + 1e-9).all()


def test_the_first_layer_is_bounded_exactly() -> None:
    network, ball = network_and_ball(1, 2, 1)
    first = network.maps[0]
    reached = first.weight @ ball.image + first.bias
    gains = np.sort(np.maximum(first.weight * ball.low, first.weight * ball.high), axis=1)
    np.testing.assert_allclose(
        hidden_ranges(network, ball)[0].high, reached + gains[:, -2:].sum(axis=1), atol=1e-7
    )


@pytest.mark.parametrize("seed", range(6))
def test_tightened_bounds_hold_for_every_solution(seed: int) -> None:
    network, ball = network_and_ball(seed, 3, 1)
    images = drawn(ball, 4000)
    last, classes = network.maps[-1], network.logits(images)
    label = int(network.logits(ball.image[None]).argmax())
    for rival in {0, 1, 2} - {label}:
        lead = AffineMap(
            (last.weight[rival] - last.weight[label])[None],
            (last.bias[rival] - last.bias[label])[None],
        )
        margin = classes[:, rival] - classes[:, label]
        slack = -np.quantile(margin, 0.99)  # a hundredth of the images are solutions
        solutions = images[margin >= -slack]
        tight = tighten(network, ball, hidden_ranges(network, ball), lead, slack)
        assert tight is not None
        for values, bounds in zip(hidden_values(network, solutions), tight[1], strict=True):
            assert (values >= bounds.low - 1e-7).all()
            assert (values <= bounds.high + 1e-7).all()
        moved = (solutions != ball.image).any(axis=0)
        assert set(np.flatnonzero(moved)) <= set(tight[0].free)


def corners(ball: Ball) -> Floats:
    """All images that change at most two elements, each to an end of the box."""
    found = [ball.image]
    for pair in combinations(range(len(ball.image)), 2):
        for ends in product((ball.low, ball.high), repeat=2):
            found.append(ball.image.copy())
            for element, end in zip(pair, ends, strict=True):
                found[-1][element] += end[element]
    return np.array(found)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [1.0, 0.999, 0.9])
def test_tightened_bounds_of_a_linear_network_just_leave_its_solutions(
    seed: int, share: float
) -> None:
    """Every ReLU is on or off, so no bound is loose, and the best image is at a corner."""
    network, ball = network_and_ball(seed, 2, 1)
    first, last = network.maps[0], network.maps[-1]
    switch = np.where(np.arange(6) % 3 == 0, -100.0, 100.0)
    network = ReluNetwork((AffineMap(first.weight, first.bias + switch), last_of(last)), "linear")
    images = corners(ball)
    margin = network.logits(images)[:, 0]
    slack = -np.quantile(margin, share)
    solutions = images[margin >= -slack]
    tight = tighten(network, ball, hidden_ranges(network, ball), network.maps[-1], slack)
    assert tight is not None
    values, bounds = hidden_values(network, solutions)[0], tight[1][0]
    assert (values >= bounds.low).all()
    assert (values <= bounds.high).all()
    assert set(np.flatnonzero((solutions != ball.image).any(axis=0))) <= set(tight[0].free)
    beyond = -margin.max() - 1e-4
    assert tighten(network, ball, hidden_ranges(network, ball), network.maps[-1], beyond) is None


def last_of(last: AffineMap) -> AffineMap:
    """One function of six hidden values."""
    return AffineMap(np.resize(last.weight, (1, 6)), last.bias[:1])


def test_tightening_rules_out_what_no_image_of_the_ball_reaches() -> None:
    network, ball = network_and_ball(0, 2, 1)
    lead = AffineMap(network.maps[-1].weight[:1], network.maps[-1].bias[:1] - 1e3)
    assert tighten(network, ball, hidden_ranges(network, ball), lead, 0.0) is None


def test_maps_give_the_logits_of_the_network() -> None:
    net = small_network(12, 6, 5, 3)
    images = small_images(3, (3, 2, 2))
    network = read_network(Classifier(net), images)
    said = net.double()(images.double()).detach()
    assert torch.allclose(
        torch.from_numpy(network.logits(images.double().flatten(1).numpy())), said
    )
    assert network.relus == 11
