"""Homotopy: the attack is in ``attack.py``."""

from pinprick.attacks.homotopy.attack import Homotopy

__all__ = ["Homotopy"]
