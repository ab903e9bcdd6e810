"""Paired tests of every two attacks on the same images, with Holm's correction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pinprick.metrics.needed import Numbers
from pinprick.metrics.outcomes import Outcomes
from pinprick.metrics.paired_tests import holm, mcnemar, wilcoxon
from pinprick.metrics.unit import Unit


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Two attacks on the images that were classified correctly before both.

    Of several seeds an image gets the median: it is fooled if more than half of the seeds fool it.

    Attributes:
        first, second: Names of the attacks.
        images: Number of images.
        only_first, only_second: Images that one attack fooled and the other did not.
        fewer_pixels: Images for which the first, and the second, needed fewer pixels.
        fewer_elements: The same in elements.
        p_fooled: McNemar's test of who fools more.
        p_pixels, p_elements: Wilcoxon's test of who needs fewer; a failure is infinite.

    All p values are two-sided and corrected for the number of pairs.
    """

    first: str
    second: str
    images: int
    only_first: int
    only_second: int
    fewer_pixels: tuple[int, int]
    fewer_elements: tuple[int, int]
    p_fooled: float
    p_pixels: float
    p_elements: float


def compare_pairs(runs: Mapping[str, Sequence[Outcomes]]) -> list[PairedTest]:
    """One test per pair of attacks, in order; all runs are of the same images."""
    pairs = [_Pair(runs, *names) for names in combinations(runs, 2)]
    corrected = zip(
        pairs,
        holm([mcnemar(pair.fooled[0], pair.fooled[1]) for pair in pairs]),
        holm([wilcoxon(*pair.pixels) for pair in pairs]),
        holm([wilcoxon(*pair.elements) for pair in pairs]),
        strict=True,
    )
    return [
        PairedTest(
            first=pair.first,
            second=pair.second,
            images=len(pair.pixels[0]),
            only_first=int((pair.fooled[0] & ~pair.fooled[1]).sum()),
            only_second=int((pair.fooled[1] & ~pair.fooled[0]).sum()),
            fewer_pixels=_fewer(*pair.pixels),
            fewer_elements=_fewer(*pair.elements),
            p_fooled=p_fooled,
            p_pixels=p_pixels,
            p_elements=p_elements,
        )
        for pair, p_fooled, p_pixels, p_elements in corrected
    ]


class _Pair:
    """What two attacks needed for the images that were correct before both."""

    def __init__(self, runs: Mapping[str, Sequence[Outcomes]], first: str, second: str) -> None:
        self.first, self.second = first, second
        both = (runs[first], runs[second])
        correct = np.logical_and.reduce([run.correct for each in both for run in each])

        def needed(unit: Unit) -> tuple[Numbers, Numbers]:
            one, two = (
                np.median([run.needed(unit)[correct] for run in each], axis=0) for each in both
            )
            return one, two

        self.pixels, self.elements = needed("pixels"), needed("elements")
        self.fooled = np.isfinite(self.pixels)


def _fewer(first: Numbers, second: Numbers) -> tuple[int, int]:
    return int((first < second).sum()), int((second < first).sum())
