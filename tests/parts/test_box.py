"""Staying inside the ball, the box and the mask."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pinprick.parts.box import into_ball, keep_allowed, on_grid

values = st.lists(st.floats(0, 1), min_size=4, max_size=4)
moved = st.lists(st.floats(-3, 3), min_size=4, max_size=4)


@given(values, moved, st.floats(1e-3, 1))
def test_into_ball_gives_the_nearest_point_of_ball_and_box(
    clean: list[float], away: list[float], eps: float
) -> None:
    images = torch.tensor(clean, dtype=torch.float64).view(1, 1, 2, 2)
    adv = torch.tensor(away, dtype=torch.float64).view(1, 1, 2, 2)
    inside = into_ball(adv, images, eps)
    for point, x, start in zip(inside.flatten().tolist(), clean, away, strict=True):
        assert point == sorted((max(x - eps, 0.0), start, min(x + eps, 1.0)))[1]
    assert torch.equal(into_ball(inside, images, eps), inside)


def test_keep_allowed_puts_the_clean_values_back() -> None:
    images, adv = torch.zeros(1, 1, 1, 3), torch.ones(1, 1, 1, 3)
    allowed = torch.tensor([True, False, True]).view(1, 1, 1, 3)
    assert keep_allowed(adv, images, allowed).flatten().tolist() == [1, 0, 1]
    assert keep_allowed(adv, images, None) is adv


def test_on_the_grid_a_value_is_a_level_or_the_clean_value_of_the_same_level() -> None:
    images = torch.tensor([51.1, 51.1, 51.1, 255]).view(1, 1, 2, 2) / 255
    adv = torch.tensor([50.8, 51.7, 153.4, 0]).view(1, 1, 2, 2) / 255
    expected = torch.tensor([51.1, 52, 153, 0]).view(1, 1, 2, 2) / 255
    assert torch.equal(on_grid(adv, images), expected)
