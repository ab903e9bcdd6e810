"""Masks from picture files: white pixels may change, black ones may not."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from PIL.Image import Image
from torch import Tensor

from pinprick.data.pictures import PictureRecord, read_picture
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.types import Images

_WHITE = 128  # grey values from here on count as white


def read_masks(
    path: Path, records: Sequence[PictureRecord], images: Images, model: Classifier
) -> Bool[Tensor, "batch 1 height width"]:
    """Where the pixels of each picture may change.

    A mask as large as the picture file is resized and cropped in the same way as the picture. Any
    other must be as large as the image that the model sees, or ``BadInput`` is raised.

    Args:
        path: A picture file for all pictures, or a folder with NAME.png per picture, by the name
            of the record or that of its own file.
        records: The pictures.
        images: The same pictures as the model sees them.
        model: The model, which resizes and crops pictures.
    """
    read = cache(_read)  # one file for all pictures is read once
    masks = []
    for record in records:
        file = _find(path, record, records) if path.is_dir() else path
        masks.append(_fitted(file, read(file), record, (images.shape[2], images.shape[3]), model))
    return torch.stack(masks)[:, None]


def _find(folder: Path, record: PictureRecord, records: Sequence[PictureRecord]) -> Path:
    """The mask of a picture: by its name in the table, or by that of its file if no other has it.

    A picture d00.png of a list is called 0-d00 in the table.
    """
    names = [record.name]
    if record.path.is_file() and [one.path.stem for one in records].count(record.path.stem) == 1:
        names = list(dict.fromkeys([record.name, record.path.stem]))
    for name in names:
        if (folder / f"{name}.png").exists():
            return folder / f"{name}.png"
    raise BadInput(
        f"the folder of masks {folder} has no {' or '.join(f'{name}.png' for name in names)}; "
        "it must hold one PNG per picture, by the names in the table or of the files"
    )


def _read(file: Path) -> Image:
    try:
        picture, remark = read_picture(file)
    except BadInput as error:
        raise BadInput(f"the mask {file} cannot be read: {error}") from None
    if remark:
        raise BadInput(f"the mask {file} is partly transparent; draw it in black and white alone")
    return picture


def _fitted(
    file: Path, mask: Image, record: PictureRecord, size: tuple[int, int], model: Classifier
) -> Bool[Tensor, "height width"]:
    """The mask at the size of the images that the model sees, height and width."""
    own = _own_size(record)
    if _size(mask) == own:
        white = model.prepare(mask).mean(dim=0) >= _WHITE / 255
    elif _size(mask) == size:
        white = torch.from_numpy(np.array(mask.convert("L"))) >= _WHITE
    else:
        also = "" if own in (None, size) else f", and its file has {own[0]} x {own[1]}"
        raise BadInput(
            f"the mask {file} has {_size(mask)[0]} x {_size(mask)[1]} pixels, but the model sees "
            f"{record.name} with {size[0]} x {size[1]}{also}; draw the mask in that size"
        )
    if not white.any():
        brightest = mask.convert("L").getextrema()[1]
        raise BadInput(
            f"the mask {file} has no white pixel for {record.name}, so nothing may change; "
            f"its largest value is {brightest}, white is 255"
        )
    return white


def _size(picture: Image) -> tuple[int, int]:
    return picture.height, picture.width


def _own_size(record: PictureRecord) -> tuple[int, int] | None:
    """Height and width of the picture file; None for an image that is in no file of its own."""
    return _size(read_picture(record.path)[0]) if record.path.is_file() else None
