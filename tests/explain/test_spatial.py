"""Where the change lies, against maps, with every shift of it for comparison."""

import math

import pytest
import torch
from torch import Tensor

from pinprick.explain.noise.groups import single_pixels
from pinprick.explain.noise.spatial import MAP_LABELS, lift_on, spatial_test, top_area


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@pytest.mark.parametrize(("height", "width"), [(6, 5), (5, 6), (7, 7)])
def test_lift_and_p_are_those_of_all_shifts_by_hand(height: int, width: int) -> None:
    weight = drawn(0, 2, height, width) * (drawn(1, 2, height, width) < 0.2)
    maps = drawn(2, 2, height, width).square()
    found = lift_on(weight, maps)
    for row in range(2):
        a, h = weight[row] / weight[row].sum(), maps[row] / maps[row].sum()
        lifts = torch.tensor(
            [
                height * width * float((a.roll((down, across), (0, 1)) * h).sum())
                for down in range(height)
                for across in range(width)
            ],
            dtype=torch.double,
        )
        assert math.isclose(lifts.mean(), 1.0)  # chance
        torch.testing.assert_close(found.lift[row], lifts[0])
        torch.testing.assert_close(found.p[row], (lifts >= lifts[0] - 1e-9).double().mean())


def test_on_the_peak_of_a_map_no_other_place_does_as_well() -> None:
    maps = torch.zeros(1, 8, 8)
    maps[0, 2, 3] = 1.0
    found = lift_on(maps, maps)
    assert found.lift.tolist() == [64.0]
    assert found.p.tolist() == [1 / 64]


def test_on_a_flat_map_everything_is_chance() -> None:
    found = lift_on(drawn(0, 1, 9, 4), torch.ones(1, 9, 4))
    torch.testing.assert_close(found.lift, torch.ones(1, dtype=torch.double))
    assert found.p.tolist() == [1.0]


def test_the_top_area_is_a_fifth_of_the_image_and_never_where_nothing_is() -> None:
    maps = torch.arange(100.0).view(1, 10, 10)
    assert top_area(maps, 0.2).flatten(1).nonzero()[:, 1].tolist() == list(range(80, 100))
    few = torch.zeros(1, 10, 10)
    few[0, 0, :3] = 1.0
    assert top_area(few, 0.2).sum() == 3


def quarters() -> tuple[Tensor, Tensor, Tensor]:
    """One change in each quarter; the true map is high in the upper half, the other on the left."""
    size = torch.zeros(1, 8, 8)
    size[0, 1, 1], size[0, 1, 6], size[0, 6, 1], size[0, 6, 6] = 1.0, 2.0, 3.0, 4.0
    true, adversarial = torch.zeros(1, 8, 8), torch.zeros(1, 8, 8)
    true[:, :4], adversarial[:, :, :4] = 1.0, 1.0
    return size, true, adversarial


def test_a_group_is_placed_by_the_areas_that_hold_most_of_it() -> None:
    size, true, adversarial = quarters()
    found = spatial_test(single_pixels(size > 0), size, true, adversarial, top=0.5)
    labels = [MAP_LABELS[place] for place in found.labels[0].tolist()]
    assert labels == ["overlap", "obscuring", "leading", "outside"]
    assert found.inside_share.tolist() == [0.5]
    assert found.area.tolist() == [0.5]
    torch.testing.assert_close(found.true.lift, torch.tensor([0.6], dtype=torch.double))
    torch.testing.assert_close(found.adversarial.lift, torch.tensor([0.8], dtype=torch.double))
    assert found.control is None


def test_a_map_of_zeros_is_flagged_and_says_nothing() -> None:
    size, true, adversarial = (torch.cat([part, part, part]) for part in quarters())
    true[1], adversarial[2] = 0.0, 0.0
    found = spatial_test(single_pixels(size > 0), size, true, adversarial, true, top=0.5)
    assert found.no_true_map.tolist() == [False, True, False]
    assert found.no_adversarial_map.tolist() == [False, False, True]
    assert found.true.lift.isnan().tolist() == [False, True, False]
    assert found.adversarial.p.isnan().tolist() == [False, False, True]
    assert found.inside_share.isnan().tolist() == [False, True, False]
    assert found.control is not None
    assert found.control.lift.isnan().tolist() == [False, True, False]
    unknown = found.labels == MAP_LABELS.index("unknown")
    assert unknown.all(dim=1).tolist() == [False, True, True]
    assert unknown.any(dim=1).tolist() == [False, True, True]
