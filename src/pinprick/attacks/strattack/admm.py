"""StrAttack's first stage: ADMM, with a copy of the change for each term.

    d = rho / (rho + 2 gamma) * (z - u)                                 small
    w = box(z - s)                                                      in the box
    y = box(shrink(z - v)),   shrink(a)_g = max(1 - tau / (rho |a_g|), 0) * a_g     few groups
    z = box((h z + rho (2 (d + u) + (w + s) + (y + v)) - c g) / (h + 4 rho)),  h = alpha sqrt(step)
    u += d - z,   s += w - z,   v += y - z

``z`` holds the copies together; ``u``, ``s`` and ``v`` are duals, ``g`` the gradient of the hinge
at ``z``. Judged is ``x + y``.
"""

import math

import torch

from pinprick.attacks.strattack.scene import Scene
from pinprick.parts.groups import shrink_groups
from pinprick.types import Mask, PerImage


class ADMM:
    """``z`` and its duals, all zero at first; the settings are those of the attack."""

    def __init__(
        self, scene: Scene, group: int, rho: float, alpha: float, tau: float, gamma: float
    ) -> None:
        self._scene, self._group, self._rho = scene, group, rho
        self._alpha, self._tau, self._gamma = alpha, tau, gamma
        self._z = torch.zeros_like(scene.low)
        self._duals = tuple(self._z.clone() for _ in range(3))

    def step(self, step: int, weight: PerImage) -> Mask:
        """One step, the ``step``-th with this weight; says where ``y`` fools."""
        scene, rho, z, (u, s, v) = self._scene, self._rho, self._z, self._duals
        _, _, pull = scene.look(z, weight)
        d = rho / (rho + 2 * self._gamma) * (z - u)
        w = scene.into_box(z - s)
        y = scene.into_box(shrink_groups(z - v, self._tau / rho, self._group))
        held = 2 * (d + u) + (w + s) + (y + v)
        inert = self._alpha * math.sqrt(step)
        z = scene.into_box((inert * z + rho * held - pull) / (inert + 4 * rho))
        self._z, self._duals = z, (u + d - z, s + w - z, v + y - z)
        return scene.judge(y)
