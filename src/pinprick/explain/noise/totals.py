"""Explanations summarised over many images.

All numbers are over images that were fooled by a change. Failed and skipped images, and maps that
are zero everywhere, are counted apart. Shares of groups are over the groups of all images. Their
intervals are by bootstrap over images.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pinprick.explain.noise.explanation import Explanation, Family, Group, MapTest
from pinprick.explain.noise.labels import LABELS
from pinprick.explain.noise.spatial import MAP_LABELS
from pinprick.explain.noise.statistics import Association, Bootstrap, Estimate, associate
from pinprick.explain.noise.sufficiency import FAMILIES
from pinprick.json_text import from_plain, to_plain

STRICT = ("obscuring", "leading")
_LATER = ("clusters", "windows", "saliency_overlap")  # fields that older files lack
_UNKNOWN = to_plain(Estimate(value=math.nan, low=math.nan, high=math.nan, images=0))


@dataclass(frozen=True, kw_only=True)
class LabelShare:
    """The share of groups that have a label."""

    name: str
    share: Estimate


@dataclass(frozen=True, kw_only=True)
class FlipRate:
    """How often a family of groups decides, over images in which it is not empty.

    Attributes:
        name: One of ``pinprick.explain.noise.sufficiency.FAMILIES``.
        leaves: Share of images whose prediction is not the true class.
        reaches: Share of images whose prediction is the rival.
    """

    name: str
    leaves: Estimate
    reaches: Estimate


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Summary over a set of images.

    Attributes:
        images: Number of all images.
        explained: Number of images that were fooled by a change; the rest is over these.
        failed, skipped: Number of images whose attack failed, and that were met before the attack.
        minimal: Share of images in which no changed pixel can be restored, where that was tested.
        settled: Share of the polished images in which polishing has finished.
        pixels, groups: Mean number of changed pixels and of groups per image.
        kinds: Share of groups with each label, by Shapley values.
        ablation_kinds, path_kinds: The same by the two other definitions.
        decided: Share of groups that are not undecided.
        strict: Share of groups that are obscuring or leading and lie on the map of that class, over
            images with two maps that are not zero.
        obscuring_share: Median over images of ``obscuring / margin``.
        mostly_obscuring: Share of images in which it is above one half.
        ablation_gap, path_gap: Median over images of ``1 - (sum of effects) / margin``.
        table: Labels by effect against labels by map, without undecided groups.
        flips: Sufficiency and necessity.
        inside: Mean share of changed pixels in the top area of the clean image's map.
        inside_chance: The same by chance.
        inside_excess: Mean difference between the two.
        inside_significant: Share of images with p < 0.05.
        true_lift, adversarial_lift, control_lift: Mean lifts on the three maps; 1 by chance.
        clusters, windows: Mean number of clusters of changed pixels, and of windows that hold one.
        saliency_overlap: Mean share of the change on the adversarial saliency map.
        no_true_map, no_adversarial_map: Number of images whose map is zero; left out above.
        largest_error: Largest standard error of any Shapley value, as a share of ``margin``.
        forwards, backwards: Mean passes per explanation.
    """

    images: int
    explained: int
    failed: int
    skipped: int
    minimal: Estimate
    settled: Estimate
    pixels: Estimate
    groups: Estimate
    kinds: tuple[LabelShare, ...]
    ablation_kinds: tuple[LabelShare, ...]
    path_kinds: tuple[LabelShare, ...]
    decided: Estimate
    strict: tuple[LabelShare, ...]
    obscuring_share: Estimate
    mostly_obscuring: Estimate
    ablation_gap: Estimate
    path_gap: Estimate
    table: Association
    flips: tuple[FlipRate, ...]
    inside: Estimate
    inside_chance: Estimate
    inside_excess: Estimate
    inside_significant: Estimate
    true_lift: Estimate
    adversarial_lift: Estimate
    control_lift: Estimate
    clusters: Estimate
    windows: Estimate
    saliency_overlap: Estimate
    no_true_map: int
    no_adversarial_map: int
    largest_error: float
    forwards: Estimate
    backwards: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN and infinity become None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Totals":
        """The totals that ``to_dict`` wrote, also before it had the fields of ``_LATER``."""
        return from_plain(cls, {name: _UNKNOWN for name in _LATER} | data)


def add_up(explanations: Sequence[Explanation], *, draws: int = 2000, seed: int = 0) -> Totals:
    """Summarise explanations.

    Args:
        explanations: Explanations with the same settings.
        draws: Number of bootstrap samples for an interval, and of shuffles for p.
        seed: Seed of both.
    """
    explained = [one for one in explanations if one.status == "fooled" and one.groups]
    boot = Bootstrap(draws, seed)
    tests = [one.maps for one in explained if one.maps is not None]
    with_true_map = [test for test in tests if not test.no_true_map]
    return Totals(
        images=len(explanations),
        explained=len(explained),
        failed=sum(one.status == "failed" for one in explanations),
        skipped=sum(one.status == "skipped" for one in explanations),
        minimal=boot.mean([float(one.minimal) for one in explained if one.minimal is not None]),
        settled=boot.mean([float(one.settled) for one in explained if one.settled is not None]),
        pixels=boot.mean([float(one.changed_pixels) for one in explained]),
        groups=boot.mean([float(len(one.groups)) for one in explained]),
        kinds=_shares(explained, boot, LABELS, _shapley),
        ablation_kinds=_shares(explained, boot, LABELS, _ablation),
        path_kinds=_shares([one for one in explained if one.path_steps], boot, LABELS, _path),
        decided=_shares(explained, boot, ["decided"], _decided)[0].share,
        strict=_shares([one for one in explained if _has_maps(one.maps)], boot, STRICT, _strict),
        obscuring_share=boot.median(_finite([one.obscuring_share for one in explained])),
        mostly_obscuring=boot.mean([float(one.obscuring_share > 0.5) for one in explained]),
        ablation_gap=boot.median(_finite([one.ablation_gap for one in explained])),
        path_gap=boot.median(_finite([one.path_gap for one in explained])),
        table=_table(explained, draws, seed),
        flips=tuple(_flips(explained, name, boot) for name in FAMILIES),
        inside=boot.mean([test.inside_share for test in with_true_map]),
        inside_chance=boot.mean([test.inside_chance for test in with_true_map]),
        inside_excess=boot.mean([test.inside_share - test.inside_chance for test in with_true_map]),
        inside_significant=boot.mean([float(test.inside_p < 0.05) for test in with_true_map]),
        true_lift=boot.mean([test.true_lift for test in with_true_map]),
        adversarial_lift=boot.mean(_finite([test.adversarial_lift for test in tests])),
        control_lift=boot.mean(_finite([test.control_lift for test in tests])),
        clusters=boot.mean([float(one.clusters) for one in explained]),
        windows=boot.mean([float(one.windows) for one in explained]),
        saliency_overlap=boot.mean(_finite([one.saliency_overlap for one in explained])),
        no_true_map=sum(test.no_true_map for test in tests),
        no_adversarial_map=sum(test.no_adversarial_map for test in tests),
        largest_error=max((one.largest_error for one in explained), default=0.0),
        forwards=boot.mean([float(one.forwards) for one in explained]),
        backwards=boot.mean([float(one.backwards) for one in explained]),
    )


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _shares(
    explained: Sequence[Explanation],
    boot: Bootstrap,
    names: Sequence[str],
    label: Callable[[Group], str],
) -> tuple[LabelShare, ...]:
    """The share of all groups that have each label, in the order of ``names``."""
    wholes = [float(len(one.groups)) for one in explained]
    labels = [Counter(label(group) for group in one.groups) for one in explained]
    return tuple(
        LabelShare(name=name, share=boot.ratio([float(count[name]) for count in labels], wholes))
        for name in names
    )


def _shapley(group: Group) -> str:
    return group.shapley.label


def _ablation(group: Group) -> str:
    return group.ablation.label


def _path(group: Group) -> str:
    return group.path.label if group.path else ""


def _strict(group: Group) -> str:
    return group.place.strict if group.place else ""


def _decided(group: Group) -> str:
    return "" if group.shapley.label == "undecided" else "decided"


def _has_maps(maps: MapTest | None) -> bool:
    """Both maps are given and not zero."""
    return maps is not None and not (maps.no_true_map or maps.no_adversarial_map)


def _table(explained: Sequence[Explanation], shuffles: int, seed: int) -> Association:
    rows, columns = LABELS[:-1], MAP_LABELS[:-1]
    found = [
        (number, LABELS.index(group.shapley.label), MAP_LABELS.index(group.place.label))
        for number, one in enumerate(explained)
        for group in one.groups
        if group.place is not None and group.place.label in columns and group.shapley.label in rows
    ]
    images, first, second = torch.tensor(found, dtype=torch.long).view(-1, 3).unbind(dim=1)
    return associate(rows, columns, images, first, second, shuffles=shuffles, seed=seed)


def _flips(explained: Sequence[Explanation], name: str, boot: Bootstrap) -> FlipRate:
    """Over images in which the family is not empty."""
    families: list[Family] = [
        family
        for one in explained
        for family in one.families
        if family.name == name and family.size
    ]
    return FlipRate(
        name=name,
        leaves=boot.mean([float(family.leaves) for family in families]),
        reaches=boot.mean([float(family.reaches) for family in families]),
    )
