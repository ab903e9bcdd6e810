"""StrAttack's second stage: the smallest changes are put back, and the others descend ungrouped.

    d = box(rho / (rho + gamma / 100) * (z - u))
    z = (alpha z + 2 rho (d + u) - c g) / (alpha + 2 rho),    u += d - z

``g`` is the gradient of the hinge at ``d``, which is judged as well.
"""

import torch
from torch import Tensor

from pinprick.attacks.strattack.scene import Scene
from pinprick.parts.largest import open_largest
from pinprick.types import Mask, PerImage


class Refinement:
    """One round: begins at the best image so far, less ``share`` of its changes."""

    def __init__(
        self, scene: Scene, share: PerImage, rho: float, alpha: float, gamma: float
    ) -> None:
        self._scene, self._rho, self._alpha, self._gamma = scene, rho, alpha, gamma
        self._z = scene.best_change()
        self._kept, self._u = _larger(self._z, share), torch.zeros_like(self._z)

    def step(self, weight: PerImage) -> Mask:
        """One step; says where ``d`` fools."""
        scene, rho, alpha, z, u = self._scene, self._rho, self._alpha, self._z, self._u
        d = scene.into_box(rho / (rho + self._gamma / 100) * (z - u))
        d = torch.where(self._kept, d, 0)
        adv, met, pull = scene.look(d, weight)
        scene.offer(adv, met)
        z = (alpha * z + 2 * rho * (d + u) - pull) / (alpha + 2 * rho)
        self._z = torch.where(self._kept, z, 0)
        self._u = u + d - self._z
        return met


def _larger(change: Tensor, share: PerImage) -> Tensor:
    """Where the larger changes are: all but the share to put back, and at least one."""
    sizes = change.abs().flatten(1)
    number = (sizes > 0).sum(dim=1)
    less = (share * (number - 1)).floor().long() + 1
    kept = (number - less).clamp_min(1)
    return open_largest(sizes, kept, int(kept.max()), above=-torch.inf).view_as(change)
