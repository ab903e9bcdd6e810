"""Units by hand: two channels of two places each."""

import torch

from pinprick.parts.units import Units, take

VALUES = torch.tensor([[[[1.0, 2.0]], [[3.0, -4.0]]]])


def test_an_element_is_a_unit_of_its_own() -> None:
    units = Units("elements")
    assert units.total(VALUES).tolist() == [[1, 2, 3, -4]]
    assert units.largest(VALUES).tolist() == [[1, 2, 3, -4]]
    spread = units.spread(torch.tensor([[5, 6, 7, 8]]), VALUES)
    assert spread.tolist() == [[[[5, 6]], [[7, 8]]]]


def test_a_pixel_has_all_its_channels() -> None:
    units = Units("pixels")
    assert units.total(VALUES).tolist() == [[4, -2]]
    assert units.largest(VALUES).tolist() == [[3, 2]]
    spread = units.spread(torch.tensor([[5, 6]]), VALUES)
    assert spread.tolist() == [[[[5, 6]], [[5, 6]]]]


def test_a_pixel_is_changed_where_any_of_its_channels_is() -> None:
    adv = VALUES.clone()
    adv[0, :, 0, 1] += 1e-7 * torch.tensor([1, 100])  # the first is lost in rounding
    assert Units("elements").changed(adv, VALUES).tolist() == [[False, False, False, True]]
    assert Units("pixels").changed(adv, VALUES).tolist() == [[False, True]]
    adv[0, 0, 0, 1] = 0
    assert Units("elements").count(adv, VALUES).tolist() == [2]
    assert Units("pixels").count(adv, VALUES).tolist() == [1]


def test_counts_are_exact_in_half_precision() -> None:
    images = torch.zeros(1, 3, 50, 41, dtype=torch.float16)
    assert Units("elements").count(images + 1, images).tolist() == [6150]
    assert Units("pixels").count(images + 1, images).tolist() == [2050]
    odd = images.clone()
    odd.view(-1)[:6149] = 1  # half precision has even numbers alone here
    assert Units("elements").count(odd, images).tolist() == [6149]


def test_planes_have_a_column_for_each_unit() -> None:
    assert Units("elements").planes(VALUES).tolist() == [[[1, 2, 3, -4]]]
    assert Units("pixels").planes(VALUES).tolist() == [[[1, 2], [3, -4]]]


def test_takes_the_same_units_of_every_channel() -> None:
    planes = Units("pixels").planes(VALUES)
    assert take(planes, torch.tensor([[1]])).tolist() == [[[2], [-4]]]
    several = planes.unsqueeze(1).expand(1, 2, 2, 2)  # (batch, individual, channel, unit)
    found = take(several, torch.tensor([[[1], [0]]]))
    assert found.tolist() == [[[[2], [-4]], [[1], [3]]]]
