"""What the paper proves of its attack, as properties of the code.

Theorem 1: the Gaussian tends to Dirac's delta. Proposition 1: shrinking never opens a gate.
Proposition 2: open gates stay in the box, for any change within eps, not only for ±eps.
"""

import math
from typing import Any, Literal

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from pinprick.parts.heaviside import apply_gates, heaviside, heaviside_slope, room, shrink

BOXES = st.sampled_from(("symmetric", "directed"))
widths = st.floats(1e-4, 10) | st.floats(-10, -1e-4)
radii = st.sampled_from((4 / 255, 6 / 255, 8 / 255, 0.3, 1.0)) | st.floats(1e-3, 1)


def integral(width: float, rate: float = 0.0, phase: float = math.pi / 2) -> float:
    """Of ``q_a(x) * sin(rate * x + phase)`` over the real line, by the trapezoidal rule."""
    place = torch.linspace(-8, 8, 4001, dtype=torch.float64) * abs(width)
    values = heaviside_slope(place, width) * (rate * place + phase).sin()
    return torch.trapezoid(values, place).item()


# Theorem 1


@given(width=widths)
def test_the_gaussian_integrates_to_one(width: float) -> None:
    assert math.isclose(integral(width), 1, rel_tol=1e-9)


@given(width=widths, rate=st.floats(-5, 5), phase=st.floats(0, 2 * math.pi))
def test_against_a_wave_it_gives_the_wave_at_zero_damped_by_its_width(
    width: float, rate: float, phase: float
) -> None:
    damped = math.exp(-((width * rate) ** 2) / 4) * math.sin(phase)
    assert math.isclose(integral(width, rate, phase), damped, rel_tol=1e-6, abs_tol=1e-9)


@given(
    sign=st.sampled_from((-1, 1)),
    waves=st.lists(
        st.tuples(st.floats(-1, 1), st.floats(-5, 5), st.floats(0, 2 * math.pi)), max_size=4
    ),
)
def test_it_tends_to_the_delta_from_either_side(
    sign: int, waves: list[tuple[float, float, float]]
) -> None:
    """Against sums of waves: the error is at most the curvature times a^2 / 4, and so goes to 0."""
    at_zero = sum(size * math.sin(phase) for size, _, phase in waves)
    curvature = sum(abs(size) * rate**2 for size, rate, _ in waves)
    for width in (1.0, 0.1, 0.01, 0.001):
        found = sum(size * integral(sign * width, rate, phase) for size, rate, phase in waves)
        assert abs(found - at_zero) <= curvature * width**2 / 4 + 1e-9


def test_away_from_zero_it_vanishes_and_at_zero_it_grows_without_bound() -> None:
    place = torch.tensor([-0.3, 0.0, 0.3], dtype=torch.float64)
    for sign in (-1, 1):
        slopes = torch.stack([heaviside_slope(place, sign * 0.1**n) for n in range(1, 6)])
        assert (slopes[1:, [0, 2]] < 1e-100).all()
        assert (slopes[1:, 1] > 9.99 * slopes[:-1, 1]).all()


# Propositions 1 and 2


@st.composite
def elements(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    """Images, gates, and changes as shares of eps from -1 to 1; ends and zeros among them."""
    shares = st.floats(-1, 1) | st.sampled_from((-1.0, 0.0, 1.0))
    values = st.floats(0, 1) | st.sampled_from((0.0, 0.5, 1.0, 1 / 255, 254 / 255))
    gates = st.floats(-100, 100) | st.sampled_from((0.0, 5e-324, -5e-324))
    rows = draw(st.lists(st.tuples(values, gates, shares), min_size=1, max_size=20))
    table = torch.tensor(rows, dtype=torch.float64).T
    images, w, share = (row.view(1, 1, 1, -1) for row in table)
    return images, w, share


def count(tensor: Tensor) -> int:
    return int((tensor != 0).sum())


@given(case=elements(), eps=radii, tau=st.floats(0, 2))
@example(
    case=(torch.zeros(1, 1, 1, 1), torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1)), eps=1, tau=1
)
def test_shrinking_never_opens_a_gate(
    case: tuple[Tensor, Tensor, Tensor], eps: float, tau: float
) -> None:
    _, w, share = case
    delta = eps * share
    shrunk = shrink(w, tau / eps)
    assert count(shrunk * delta) <= count(shrink(w, 0.0) * delta) <= count(w * delta)
    assert not (heaviside(shrunk) > heaviside(w)).any()


def test_a_negative_tau_would_open_gates() -> None:
    w, tau = torch.tensor([-0.5, 0.5]), -1.0
    assert count(shrink(w, tau)) > count(shrink(w, 0.0))


@given(case=elements(), eps=radii, tau=st.floats(0, 2), box=BOXES)
def test_open_gates_stay_in_the_box(
    case: tuple[Tensor, Tensor, Tensor],
    eps: float,
    tau: float,
    box: Literal["symmetric", "directed"],
) -> None:
    images, w, share = case
    delta = (eps * share).clamp(-eps, eps)
    omega = room(images, delta, box) / eps
    exact = images + omega * heaviside(shrink(w, tau / eps)) * delta
    assert (exact >= -1e-15).all()  # the proposition, but for rounding
    assert (exact <= 1 + 1e-15).all()
    valid = apply_gates(images, delta, omega, w - tau / eps)
    assert ((valid >= 0) & (valid <= 1)).all()
    torch.testing.assert_close(valid, exact, rtol=0, atol=1e-15)
    assert torch.equal(valid[w <= tau / eps], images[w <= tau / eps])


@pytest.mark.parametrize(
    ("box", "value", "share", "there"),
    [
        ("symmetric", 0.25, 1.0, 0.5),
        ("symmetric", 0.25, -1.0, 0.0),
        ("symmetric", 0.0, 1.0, 0.0),  # no room at all
        ("directed", 0.25, 1.0, 1.0),
        ("directed", 0.25, -1.0, 0.0),
        ("directed", 0.0, 1.0, 1.0),
        ("directed", 0.25, 0.5, 0.625),
    ],
)
def test_how_far_an_open_gate_goes(box: Any, value: float, share: float, there: float) -> None:
    images = torch.full((1, 1, 1, 1), value)
    delta = torch.full_like(images, share / 4)
    omega = room(images, delta, box) / (1 / 4)
    assert apply_gates(images, delta, omega, torch.ones_like(images)).item() == there
