"""SA-MOO: the attack is in ``attack.py``."""

from pinprick.attacks.sa_moo.attack import SAMOO

__all__ = ["SAMOO"]
