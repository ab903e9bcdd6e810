"""WI-FGSM: the attack is in ``attack.py``."""

from pinprick.attacks.wifgsm.attack import WIFGSM

__all__ = ["WIFGSM"]
