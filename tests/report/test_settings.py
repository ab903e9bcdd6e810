"""A table says under which settings an attack was run."""

from typing import Any

import pytest

from pinprick import build
from pinprick.report.words import settings_in_words


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"name": "cw_l0"}, ""),
        ({"name": "cw_l0", "preset": "quick"}, "preset=quick"),
        ({"name": "cw_l0", "preset": "quick", "max_passes": 500}, "preset=quick, max_passes=500"),
        ({"name": "cw_l0", "steps": 40}, "steps=40"),
        ({"name": "sparse_rs"}, "k=50"),
        ({"name": "sparse_rs", "k": "smallest"}, "k=smallest"),
        ({"name": "sparse_rs", "preset": "quick"}, "preset=quick, k=50"),
        ({"name": "sparse_rs", "preset": "targeted"}, "preset=targeted, k=150"),
        ({"name": "sparse_pgd", "projected": False}, "k=20, projected=false"),
        ({"name": "auto", "budgets": [5, 10]}, "budgets=5,10"),
        ({"name": "pgd", "eps": 0.25}, "eps=0.25"),
        ({"name": "pgd0"}, "k=5, step_size=0.15"),  # which decides how good it is
        ({"name": "pgd0", "k": "smallest", "step_size": 0.5}, "k=smallest, step_size=0.5"),
        ({"name": "pgd0", "preset": "sigma"}, "preset=sigma, k=50, step_size=0.075"),
        ({"name": "wifgsm", "start": {"name": "pgd"}}, "start=pgd"),
    ],
)
def test_only_what_is_not_the_default_is_said(spec: dict[str, Any], words: str) -> None:
    assert settings_in_words(build(spec)) == words
