"""Staying inside: the pixel box, the l-infinity ball, and where values may change."""

import torch

from pinprick.types import Allowed, Images


def into_ball(adv: Images, images: Images, eps: float) -> Images:
    """The nearest point of [images - eps, images + eps] and [0, 1]."""
    return adv.clamp(images - eps, images + eps).clamp(0, 1)


def keep_allowed(adv: Images, images: Images, allowed: Allowed | None) -> Images:
    """``adv`` where values may change, the clean values elsewhere."""
    return adv if allowed is None else torch.where(allowed, adv, images)


def on_grid(adv: Images, images: Images) -> Images:
    """``adv`` at the nearest values an 8-bit image can hold; at the clean value's level, that."""
    level = (adv * 255).round()
    return torch.where(level == (images * 255).round(), images, level / 255)
