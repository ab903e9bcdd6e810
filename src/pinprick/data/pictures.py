"""Picture files: read, turned upright and converted to 8-bit RGB.

A file that is no picture, or half of one, is skipped with the reason; the others are read.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from pinprick.data.classes import synset_numbers
from pinprick.errors import BadInput, one_line

_WHITE = (255, 255, 255, 255)
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # integers of more than 8 bits

LabelFrom = Literal["given", "known", "data", "result", "model"]


@dataclass(frozen=True)
class PictureRecord:
    """What is known about one picture, apart from its pixels.

    Attributes:
        name: Name of the picture and of the files made from it; unique within a run.
        path: The file, or the dataset and index, that it was read from.
        label: Its class as the model numbers them; None until a model has been asked.
        label_from: Where the label is from: "given" by the user, "known" from the folder or the
            demo, the "data" set, a saved "result", or the clean prediction of the "model".
        label_name: Name of its class, in words or as a synset of ImageNet; empty if unknown.
        remark: What had to be decided while it was read; empty if nothing.
    """

    name: str
    path: Path
    label: int | None = None
    label_from: LabelFrom = "model"
    label_name: str = ""
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Photo:
    """A picture that was read.

    Attributes:
        record: Its name and path; ``label_name`` where its class in ImageNet is known.
        image: 8-bit RGB, upright.
    """

    record: PictureRecord
    image: Image.Image


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read, and why."""

    path: Path
    reason: str


def read_pictures(paths: Iterable[str | Path]) -> tuple[list[Photo], list[Unreadable]]:
    """The pictures that could be read, and the files that could not; a folder means its files.

    A picture in a folder that is named by a synset of ImageNet is of that class.
    """
    synsets = synset_numbers()
    photos: list[Photo] = []
    unreadable: list[Unreadable] = []
    names: set[str] = set()
    for path in (file for given in paths for file in _files(Path(given))):
        try:
            image, remark = read_picture(path)
        except BadInput as error:
            unreadable.append(Unreadable(path, str(error)))
            continue
        name = _free_name(path.stem, names)
        names.add(name)
        folder = path.absolute().parent.name
        label_name = folder if folder in synsets else ""
        record = PictureRecord(name, path, label_name=label_name, remark=remark)
        photos.append(Photo(record, image))
    return photos, unreadable


def read_picture(path: str | Path) -> tuple[Image.Image, str]:
    """The picture in 8-bit RGB, and a remark where something had to be decided."""
    try:
        # odd metadata and large pictures are no trouble
        with warnings.catch_warnings(action="ignore"), Image.open(path) as picture:
            picture.load()
            return as_rgb(picture)
    except FileNotFoundError:
        raise BadInput("there is no such file") from None
    except UnidentifiedImageError:
        raise BadInput("not a picture, or of a kind that cannot be read") from None
    except BadInput:
        raise
    except Exception as error:  # a broken file makes a decoder raise anything
        raise BadInput(f"the picture is broken ({one_line(error)})") from None


def _files(path: Path) -> Iterator[Path]:
    """The path itself, or the files of a folder, sorted and without hidden ones."""
    if not path.is_dir():
        yield path
        return
    files = (file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    yield from sorted(files)


def _free_name(stem: str, taken: set[str]) -> str:
    name, count = stem, 1
    while name in taken:
        count += 1
        name = f"{stem}-{count}"
    return name


def as_rgb(picture: Image.Image) -> tuple[Image.Image, str]:
    """The picture in 8-bit RGB and full range, and a remark where something had to be decided."""
    picture = ImageOps.exif_transpose(picture)
    if picture.mode in _DEEP:
        return _from_16bit(picture).convert("RGB"), ""
    if picture.mode == "F":
        return _from_float(picture).convert("RGB"), ""
    if picture.has_transparency_data:
        layer = picture.convert("RGBA")
        if layer.getchannel("A").getextrema() != (255, 255):
            white = Image.new("RGBA", layer.size, _WHITE)
            return Image.alpha_composite(white, layer).convert("RGB"), "transparent, put on white"
        return layer.convert("RGB"), ""
    try:
        return picture.convert("RGB"), ""
    except ValueError:
        raise BadInput(f"pictures of mode {picture.mode} cannot be made RGB") from None


def _from_16bit(picture: Image.Image) -> Image.Image:
    """0 to 65535 becomes 0 to 255, rounded; PIL would cut off at 255 instead."""
    values = np.asarray(picture).astype(np.float64)
    low, high = values.min(), values.max()
    if low < 0 or high > 65535:
        raise BadInput(f"a 16-bit picture runs from 0 to 65535, this one from {low:g} to {high:g}")
    return Image.fromarray((values / 257).round().astype(np.uint8))


def _from_float(picture: Image.Image) -> Image.Image:
    values = np.asarray(picture).astype(np.float64)
    low, high = values.min(), values.max()
    if not (low >= 0 and high <= 1):  # NaN is refused here too
        raise BadInput(
            f"a floating-point picture must lie in [0, 1], this one runs from {low:g} to {high:g}"
        )
    return Image.fromarray((values * 255).round().astype(np.uint8))
