"""The explanations of many images, added up: does what is said of single images hold in general?

Everything is over images that were fooled and in which something changed; how many failed, were
skipped or had a map of zeros is told beside it. Shares of groups are those of all groups together,
and their intervals come from drawing images again.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pinprick.explain.noise.explanation import (
    Explanation,
    Family,
    Group,
    MapTest,
    from_plain,
    to_plain,
)
from pinprick.explain.noise.labels import LABELS
from pinprick.explain.noise.spatial import PLACES
from pinprick.explain.noise.statistics import Association, Bootstrap, Estimate, associate
from pinprick.explain.noise.sufficiency import FAMILIES

STRICT = ("obscuring", "leading")


@dataclass(frozen=True, kw_only=True)
class Share:
    """An estimate with its name."""

    name: str
    share: Estimate


@dataclass(frozen=True, kw_only=True)
class FlipRate:
    """How often a family of groups decides, over images that have one.

    Attributes:
        name: One of ``pinprick.explain.noise.sufficiency.FAMILIES``.
        leaves: Share of images that are not taken for the true class.
        reaches: Share of images that are taken for the class the attack led to.
    """

    name: str
    leaves: Estimate
    reaches: Estimate


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What came out over a set of images.

    Attributes:
        images: All that were given.
        explained: Those that were fooled and in which something changed; the rest is over these.
        failed, skipped: Attacks that failed; images that needed none.
        minimal: Share of images of which no changed pixel can be spared, where that is known.
        settled: Share of the polished images in which polishing went on until nothing could be
            spared, and was not cut off.
        pixels, groups: Mean number of changed pixels and of groups an image.
        kinds: Share of groups with each label, by Shapley values.
        ablation_kinds, path_kinds: The same by the two other definitions.
        decided: Share of groups that are not undecided.
        strict: Share of groups that are obscuring or leading and lie where they should, where both
            maps say something.
        obscuring_share: Median over images of the obscuring part of the change of the margin.
        mostly_obscuring: Share of images in which it is above one half.
        ablation_gap, path_gap: Median over images of what effects leave of the change.
        table: What groups do against where they lie; undecided ones are left out.
        flips: Sufficiency and necessity.
        inside: Mean share of changed pixels in the top area of the clean image's map.
        inside_chance: What random shifts would give.
        inside_excess: Mean of the difference between the two.
        inside_significant: Share of images in which fewer than 5 % of shifts reach it.
        true_lift, adversarial_lift, control_lift: Mean lifts on the three maps; 1 is chance.
        no_true_map, no_adversarial_map: Images whose map was zero, which are left out above.
        largest_error: Largest standard error of any Shapley value, as a share of the change.
        forwards, backwards: Mean passes that an explanation took.
    """

    images: int
    explained: int
    failed: int
    skipped: int
    minimal: Estimate
    settled: Estimate
    pixels: Estimate
    groups: Estimate
    kinds: tuple[Share, ...]
    ablation_kinds: tuple[Share, ...]
    path_kinds: tuple[Share, ...]
    decided: Estimate
    strict: tuple[Share, ...]
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
    no_true_map: int
    no_adversarial_map: int
    largest_error: float
    forwards: Estimate
    backwards: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what is not a finite number is None."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Totals":
        """The totals that ``to_dict`` gave."""
        return from_plain(cls, data)


def add_up(explanations: Sequence[Explanation], *, draws: int = 2000, seed: int = 0) -> Totals:
    """What ``explanations`` come to.

    Args:
        explanations: Of any images, by the same settings.
        draws: How often images are drawn again for an interval, and places shuffled for p.
        seed: Of both.
    """
    told = [one for one in explanations if one.status == "fooled" and one.groups]
    boot = Bootstrap(draws, seed)
    tests = [one.maps for one in told if one.maps is not None]
    seen = [test for test in tests if not test.no_true_map]
    return Totals(
        images=len(explanations),
        explained=len(told),
        failed=sum(one.status == "failed" for one in explanations),
        skipped=sum(one.status == "skipped" for one in explanations),
        minimal=boot.mean([float(one.minimal) for one in told if one.minimal is not None]),
        settled=boot.mean([float(one.settled) for one in told if one.settled is not None]),
        pixels=boot.mean([float(one.changed_pixels) for one in told]),
        groups=boot.mean([float(len(one.groups)) for one in told]),
        kinds=_shares(told, boot, LABELS, _shapley),
        ablation_kinds=_shares(told, boot, LABELS, _ablation),
        path_kinds=_shares([one for one in told if one.path_steps], boot, LABELS, _path),
        decided=_shares(told, boot, ["decided"], _decided)[0].share,
        strict=_shares([one for one in told if _clear(one.maps)], boot, STRICT, _strict),
        obscuring_share=boot.median(_finite([one.obscuring_share for one in told])),
        mostly_obscuring=boot.mean([float(one.obscuring_share > 0.5) for one in told]),
        ablation_gap=boot.median(_finite([one.ablation_gap for one in told])),
        path_gap=boot.median(_finite([one.path_gap for one in told])),
        table=_table(told, draws, seed),
        flips=tuple(_flips(told, name, boot) for name in FAMILIES),
        inside=boot.mean([test.inside_share for test in seen]),
        inside_chance=boot.mean([test.inside_chance for test in seen]),
        inside_excess=boot.mean([test.inside_share - test.inside_chance for test in seen]),
        inside_significant=boot.mean([float(test.inside_p < 0.05) for test in seen]),
        true_lift=boot.mean([test.true_lift for test in seen]),
        adversarial_lift=boot.mean(_finite([test.adversarial_lift for test in tests])),
        control_lift=boot.mean(_finite([test.control_lift for test in tests])),
        no_true_map=sum(test.no_true_map for test in tests),
        no_adversarial_map=sum(test.no_adversarial_map for test in tests),
        largest_error=max((one.largest_error for one in told), default=0.0),
        forwards=boot.mean([float(one.forwards) for one in told]),
        backwards=boot.mean([float(one.backwards) for one in told]),
    )


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _shares(
    told: Sequence[Explanation],
    boot: Bootstrap,
    names: Sequence[str],
    label: Callable[[Group], str],
) -> tuple[Share, ...]:
    """The share of all groups that have each label."""
    wholes = [float(len(one.groups)) for one in told]
    labels = [Counter(label(group) for group in one.groups) for one in told]
    return tuple(
        Share(name=name, share=boot.ratio([float(count[name]) for count in labels], wholes))
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


def _clear(maps: MapTest | None) -> bool:
    """Both maps are there and say something."""
    return maps is not None and not (maps.no_true_map or maps.no_adversarial_map)


def _table(told: Sequence[Explanation], shuffles: int, seed: int) -> Association:
    rows, columns = LABELS[:-1], PLACES[:-1]
    found = [
        (number, LABELS.index(group.shapley.label), PLACES.index(group.place.label))
        for number, one in enumerate(told)
        for group in one.groups
        if group.place is not None and group.place.label in columns and group.shapley.label in rows
    ]
    images, first, second = torch.tensor(found, dtype=torch.long).view(-1, 3).unbind(dim=1)
    return associate(rows, columns, images, first, second, shuffles=shuffles, seed=seed)


def _flips(told: Sequence[Explanation], name: str, boot: Bootstrap) -> FlipRate:
    """Over images that have groups of this family; one of none is no test."""
    families: list[Family] = [
        family for one in told for family in one.families if family.name == name and family.size
    ]
    return FlipRate(
        name=name,
        leaves=boot.mean([float(family.leaves) for family in families]),
        reaches=boot.mean([float(family.reaches) for family in families]),
    )
