"""Maps as pictures: a map of a class as heat over the image, guided gradients as ink on white.

Guided gradients of networks with strided convolutions alternate in sign from pixel to pixel. So
channels are summed and smoothed over one pixel before the sign is dropped: what alternates
cancels, edges stay.
"""

import numpy as np
import torch
from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.image import AxesImage
from torch import Tensor
from torch.nn import functional as F

from pinprick.report.drawing import draw_picture
from pinprick.types import Picture

Plane = Float[Tensor, "height width"]

_OPAQUE = 0.85  # opacity of the largest heat
_DARKEST = 0.995  # quantile of values that is drawn black
_SMOOTHED = 224  # pixels per side of an image that is smoothed by a Gaussian of one pixel


def draw_heat(axes: Axes, picture: Picture, heat: Plane) -> None:
    """A map over its image in grey, more opaque where it is hotter, with a colour bar."""
    draw_picture(axes, picture.float().mean(dim=0, keepdim=True))
    values = heat.detach().cpu().float()
    most = float(values.max())
    image = axes.imshow(values.numpy(), cmap=_heat(), vmin=0, vmax=most if most > 0 else 1)
    _colour_bar(axes, image, most, "")


def draw_guided(axes: Axes, values: Picture) -> None:
    """The magnitude of guided values, white at zero, black at the largest, with a colour bar."""
    ink = edges(values)
    most = float(torch.quantile(ink.flatten()[:: _every(ink)], _DARKEST)) or float(ink.max())
    draw_picture(axes, torch.ones_like(values[:1]))
    image = axes.imshow(
        ink.numpy(), cmap="Greys", vmin=0, vmax=most or 1.0, interpolation="nearest"
    )
    _colour_bar(axes, image, most, "≥ " if float(ink.max()) > most else "")


def edges(values: Picture) -> Plane:
    """The magnitude of the smoothed sum over channels; small images are not smoothed."""
    plane = values.detach().cpu().float().sum(dim=0)
    width = min(plane.shape) / _SMOOTHED
    if width < 0.5:
        return plane.abs()
    far = round(3 * width)
    away = torch.arange(-far, far + 1, dtype=plane.dtype)
    weight = torch.exp(-away.square() / (2 * width**2))
    weight = weight / weight.sum()
    padded = F.pad(plane.view(1, 1, *plane.shape), (far, far, far, far), mode="replicate")
    smooth = F.conv2d(F.conv2d(padded, weight.view(1, 1, 1, -1)), weight.view(1, 1, -1, 1))
    return smooth[0, 0].abs()


def draw_words(axes: Axes, words: str) -> None:
    """Text in place of a picture: why there is none."""
    axes.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, parse_math=False, wrap=True)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")


def _heat() -> Colormap:
    """Purple to yellow, from clear to nearly opaque."""
    colours = colormaps["inferno"](np.linspace(0.3, 0.95, 256))
    colours[:, 3] = np.linspace(0, _OPAQUE, 256)
    return ListedColormap(colours)


def _colour_bar(axes: Axes, image: AxesImage, most: float, before: str) -> None:
    """A bar right of the panel, from zero to the largest value; none for a map of zeros."""
    if not most > 0:
        return
    side = axes.inset_axes((1.02, 0.0, 0.035, 1.0))
    values = np.linspace(0, most, 256).reshape(-1, 1)
    side.imshow(
        values, cmap=image.get_cmap(), origin="lower", aspect="auto", extent=(0.0, 1.0, 0.0, most)
    )
    side.set_xticks([])
    side.yaxis.tick_right()
    side.set_yticks(
        [0, most / 2, most], ["0", f"{most / 2:.2g}", f"{before}{most:.2g}"], fontsize=7
    )
    side.tick_params(length=2, width=0.4, pad=1.5)
    for spine in side.spines.values():
        spine.set_linewidth(0.4)


def _every(values: Plane) -> int:
    """The stride at which at most about a million values are left for the quantile."""
    return max(1, values.numel() // 2**20)
