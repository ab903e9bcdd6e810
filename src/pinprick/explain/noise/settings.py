"""The settings of an explanation."""

from dataclasses import dataclass
from typing import Literal

from pinprick.errors import BadInput
from pinprick.explain.path import GAUGES, Gauge
from pinprick.parts.choice import check_choice


@dataclass(frozen=True, kw_only=True)
class NoiseSettings:
    """How changed pixels are grouped, asked about and labelled.

    Attributes:
        grouping: "connected" for groups of pixels that lie together, "pixels" for each by itself.
        radius: How far a pixel reaches out to the next one of its group; None for 1 in images of up
            to 64 pixels a side and 3 in larger ones.
        max_groups: Images with more groups have them joined to so many by where they lie.
        gauge: How logits become scores that can be compared.
        exact: Up to how many groups Shapley values come from all coalitions; above, from samples.
        error: Largest standard error of a sampled value, as a share of the whole change of the
            margin.
        least_pairs, max_pairs: Pairs of orders per group, at least and at most. Between the two,
            sampling goes on for groups above ``error`` and for groups whose label is undecided.
        path_steps, max_path_steps: Points of the path integral, at first and at most; none are
            taken if the first is 0.
        tolerance: What is too little to count: this share of the change of the margin, divided by
            the number of groups.
        ratio: How many times larger than the other an effect must be to name a group.
        top: How much of an image the top area of a map is.
        max_spare: Most changed pixels of an image for which it is seen whether each is needed.
        seed: Of the random orders.
        block: How many images the model is asked about at a time; None to choose by their size.
    """

    grouping: Literal["connected", "pixels"] = "connected"
    radius: int | None = None
    max_groups: int = 32
    gauge: Gauge = "centred"
    exact: int = 8
    error: float = 0.05
    least_pairs: int = 16
    max_pairs: int = 256
    path_steps: int = 24
    max_path_steps: int = 216
    tolerance: float = 0.05
    ratio: float = 2.0
    top: float = 0.2
    max_spare: int = 256
    seed: int = 0
    block: int | None = None

    def __post_init__(self) -> None:
        check_choice("an explanation", "grouping", self.grouping, ("connected", "pixels"))
        check_choice("an explanation", "gauge", self.gauge, GAUGES)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise BadInput(f"an explanation needs {name} >= {least}, got {value}")
        if not 0 <= self.exact <= 16:
            raise BadInput(
                f"an explanation asks about 2^exact coalitions; exact must lie in 0 to 16, "
                f"got {self.exact}"
            )
        if self.max_pairs < self.least_pairs:
            raise BadInput(
                f"an explanation needs max_pairs >= least_pairs, got {self.max_pairs} and "
                f"{self.least_pairs}"
            )
        if not 0 < self.top < 1:
            raise BadInput(f"an explanation needs top between 0 and 1, got {self.top}")


_LEAST = {
    "radius": 0,
    "max_groups": 1,
    "error": 0,
    "least_pairs": 2,
    "path_steps": 0,
    "tolerance": 0,
    "ratio": 1,
    "max_spare": 0,
    "block": 1,
}
