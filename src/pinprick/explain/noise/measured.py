"""What was measured about a batch of adversarial images, as tensors, before it is written out."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from pinprick.explain.maps.maps import PixelMaps
from pinprick.explain.noise.coalitions import Ablation, Build
from pinprick.explain.noise.groups import Groups
from pinprick.explain.noise.labels import Kinds
from pinprick.explain.noise.shapley import Shapley
from pinprick.explain.noise.spatial import Spatial
from pinprick.explain.noise.sufficiency import Sufficiency
from pinprick.explain.path import Integral
from pinprick.types import Counts, Labels, PerImage


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One row an image in everything.

    Attributes:
        groups, size: Which pixels belong together, and how large the change of each pixel is.
        rivals: The class that each image is led to.
        totals: The whole obscuring and leading change.
        tolerance: What is too little to count.
        shapley, ablation, path: Effects by three definitions; no path without gradients.
        shapley_kinds, ablation_kinds, path_kinds: Their labels.
        build: The stages from clean to adversarial.
        sufficiency: What families of groups do.
        spatial: Where the change lies; None without maps.
        spare: Pixels that can be spared; -1 where not looked at.
        forwards, backwards: Passes spent.
    """

    groups: Groups
    size: PixelMaps
    rivals: Labels
    totals: Float[Tensor, "batch 2"]
    tolerance: PerImage
    shapley: Shapley
    shapley_kinds: Kinds
    ablation: Ablation
    ablation_kinds: Kinds
    path: Integral | None
    path_kinds: Kinds | None
    build: Build
    sufficiency: Sufficiency
    spatial: Spatial | None
    spare: Counts
    forwards: Counts
    backwards: Counts
