"""The settings of an explanation."""

from dataclasses import dataclass
from typing import Literal

from pinprick.errors import BadInput
from pinprick.explain.class_scores import Gauge
from pinprick.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class NoiseSettings(Settings):
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
    radius: int | None = setting(None, least=0)
    max_groups: int = setting(32, least=1)
    gauge: Gauge = "centred"
    exact: int = setting(8, least=0, most=16, hint="2^exact coalitions are asked about")
    error: float = setting(0.05, least=0)
    least_pairs: int = setting(16, least=2)
    max_pairs: int = setting(256, least=2)
    path_steps: int = setting(24, least=0)
    max_path_steps: int = setting(216, least=0)
    tolerance: float = setting(0.05, least=0)
    ratio: float = setting(2.0, least=1)
    top: float = setting(0.2, above=0, below=1)
    max_spare: int = setting(256, least=0)
    seed: int = 0
    block: int | None = setting(None, least=1)

    @classmethod
    def owner(cls) -> str:
        return "an explanation"

    def __post_init__(self) -> None:
        if self.max_pairs < self.least_pairs:
            raise BadInput(
                f"an explanation needs max_pairs >= least_pairs, got {self.max_pairs} and "
                f"{self.least_pairs}"
            )
