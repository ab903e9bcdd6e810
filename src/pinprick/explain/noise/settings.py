"""The settings of an explanation."""

from dataclasses import dataclass
from typing import Literal

from pinprick.errors import BadInput
from pinprick.explain.class_scores import Gauge
from pinprick.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class NoiseSettings(Settings):
    """How changed pixels are grouped, measured and labelled.

    Attributes:
        grouping: "connected" for groups of connected pixels, "pixels" for single pixels.
        radius: Pixels by which each changed pixel is dilated before connecting; None for 1 in
            images of up to 64 pixels per side and 3 in larger ones.
        max_groups: Images with more groups have them joined to this number, by position.
        gauge: How logits become scores; see ``pinprick.explain.class_scores``.
        exact: Largest number of groups with exact Shapley values; with more they are sampled.
        error: Largest accepted standard error of a sampled value, as a share of the change of the
            margin.
        least_pairs, max_pairs: Least and most pairs of orders per group. Between the two, sampling
            continues for groups above ``error`` and for groups whose label is undecided.
        path_steps, max_path_steps: Points of the path integral in the first round, and at most; 0
            in the first round for no path integral.
        tolerance: Effects count as zero up to this share of the change of the margin, divided by
            the number of groups.
        ratio: How many times larger than the other effect an effect must be to name a group.
        top: Share of the pixels in the top area of a map.
        max_spare: Most changed pixels of an image to test whether each can be restored.
        seed: Seed of the random orders.
        block: Images per forward pass; None to choose by their size.
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
