"""Pictures are resized and cropped as 8-bit pixels, so what the model sees can be saved exactly."""

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from pinprick.zoo.prepare import as_it_is, cover_and_crop, short_side_and_crop, to_channels


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


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(40, 30), (31, 47), (32, 32), (28, 99), (100, 64)])
def test_resize_and_crop_are_those_of_torchvision(
    size: tuple[int, int], interpolation: str
) -> None:
    mode = transforms.InterpolationMode(interpolation)
    steps = transforms.Compose(
        [transforms.Resize(32, mode), transforms.CenterCrop(27), transforms.ToTensor()]
    )
    prepare = cover_and_crop((27, 27), 32, interpolation)
    assert torch.equal(prepare(noise(*size)), steps(noise(*size)))


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (1, 9), (500, 3), (16, 24), (17, 24)])
def test_a_crop_of_any_shape_is_covered(size: tuple[int, int]) -> None:
    assert cover_and_crop((24, 16))(noise(*size)).shape == (3, 24, 16)


def test_a_picture_of_the_right_size_is_left_as_it_is() -> None:
    picture = noise(16, 24)
    assert torch.equal(cover_and_crop((24, 16))(picture), as_it_is(picture))


def test_one_channel_is_grey_and_keeps_grey_values() -> None:
    grey = noise(28, 28).convert("L")
    wanted = torch.from_numpy(np.array(grey)) / 255
    assert torch.equal(cover_and_crop((28, 28), channels=1)(grey)[0], wanted)
    assert torch.equal(to_channels(1)(grey)[0], wanted)
    assert to_channels(3)(grey).shape == (3, 28, 28)
