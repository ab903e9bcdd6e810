"""Pinprick: the attack is in ``attack.py``."""

from pinprick.attacks.pinprick.attack import Pinprick

__all__ = ["Pinprick"]
