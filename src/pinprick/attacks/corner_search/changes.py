"""What a single pixel can jump to, and images made of several such jumps.

A jump is a number: ``option * pixels + pixel``. So a choice of many jumps for many images is one
tensor of whole numbers, and only the images that are asked about next are ever made.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.errors import BadInput
from pinprick.parts.box import keep_allowed
from pinprick.parts.sigma_map import sigma_lines
from pinprick.problem import Problem
from pinprick.types import Images, Labels

_MOST_CHANNELS = 4


@dataclass(frozen=True)
class Changes:
    """The colours that each pixel may jump to.

    Attributes:
        colours: Their values, (batch, option, channel, pixel).
        useful: Which jumps change anything, and not what another does, (batch, option * pixel).
    """

    colours: Tensor
    useful: Tensor

    def made(self, images: Images, jumps: Tensor, rows: Labels) -> Images:
        """``images`` with some jumps each; of several at one pixel, the first counts.

        Args:
            images: The clean images, one for each choice of jumps.
            jumps: Some for each, (candidate, jump).
            rows: Which image of the batch each is.
        """
        channels, pixels = self.colours.shape[2:]
        option, pixel = jumps // pixels, jumps % pixels
        first = (pixel.unsqueeze(2) == pixel.unsqueeze(1)).int().argmax(dim=2)
        option = option.gather(1, first)
        values = self.colours[rows.unsqueeze(1), option, :, pixel].transpose(1, 2)
        places = pixel.unsqueeze(1).expand(-1, channels, -1)
        return images.flatten(2).scatter(2, places, values).view_as(images)


def corner_changes(problem: Problem) -> Changes:
    """Every corner of the colours: all channels at 0 or 1."""
    images, allowed = problem.images, problem.allowed
    channels = images.shape[1]
    if channels > _MOST_CHANNELS:
        raise BadInput(
            f"corner_search tries all 2^C corners of a pixel's C channels, at most "
            f"{_MOST_CHANNELS}; these images have {channels}"
        )
    colours, useful = [], []
    for option in range(2**channels):
        corner = torch.tensor([option >> channel & 1 for channel in range(channels)])
        corner = corner.to(images).view(1, -1, 1, 1).expand_as(images)
        jumped = keep_allowed(corner, images, allowed)
        changes = (jumped != images).any(dim=1)
        if allowed is not None:  # the same jump comes again at other values of shut channels
            changes &= ~((corner > 0) & ~allowed).any(dim=1)
        colours.append(jumped.flatten(2))
        useful.append(changes.flatten(1))
    return Changes(torch.stack(colours, dim=1), torch.cat(useful, dim=1))


def sigma_changes(problem: Problem, kappa: float) -> Changes:
    """The two ends of the line of the σ-map."""
    ends = sigma_lines(problem, kappa).ends()
    useful = [(end != problem.images).any(dim=1).flatten(1) for end in ends]
    return Changes(torch.stack([end.flatten(2) for end in ends], dim=1), torch.cat(useful, dim=1))
