"""Pictures of every kind are read properly, and broken ones are set aside with the reason."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from pinprick import BadInput
from pinprick.data.pictures import as_rgb, read_picture, read_pictures

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)


def pixels(path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.asarray(read_picture(path)[0])


def test_greyscale_gets_three_equal_channels(tmp_path: Path) -> None:
    Image.fromarray(RAMP).save(tmp_path / "grey.png")
    assert np.array_equal(pixels(tmp_path / "grey.png"), np.stack([RAMP] * 3, axis=-1))


def test_16_bit_is_scaled_and_not_cut_off(tmp_path: Path) -> None:
    deep = RAMP.astype(np.uint16) * 257
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert np.array_equal(pixels(tmp_path / "deep.png")[..., 0], RAMP)


def test_16_bit_tiff_of_the_other_byte_order(tmp_path: Path) -> None:
    deep = RAMP.astype(np.uint16) * 257
    Image.frombytes("I;16B", (16, 16), deep.astype(">u2").tobytes()).save(tmp_path / "deep.tif")
    assert np.array_equal(pixels(tmp_path / "deep.tif")[..., 0], RAMP)


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "print.tif")
    assert pixels(tmp_path / "print.tif")[4, 4].tolist() == [255, 0, 0]


def test_palette_becomes_its_colours(tmp_path: Path) -> None:
    picture = Image.new("RGB", (8, 8), (10, 200, 30))
    palette = picture.quantize(4)
    assert palette.mode == "P"
    palette.save(tmp_path / "palette.png")
    assert pixels(tmp_path / "palette.png")[0, 0].tolist() == [10, 200, 30]


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_transparent_pictures_are_put_on_white_and_say_so(tmp_path: Path, mode: str) -> None:
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).convert(mode).save(tmp_path / "clear.png")
    image, remark = read_picture(tmp_path / "clear.png")
    assert image.getpixel((0, 0)) == (255, 255, 255)
    assert remark == "transparent, put on white"


def test_half_transparent_is_half_white(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (0, 0, 0, 128)).save(tmp_path / "half.png")
    assert pixels(tmp_path / "half.png")[0, 0].tolist() == [127, 127, 127]


def test_a_transparent_palette_is_put_on_white(tmp_path: Path) -> None:
    picture = Image.new("P", (4, 4), 0)
    picture.putpalette([200, 0, 0, 0, 0, 200])
    picture.save(tmp_path / "clear.gif", transparency=0)
    assert pixels(tmp_path / "clear.gif")[0, 0].tolist() == [255, 255, 255]


def test_an_opaque_alpha_channel_is_no_remark(tmp_path: Path) -> None:
    Image.new("RGBA", (4, 4), (9, 8, 7, 255)).save(tmp_path / "opaque.png")
    image, remark = read_picture(tmp_path / "opaque.png")
    assert (image.getpixel((0, 0)), remark) == ((9, 8, 7), "")


def test_a_rotated_picture_is_turned_upright(tmp_path: Path) -> None:
    picture = Image.new("RGB", (8, 4), "black")
    ImageDraw.Draw(picture).rectangle((0, 0, 1, 1), fill="white")  # top left
    exif = picture.getexif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    picture.save(tmp_path / "turned.png", exif=exif)
    upright = pixels(tmp_path / "turned.png")
    assert upright.shape == (8, 4, 3)
    assert upright[0, -1].tolist() == [255, 255, 255]  # top right


def test_floating_point_pictures_in_the_unit_box_are_read() -> None:
    values = (RAMP / 255).astype(np.float32)
    assert np.array_equal(np.asarray(as_rgb(Image.fromarray(values))[0])[..., 0], RAMP)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full((2, 2), 3.0, np.float32), "must lie in \\[0, 1\\], this one runs from 3 to 3"),
        (np.full((2, 2), np.nan, np.float32), "must lie in"),
        (np.full((2, 2), 70000, np.int32), "from 0 to 65535, this one from 70000 to 70000"),
    ],
)
def test_values_without_a_scale_are_refused(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float32]], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        as_rgb(Image.fromarray(values))


def test_broken_files_are_set_aside_and_the_others_read(tmp_path: Path) -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))
    picture.save(tmp_path / "b_good.png")
    picture.save(tmp_path / "d_good.jpg")
    whole = (tmp_path / "b_good.png").read_bytes()
    (tmp_path / "a_half.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "c_notes.txt").write_text("not a picture")
    (tmp_path / "e_empty.jpg").write_bytes(b"")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "folder").mkdir()

    photos, unreadable = read_pictures([tmp_path, tmp_path / "f_missing.png"])

    assert [photo.record.path.name for photo in photos] == ["b_good.png", "d_good.jpg"]
    reasons = {file.path.name: file.reason for file in unreadable}
    assert list(reasons) == ["a_half.png", "c_notes.txt", "e_empty.jpg", "f_missing.png"]
    assert "broken" in reasons["a_half.png"]
    assert "not a picture" in reasons["c_notes.txt"]
    assert reasons["f_missing.png"] == "there is no such file"


def test_pictures_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        Image.new("RGB", (2, 2)).save(tmp_path / folder / "cat.png")
    photos, _ = read_pictures([tmp_path / "one", tmp_path / "two"])
    assert [photo.record.name for photo in photos] == ["cat", "cat-2"]
