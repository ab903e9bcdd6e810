"""Can any changed pixel be spared? Each is put back alone, and the goal looked at again.

An explanation of a change that is larger than it has to be explains what need not be there. So a
result is polished first (``pinprick.polish`` with ``unit="pixels"``), and here it is seen whether
that is so: no pixel can be spared, or so many can, each by itself. One pass a pixel.
"""

import torch

from pinprick.explain.coalitions import Coalitions
from pinprick.explain.groups import single_pixels
from pinprick.types import Counts, Mask


def spare_pixels(coalitions: Coalitions, met: Mask, most: int) -> Counts:
    """How many changed pixels each image could do without, one at a time; -1 if not looked at.

    Args:
        coalitions: What can be asked; its own groups play no part.
        met: Which images meet the goal; the others have nothing to lose and are not looked at.
        most: Images with more changed pixels are not looked at, for the cost.
    """
    problem, adversarial = coalitions.problem, coalitions.adversarial
    pixels = single_pixels(coalitions.groups.index >= 0)
    rows = (met & (pixels.count <= most)).nonzero().squeeze(1)
    spare = torch.full_like(pixels.count, -1)
    spare[rows] = 0
    if not int(pixels.count[rows].sum()):
        return spare
    which = rows.repeat_interleave(pixels.count[rows])
    start = pixels.count[rows].cumsum(dim=0) - pixels.count[rows]
    number = torch.arange(len(which), device=which.device)
    number = number - start.repeat_interleave(pixels.count[rows])
    for some, pixel in zip(
        which.split(coalitions.block), number.split(coalitions.block), strict=True
    ):
        part = problem[some]
        back = (pixels.index[some] == pixel.view(-1, 1, 1)).unsqueeze(1)
        with torch.no_grad():
            logits = part.logits(torch.where(back, part.images, adversarial[some]))
        spare.index_add_(0, some, part.goal.met(logits).long())
    return spare
