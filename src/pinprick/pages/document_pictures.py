"""Clean and adversarial pictures for the rows of a document.

Clean pictures come from the folder, from the pixels that an explanation lists, or from the dataset
that the document names. A picture of a dataset is shown only if it differs from the adversarial PNG
in no more pixels than were counted.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pinprick.errors import PinprickError
from pinprick.pages.explained_groups import explained_change
from pinprick.pages.report_parts import Bytes, changed_pixels

_MOST_PIXELS = 64_000_000  # of a PNG in a folder; a larger one is not decoded

Row = Mapping[str, Any]


def pictures_of(document: Row, folder: Path, picture: Row, row: Row) -> dict[str, Any]:
    """Clean image and change, as far as they can be found."""
    files = picture.get("files", {})
    after, clean = (
        _read_png(folder, files.get("adversarial")),
        _read_png(folder, files.get("clean")),
    )
    if clean is None and after is not None and row.get("explanation"):
        clean = explained_change(row["explanation"], after)
    if clean is None:
        clean = _from_dataset(document, str(picture["path"]))
        if after is not None and not _fits(clean, after, row["l0_pixels"]):
            clean = None
    if clean is None or after is None:
        return {"picture": clean, "after": after}
    if clean.shape != after.shape:
        return {"after": after}
    return {"picture": clean, "change": changed_pixels(clean, after)}


def picture_elements(document: Row, folder: Path, pictures: Sequence[Row]) -> int:
    """Elements of the first picture that is found, all being of the model's size; 0 for none."""
    for picture in pictures:
        files = picture.get("files", {})
        for name in ("adversarial", "clean"):
            if (found := _read_png(folder, files.get(name))) is not None:
                return found.size
        if (clean := _from_dataset(document, str(picture["path"]))) is not None:
            return clean.size
    return 0


def _fits(clean: Bytes | None, after: Bytes, counted: int) -> bool:
    """Whether an adversarial PNG can come from a clean image with so many changed pixels."""
    if clean is None or clean.shape != after.shape:
        return False
    return int((clean != after).any(axis=2).sum()) <= counted


def _read_png(folder: Path, name: Any) -> Bytes | None:
    """A picture in the folder as (height, width, channels); None if there is none."""
    if not isinstance(name, str) or Path(name).name != name:  # a file of the folder alone
        return None
    try:
        with Image.open(folder / name, formats=["PNG"]) as image:
            if image.width * image.height > _MOST_PIXELS:
                return None
            pixels = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _from_dataset(document: Row, path: str) -> Bytes | None:
    """The image of a path such as "cifar10/test[17]", if the dataset is at hand."""
    found = re.fullmatch(r".*\[(\d+)\]", path)
    if not found or not isinstance(document.get("data"), str):
        return None
    root = document.get("request", {}).get("root")
    return _dataset(document["data"], root).get(int(found[1]))


@cache
def _dataset(data: str, root: str | None) -> Mapping[int, Bytes]:
    """The images of a subset by their index; empty if it is not at hand, or made of files."""
    from pinprick.data.select import load_subset

    try:
        images = load_subset(data, root=root)
    except PinprickError:
        return {}
    if images.pixels is None:
        return {}
    pixels = images.pixels.permute(0, 2, 3, 1).numpy()
    return dict(zip(images.indices.tolist(), pixels, strict=True))
