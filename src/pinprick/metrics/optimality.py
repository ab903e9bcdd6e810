"""Area under robust accuracy, and how near an attack comes to the best known on every image.

``needed`` has one number per image: 0 where the clean image counts as an error, infinite where the
attack failed. The best of several attacks per image is the worst case for the model.

Optimality is 1 where an attack matches the best on every image, and 0 where it fools no image with
fewer units than the hardest image needs. It is from AttackBench (Cinà, Rony et al., AAAI 2025).
"""

from collections.abc import Sequence

import numpy as np

from pinprick.metrics.needed import Numbers, mean_needed


def best_per_image(needed: Sequence[Numbers]) -> Numbers:
    """The fewest units over several runs on the same images; infinite where all failed."""
    best: Numbers = np.min(np.stack(needed), axis=0)
    return best


def largest_needed(best: Numbers) -> float:
    """The most units that a fooled image needs; 0 where no image was fooled."""
    return float(best[np.isfinite(best)].max(initial=0.0))


def area_under_curve(needed: Numbers, budget: float, weights: Numbers | None = None) -> Numbers:
    """Area under robust accuracy against changed units, from 0 to ``budget``.

    Robust accuracy is a step function, so this is exactly the mean of ``min(needed, budget)``.

    Args:
        needed: Units per image.
        budget: Where the area ends.
        weights: How often each image counts, one row per resample; None for once each.

    Returns:
        One number per row of ``weights``; NaN where there are no images.
    """
    return mean_needed(np.minimum(needed, budget), weights)


def optimality(needed: Numbers, best: Numbers, weights: Numbers | None = None) -> Numbers:
    """The exact optimality of an attack, from areas up to the largest entry of ``best``.

    Args:
        needed: Units per image, nowhere below ``best``.
        best: The fewest units per image over all attacks.
        weights: As in ``area_under_curve``. The area ends at the same budget in all resamples.

    Returns:
        One number per row of ``weights``. NaN where no attack could do worse than the best: all
        images that were fooled need the same number of units, or no image was fooled.
    """
    budget = largest_needed(best)
    worst = np.where(needed > 0, budget, 0.0)  # every attack on a correct image fails
    least = area_under_curve(best, budget, weights)
    return _share(
        area_under_curve(needed, budget, weights) - least, mean_needed(worst, weights) - least
    )


def trapezoid_optimality(needed: Numbers, best: Numbers) -> float:
    """Optimality as AttackBench's code computes it, for comparison with its published values.

    Its area joins the steps of the curve by straight lines, begins at the smallest number of units
    and takes failures as fooled at the largest budget. With few images or many failures it is far
    too high, and it can exceed 1.
    """
    if not len(needed):
        return float("nan")
    budget = largest_needed(best)
    least = _trapezoid(best, budget)
    worst = budget * float((needed > 0).mean())
    return float(_share(np.array(_trapezoid(needed, budget) - least), np.array(worst - least)))


def _trapezoid(needed: Numbers, budget: float) -> float:
    units, counts = np.unique(np.minimum(needed, budget), return_counts=True)
    correct = 1 - counts.cumsum() / len(needed)
    return float(((correct[1:] + correct[:-1]) / 2 * np.diff(units)).sum())


def _share(excess: Numbers, largest: Numbers) -> Numbers:
    """One minus the ratio; NaN where ``largest`` is zero, apart from rounding."""
    defined = largest > 1e-9
    return 1 - np.divide(excess, largest, out=np.full_like(excess, np.nan), where=defined)
