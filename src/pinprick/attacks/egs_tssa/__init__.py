"""EGS-TSSA: a trained network writes a sparse perturbation in one pass."""

from pinprick.attacks.egs_tssa.attack import EGSTSSA

__all__ = ["EGSTSSA"]
