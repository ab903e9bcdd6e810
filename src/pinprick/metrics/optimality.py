"""Area under robust accuracy, and how near an attack comes to the best known on every image.

``needed`` has one number per image: 0 where the clean image counts as an error, infinite where the
attack failed. The best of several attacks per image is the worst case for the model.

Optimality is 1 where an attack matches the best on every image, and 0 where it fools no image with
fewer units than the hardest image needs. It is from AttackBench (Cinà, Rony et al., AAAI 2025).
"""

import math
from collections.abc import Sequence

import numpy as np

from pinprick.metrics.needed import Numbers


def best_per_image(needed: Sequence[Numbers]) -> Numbers:
    """The fewest units over several runs on the same images; infinite where all failed."""
    best: Numbers = np.min(np.stack(needed), axis=0)
    return best


def largest_needed(best: Numbers) -> float:
    """The most units that a fooled image needs; 0 where no image was fooled."""
    return float(best[np.isfinite(best)].max(initial=0.0))


def area_under_curve(needed: Numbers, budget: float) -> float:
    """Area under robust accuracy against changed units, from 0 to ``budget``.

    Robust accuracy is a step function, so this is exactly the mean of ``min(needed, budget)``.
    """
    return float(np.minimum(needed, budget).mean()) if len(needed) else math.nan


def excess_units(needed: Numbers, best: Numbers) -> Numbers:
    """Units per image beyond the best, as far as the largest entry of ``best``.

    Args:
        needed: Units per image, nowhere below ``best``; or one row per run.
        best: The fewest units per image over all attacks.
    """
    budget = largest_needed(best)
    excess: Numbers = np.minimum(needed, budget) - np.minimum(best, budget)
    return excess


def largest_excess(best: Numbers) -> Numbers:
    """The excess of an attack that fails on every image that is correct before it."""
    return excess_units(np.where(best > 0, np.inf, 0.0), best)


def optimality(needed: Numbers, best: Numbers) -> float:
    """The exact optimality: one minus the mean excess over the largest mean excess.

    Args:
        needed: Units per image, nowhere below ``best``.
        best: The fewest units per image over all attacks.

    Returns:
        NaN where no attack could do worse than the best: all images that were fooled need the same
        number of units, or no image was fooled.
    """
    largest = float(largest_excess(best).sum())
    return 1 - float(excess_units(needed, best).sum()) / largest if largest > 0 else math.nan


def trapezoid_optimality(needed: Numbers, best: Numbers) -> float:
    """Optimality as AttackBench's code computes it, for comparison with its published values.

    Its area joins the steps of the curve by straight lines, begins at the smallest number of units
    and takes failures as fooled at the largest budget. With few images or many failures it is far
    too high, and it can exceed 1.
    """
    if not len(needed):
        return math.nan
    budget = largest_needed(best)
    least = _trapezoid(best, budget)
    largest = budget * float((needed > 0).mean()) - least
    return 1 - (_trapezoid(needed, budget) - least) / largest if largest > 1e-9 else math.nan


def _trapezoid(needed: Numbers, budget: float) -> float:
    units, counts = np.unique(np.minimum(needed, budget), return_counts=True)
    correct = 1 - counts.cumsum() / len(needed)
    return float(((correct[1:] + correct[:-1]) / 2 * np.diff(units)).sum())
