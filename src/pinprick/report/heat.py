"""Maps as pictures: Grad-CAM as colour over the image in grey, Guided Grad-CAM around grey."""

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from pinprick.report.changes import draw_picture
from pinprick.types import Picture

Plane = Float[Tensor, "height width"]

_COLOURS = "inferno"
_STRENGTH = 0.62  # how much of the colour covers the image
_BRIGHTEST = 0.995  # share of values that keep their place; the few larger ones are cut


def draw_heat(axes: Axes, picture: Picture, heat: Plane) -> None:
    """A map over its image, dark where it is zero and bright at its largest value."""
    draw_picture(axes, picture.float().mean(dim=0, keepdim=True))
    values = heat.detach().cpu().float()
    most = float(values.max())
    shown = values / most if most > 0 else values
    axes.imshow(shown.numpy(), cmap=_COLOURS, vmin=0, vmax=1, alpha=_STRENGTH)


def draw_guided(axes: Axes, values: Picture) -> None:
    """Signed values as colours around grey, the largest at full strength."""
    values = values.detach().cpu().float()
    most = float(torch.quantile(values.abs().flatten()[:: _every(values)], _BRIGHTEST))
    most = most or float(values.abs().max()) or 1.0
    draw_picture(axes, (0.5 + 0.5 * values / most).clamp(0, 1))


def draw_words(axes: Axes, words: str) -> None:
    """Why there is nothing to see."""
    axes.text(0.5, 0.5, words, ha="center", va="center", fontsize=8, parse_math=False, wrap=True)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal")


def _every(values: Picture) -> int:
    """Quantiles are taken of at most a million values."""
    return max(1, values.numel() // 2**20)
