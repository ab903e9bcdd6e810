"""Pictures are resized and cropped as 8-bit pixels, so what the model sees can be saved exactly."""

import numpy as np
import pytest
import torch
from PIL import Image

from pinprick.zoo.prepare import as_it_is, short_side_and_crop


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (32, 32), (1, 9), (500, 3)])
def test_every_shape_of_picture_becomes_the_same_square(size: tuple[int, int]) -> None:
    assert short_side_and_crop(32, 28)(noise(*size)).shape == (3, 28, 28)


def test_prepared_pictures_lie_on_the_8_bit_grid() -> None:
    picture = short_side_and_crop(32, 28)(noise(61, 47))
    assert torch.equal((picture * 255).round() / 255, picture)


def test_the_crop_is_the_middle() -> None:
    picture = Image.new("RGB", (60, 40), "black")
    picture.paste("white", (10, 0, 50, 40))  # the middle 40 columns
    assert short_side_and_crop(40, 40)(picture).min() == 1


def test_a_picture_as_it_is_keeps_size_and_values() -> None:
    picture = noise(7, 5)
    values = (as_it_is(picture) * 255).round().byte().permute(1, 2, 0)
    assert np.array_equal(values.numpy(), np.asarray(picture))


def test_grey_pictures_get_three_channels() -> None:
    assert as_it_is(Image.new("L", (4, 3), 51)).unique().tolist() == pytest.approx([0.2])
