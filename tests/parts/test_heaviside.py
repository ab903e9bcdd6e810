"""The step, and what stands in for its derivative."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from pinprick.parts.heaviside import heaviside, heaviside_slope

widths = st.floats(1e-3, 10) | st.floats(-10, -1e-3)


def test_a_gate_is_open_above_zero_alone() -> None:
    gates = torch.tensor([-1.0, -0.0, 0.0, 1e-30, 2.0])
    assert heaviside(gates).tolist() == [0, 0, 0, 1, 1]
    assert heaviside(gates.half()).dtype == torch.float16


def test_the_slope_of_a_hand_worked_case() -> None:
    slope = heaviside_slope(torch.tensor([0.0, 0.1, -0.2]).double(), 0.1)
    peak = 10 / math.sqrt(math.pi)
    expected = torch.tensor([peak, peak / math.e, peak / math.e**4]).double()
    torch.testing.assert_close(slope, expected)


@given(width=widths, place=st.floats(-4, 4))
def test_the_slope_is_the_derivative_of_a_smooth_step(width: float, place: float) -> None:
    """Against a central difference of its integral, the error function."""
    where, gap = place * abs(width), 1e-5 * abs(width)
    rise = math.erf((where + gap) / abs(width)) - math.erf((where - gap) / abs(width))
    slope = heaviside_slope(torch.tensor([where], dtype=torch.float64), width).item()
    assert math.isclose(slope, rise / 2 / (2 * gap), rel_tol=1e-6, abs_tol=1e-8 / abs(width))
