"""The rule that names a group, line by line, and when it stays undecided."""

import pytest
import torch

from pinprick.explain.noise.labels import LABELS, label_effects


def label(
    obscuring: float, leading: float, covariance: tuple[float, float, float] | None = None
) -> str:
    """The label at a tolerance of 1 and a ratio of 2."""
    effects = torch.tensor([[[obscuring, leading]]], dtype=torch.double)
    spread = None
    if covariance is not None:
        spread = torch.tensor([[list(covariance)]], dtype=torch.double)
    return LABELS[int(label_effects(effects, effects.new_ones(1), 2.0, spread))]


@pytest.mark.parametrize(
    ("obscuring", "leading", "wanted"),
    [
        (0.0, 0.0, "inert"),
        (1.0, -1.0, "inert"),
        (1.01, 0.0, "obscuring"),
        (4.0, 2.0, "obscuring"),
        (4.0, -4.5, "obscuring"),
        (4.0, 2.01, "mixed"),
        (2.0, 4.0, "leading"),
        (2.01, 4.0, "mixed"),
        (-3.0, 4.0, "leading"),
        (-3.0, 1.9, "counter-productive"),
        (4.0, -5.1, "counter-productive"),
        (0.9, -1.2, "mixed"),
        (3.0, 3.0, "mixed"),
        (float("nan"), 3.0, "undecided"),
    ],
)
def test_the_first_line_of_the_rule_that_holds_names_the_group(
    obscuring: float, leading: float, wanted: str
) -> None:
    assert label(obscuring, leading) == wanted


def test_each_line_must_be_cleared_by_two_standard_errors() -> None:
    assert label(5.0, 0.0, (1.99**2, 0.0, 0.0)) == "obscuring"
    assert label(5.0, 0.0, (2.01**2, 0.0, 0.0)) == "undecided"  # it might be within the tolerance
    assert label(8.0, 2.0, (0.0, 0.99**2, 0.0)) == "obscuring"
    assert label(8.0, 2.0, (0.0, 1.01**2, 0.0)) == "undecided"  # it might be mixed
    assert label(0.0, 0.0, (0.49**2, 0.49**2, 0.0)) == "inert"
    assert label(0.0, 0.0, (0.51**2, 0.0, 0.0)) == "undecided"


def test_errors_that_go_together_count_together() -> None:
    """O - 2 L is 4 here, with a standard error of 1 or 3 as O and L rise together or apart."""
    assert label(8.0, 2.0, (1.0, 1.0, 1.0)) == "obscuring"
    assert label(8.0, 2.0, (1.0, 1.0, -1.0)) == "undecided"


def test_exact_values_are_always_decided() -> None:
    assert label(4.0, 2.0, (0.0, 0.0, 0.0)) == "obscuring"


def test_each_image_has_its_own_tolerance() -> None:
    effects = torch.tensor([[[3.0, 0.0]], [[3.0, 0.0]]], dtype=torch.double)
    kinds = label_effects(effects, torch.tensor([2.0, 4.0], dtype=torch.double), 2.0)
    assert [LABELS[kind] for kind in kinds.flatten().tolist()] == ["obscuring", "inert"]
