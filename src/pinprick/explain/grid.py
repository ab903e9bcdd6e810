"""The output of a layer as planes over the image, however the network lays it out.

Three layouts are known: channels first, as convolutions have it; channels last, as some
transformers with windows; and tokens, one a patch, row by row, with the class token and its like
standing before them.
"""

import math

from torch import Tensor

from pinprick.types import Images

_MOST_EXTRA = 8  # tokens that belong to no patch: of the class, of a teacher, registers


def planes(output: Tensor, images: Images) -> Tensor | None:
    """``output`` as (batch, channels, rows, columns); None if it is no map of the images."""
    if len(output) != len(images) or not output.is_floating_point():
        return None
    if output.ndim == 4:
        first, last = output, output.permute(0, 3, 1, 2)
        closest = min((first, last), key=lambda read: _apart(read, images))
        within = all(a <= b for a, b in zip(closest.shape[2:], images.shape[2:], strict=True))
        return closest if within and closest[0, 0].numel() > 1 else None
    return _from_tokens(output, images) if output.ndim == 3 else None


def _apart(read: Tensor, images: Images) -> float:
    """How far the sides of a map are from being in proportion to those of the images."""
    (rows, columns), (height, width) = read.shape[2:], images.shape[2:]
    return abs(math.log(rows * width) - math.log(columns * height))


def _from_tokens(output: Tensor, images: Images) -> Tensor | None:
    """The tokens of the patches; how many stand before them shows in the sides of what is left."""
    height, width = images.shape[2:]
    grids = []
    for extra in range(min(_MOST_EXTRA, output.shape[1] - 2) + 1):
        patches = output.shape[1] - extra
        rows = max(1, round(math.sqrt(patches * height / width)))
        columns = patches // rows
        off = abs(rows * width - columns * height)
        if rows * columns == patches and off < max(height, width) and rows <= height:
            grids.append((off, extra, rows, columns))
    if not grids:
        return None
    _, extra, rows, columns = min(grids)
    return output[:, extra:].transpose(1, 2).reshape(len(output), -1, rows, columns)
