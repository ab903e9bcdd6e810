"""How many pictures go at a time when nobody says."""

import pytest
from torch import nn

from pinprick import Classifier
from pinprick.jobs.device import choose_batch_size


@pytest.mark.parametrize(
    ("side", "given", "chosen"),
    [(28, None, None), (64, None, None), (224, None, 1), (None, None, 1), (28, 3, 3), (224, 3, 3)],
)
def test_on_a_cpu_large_pictures_go_one_at_a_time(
    side: int | None, given: int | None, chosen: int | None
) -> None:
    size = None if side is None else (side, side)
    assert choose_batch_size(given, Classifier(nn.Linear(2, 2), size=size)) == chosen
