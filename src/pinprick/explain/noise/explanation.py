"""The explanation of one adversarial image in plain numbers, ready for JSON.

Effects are changes of scores. *Obscuring* is the decrease of the true class's score. *Leading* is
the increase of the rival's score. Their sum is the decrease of the margin between the two.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from pinprick.json_text import from_plain, to_plain

Status = Literal["fooled", "failed", "skipped"]
Values = tuple[tuple[float, ...], ...]  # channel values per pixel


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of one group, by one definition.

    Attributes:
        obscuring: Decrease of the score of the true class.
        leading: Increase of the score of the rival.
        margin: Their sum.
        balance: ``(obscuring - leading) / (|obscuring| + |leading|)``; 0 if both are zero.
        label: "obscuring", "leading", "mixed", "inert", "counter-productive" or "undecided".
    """

    obscuring: float
    leading: float
    margin: float
    balance: float
    label: str


@dataclass(frozen=True, kw_only=True)
class ShapleyEffect(Effect):
    """The Shapley value, which is what is reported.

    Attributes:
        obscuring_error, leading_error, margin_error: Standard errors; 0 if it is exact.
    """

    obscuring_error: float
    leading_error: float
    margin_error: float


@dataclass(frozen=True, kw_only=True)
class AblationEffect(Effect):
    """The mean of removal and insertion, and each of them.

    Attributes:
        removed_obscuring, removed_leading: Effects of restoring the group alone.
        inserted_obscuring, inserted_leading: Effects of changing the group alone.
    """

    removed_obscuring: float
    removed_leading: float
    inserted_obscuring: float
    inserted_leading: float


@dataclass(frozen=True, kw_only=True)
class MapLabel:
    """Where a group lies on the two maps.

    Attributes:
        label: "obscuring", "leading", "overlap", "outside" or "unknown".
        true_share, adversarial_share: Share of its change in the top area of either map.
        strict: "obscuring" or "leading" if its Shapley value has that label and it lies in the top
            area of the map of that class; else "".
    """

    label: str
    true_share: float
    adversarial_share: float
    strict: str


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of changed pixels and its effects.

    Attributes:
        number: From 0, in reading order.
        pixels: Row and column of each; empty where a file of their own lists them.
        before, after: Channel values of each pixel in the clean and in the adversarial image.
        centre: Row and column of its centre, weighted by the size of the change.
        box: First row, first column, last row, last column.
        weight: Its share of the l1 norm of the whole change.
        shapley, ablation, path: Effects by three definitions; ``path`` is None without gradients.
        place: Where it lies on the maps; None without maps.
    """

    number: int
    pixels: tuple[tuple[int, int], ...]
    before: Values
    after: Values
    centre: tuple[float, float]
    box: tuple[int, int, int, int]
    weight: float
    shapley: ShapleyEffect
    ablation: AblationEffect
    path: Effect | None
    place: MapLabel | None


@dataclass(frozen=True, kw_only=True)
class ModelOutput:
    """The model's output for one image between clean and adversarial.

    Attributes:
        guess: The predicted class.
        margin: Logit of the true class minus logit of the rival.
        true_score, adversarial_score: Scores of the true class and of the rival, in the gauge of
            the explanation.
        true_probability, adversarial_probability: Their softmax probabilities.
    """

    guess: int
    margin: float
    true_score: float
    adversarial_score: float
    true_probability: float
    adversarial_probability: float


@dataclass(frozen=True, kw_only=True)
class Family:
    """The effect of some groups alone, or of all other groups without them.

    Attributes:
        name: "obscuring alone", "leading alone", "obscuring and leading", "without obscuring" or
            "without leading".
        size: How many groups the family has; 0 is no test.
        changed: Numbers of the groups that are changed in the tested image.
        state: The model's output for that image.
        leaves: The prediction is not the true class.
        reaches: The prediction is the rival.
    """

    name: str
    size: int
    changed: tuple[int, ...]
    state: ModelOutput
    leaves: bool
    reaches: bool


@dataclass(frozen=True, kw_only=True)
class MapTest:
    """Where the whole change lies on the maps; see ``pinprick.explain.noise.spatial``.

    Attributes:
        true_lift, true_p: On the clean image's map for the true class; NaN if the map is zero.
        adversarial_lift, adversarial_p: On the adversarial image's map for the rival.
        control_lift, control_p: On the clean image's map for the rival; NaN if not given.
        inside_share, inside_chance, inside_p: Share of changed pixels in the top area of the true
            class's map, the share by chance, and the share of shifts that reach it.
        no_true_map, no_adversarial_map: The map is zero everywhere.
    """

    true_lift: float
    true_p: float
    adversarial_lift: float
    adversarial_p: float
    control_lift: float
    control_p: float
    inside_share: float
    inside_chance: float
    inside_p: float
    no_true_map: bool
    no_adversarial_map: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why one adversarial image misleads, group by group.

    Defaults are the values of an image in which no pixel changed.

    Attributes:
        id: The index of the image.
        model, attack: The attacked model; the attack with its settings.
        status: "fooled", "failed" or "skipped". A failed attack is explained as well. An image is
            skipped where the clean image meets the goal.
        remark: Why it failed, where that is known.
        label: The true class.
        target: The class to reach; None if untargeted.
        rival: The class that leading refers to: the target, or the class with the largest
            adversarial logit other than the label.
        clean, adversarial: The model's outputs for both images.
        settings: The settings of the explanation.
        gauge: How logits became scores.
        changed_pixels, changed_elements: Number of pixels and of elements that differ.
        spare_pixels: Number of changed pixels that can be restored, each by itself. Zero means
            minimal. None if not tested: a failed attack, or too many pixels.
        most_spare_pixels: Upper bound on ``spare_pixels``, by what polishing tested; None for a
            failed attack.
        polished: The unit by which the result was polished; "" if it was not.
        settled: Polishing has finished; False if its budget ran out, None without polishing.
        obscuring, leading, margin: The whole change of both scores, and their sum.
        obscuring_share: ``obscuring / margin``. It is outside [0, 1] where the two have opposite
            signs, and NaN where the margin did not change.
        tolerance: Effects up to this size count as zero.
        ratio: How many times larger than the other effect an effect must be to name a group.
        method: "exact" or "sampled"; "none" if no pixel changed.
        pairs: Most pairs of orders drawn for a group; 0 if exact.
        largest_error: Largest standard error of a Shapley value, as a share of ``margin``.
        shapley_gap, ablation_gap, path_gap: ``1 - (sum of the groups' effects) / margin``. That of
            Shapley values is 0, except for rounding, if they are exact or all groups have equally
            many pairs. NaN where ``margin`` did not change, and without a path integral.
        path_steps: Points of the path integral.
        groups: The groups, in the order of their numbers.
        order: Numbers of the groups, the largest Shapley effect on the margin first.
        stages: The model's outputs for the clean image and after each group in this order.
        families: Tests of sufficiency and necessity; empty if no pixel changed.
        maps: Where the change lies; None without maps.
        clusters: Number of clusters of changed pixels, which touch along their sides.
        windows: Number of windows of 8 x 8 pixels that hold a changed pixel.
        saliency_overlap: Share of the change on the adversarial saliency map; see
            ``pinprick.explain.noise.structure``. NaN without gradients, or where the map is zero.
        forwards, backwards: Passes that the explanation took.
    """

    id: int
    model: str
    attack: dict[str, Any]
    status: Status
    remark: str
    label: int
    target: int | None
    rival: int
    clean: ModelOutput
    adversarial: ModelOutput
    settings: dict[str, Any]
    gauge: str
    changed_pixels: int
    changed_elements: int
    spare_pixels: int | None = None
    most_spare_pixels: int | None = None
    polished: str
    settled: bool | None
    obscuring: float = 0.0
    leading: float = 0.0
    margin: float = 0.0
    obscuring_share: float = math.nan
    tolerance: float = 0.0
    ratio: float
    method: Literal["exact", "sampled", "none"] = "none"
    pairs: int = 0
    largest_error: float = 0.0
    shapley_gap: float = math.nan
    ablation_gap: float = math.nan
    path_gap: float = math.nan
    path_steps: int = 0
    groups: tuple[Group, ...] = ()
    order: tuple[int, ...] = ()
    stages: tuple[ModelOutput, ...]
    families: tuple[Family, ...] = ()
    maps: MapTest | None = None
    clusters: int = 0
    windows: int = 0
    saliency_overlap: float = math.nan
    forwards: int = 0
    backwards: int = 0

    @property
    def minimal(self) -> bool | None:
        """No changed pixel can be restored; None if that was not tested."""
        return None if self.spare_pixels is None else self.spare_pixels == 0

    def _repr_html_(self) -> str:
        """For notebooks: places of the groups, and their effects as bars."""
        from pinprick.report.notebook_html import explanation_html

        return explanation_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN and infinity become None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Explanation":
        """The explanation that ``to_dict`` wrote."""
        return from_plain(cls, data)
