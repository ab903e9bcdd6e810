"""Numbers over many images: shares and their intervals, the table and its association."""

import json
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from explain.designed import changed_at, result_of
from pinprick import Classifier
from pinprick.explain.noise.explain_noise import explain_noise
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.statistics import Bootstrap, associate
from pinprick.explain.noise.totals import Totals, add_up


def test_an_interval_is_about_as_wide_as_theory_says() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    found = Bootstrap(draws=4000).mean(values.tolist())
    width = 2 * 1.96 * float(values.std()) / 20
    assert found.images == 400
    assert math.isclose(found.value, float(values.mean()))
    assert 0.9 < (found.high - found.low) / width < 1.1
    assert found.low < found.value < found.high


def test_a_ratio_weighs_images_by_how_much_they_hold() -> None:
    found = Bootstrap().ratio([1.0, 0.0], [1.0, 9.0])
    assert found.value == 0.1
    assert (found.low, found.high) == (0.0, 1.0)


def test_the_same_seed_gives_the_same_interval_and_nothing_gives_nan() -> None:
    values = [0.0, 1.0, 5.0, 2.0]
    assert Bootstrap(seed=1).median(values) == Bootstrap(seed=1).median(values)
    assert Bootstrap().median(values).value == 1.5
    assert math.isnan(Bootstrap().mean([]).value)
    assert math.isnan(Bootstrap().median([]).low)


def table(
    first: list[int], second: list[int], images: list[int] | None = None
) -> tuple[float, ...]:
    numbers = torch.tensor(images or list(range(0, len(first))))
    found = associate(
        ("a", "b", "c"), ("x", "y"), numbers, torch.tensor(first), torch.tensor(second)
    )
    return found.chi_squared, found.cramers_v, found.p


def test_chi_squared_is_that_of_the_textbook() -> None:
    first, second = [0] * 30 + [1] * 30, [0] * 20 + [1] * 10 + [0] * 10 + [1] * 20
    found = associate(
        ("a", "b", "c"),
        ("x", "y"),
        torch.zeros(60, dtype=torch.long),
        torch.tensor(first),
        torch.tensor(second),
    )
    assert found.counts == ((20, 10), (10, 20), (0, 0))
    assert math.isclose(found.chi_squared, 20 / 3)  # each cell is 5 off 15
    assert math.isclose(found.cramers_v, math.sqrt(1 / 9))
    assert 0.003 < found.p < 0.05
    assert found.groups == 60


def test_where_one_label_tells_the_other_the_association_is_one() -> None:
    chi_squared, v, p = table([0, 1] * 20, [0, 1] * 20, [0] * 40)
    assert (chi_squared, v) == (40.0, 1.0)
    assert p < 0.001


def test_what_only_differs_between_images_is_no_association_of_groups() -> None:
    _, v, p = table([0] * 20 + [1] * 20, [0] * 20 + [1] * 20, [0] * 20 + [1] * 20)
    assert (v, p) == (1.0, 1.0)


def test_a_single_row_has_no_association() -> None:
    assert all(math.isnan(number) for number in table([0, 0, 0], [0, 1, 1]))


@pytest.fixture
def explained(curved: Classifier, images: Tensor, curved_labels: Tensor) -> tuple[Explanation, ...]:
    """Six images, each with five changed pixels, whatever became of them."""
    adversarial = changed_at(images, [0, 4, 13, 22, 29], 0.0)
    adversarial[3] = images[3]
    maps = torch.rand(3, 6, 6, 5, generator=torch.Generator().manual_seed(0))
    maps[0, 5], maps[1, 4] = 0.0, 0.0
    explained = explain_noise(
        result_of(curved, images, adversarial, curved_labels),
        curved,
        NoiseSettings(grouping="pixels"),
        true_maps=maps[0],
        adversarial_maps=maps[1],
        control_maps=maps[2],
    )
    fooled = [
        replace(one, status="fooled", spare_pixels=row % 2) for row, one in enumerate(explained)
    ]
    return (*fooled[:1], replace(explained[1], status="failed"), *fooled[2:])


def test_totals_are_those_worked_out_by_hand(explained: tuple[Explanation, ...]) -> None:
    totals = add_up(explained, draws=200)
    assert (totals.images, totals.explained, totals.failed, totals.skipped) == (6, 4, 1, 0)
    some = [explained[row] for row in (0, 2, 4, 5)]
    labels = [group.shapley.label for one in some for group in one.groups]
    assert totals.groups.value == 5
    assert totals.clusters.value == sum(one.clusters for one in some) / 4 > 0
    assert totals.windows.value == sum(one.windows for one in some) / 4 > 0
    overlaps = [one.saliency_overlap for one in some]
    assert math.isclose(totals.saliency_overlap.value, sum(overlaps) / 4)
    assert totals.minimal.value == 0.75
    for share in totals.kinds:
        assert math.isclose(share.share.value, labels.count(share.name) / 20)
        assert share.share.low <= share.share.value <= share.share.high
    assert math.isclose(sum(share.share.value for share in totals.kinds), 1)
    assert totals.decided.value == 1.0
    assert (totals.no_true_map, totals.no_adversarial_map) == (1, 1)
    assert (totals.inside.images, totals.adversarial_lift.images) == (3, 3)
    assert totals.strict[0].share.images == 2
    assert totals.table.groups == 10
    seen = [one.maps for one in (explained[0], explained[2], explained[4])]
    inside = sum(test.inside_share for test in seen if test) / 3
    assert math.isclose(totals.inside.value, inside)
    flips = {flip.name: flip for flip in totals.flips}
    tried = [one for one in some if any(g.shapley.label == "obscuring" for g in one.groups)]
    assert flips["obscuring alone"].leaves.images == len(tried) > 0


def test_totals_go_there_and_back_as_json(explained: tuple[Explanation, ...]) -> None:
    for some in (explained, explained[3:4], ()):
        totals = add_up(some, draws=50)
        text = json.dumps(totals.to_dict(), allow_nan=False)
        assert repr(Totals.from_dict(json.loads(text))) == repr(totals)


def test_totals_written_before_clusters_were_counted_are_read(
    explained: tuple[Explanation, ...],
) -> None:
    plain = add_up(explained, draws=50).to_dict()
    for name in ("clusters", "windows", "saliency_overlap"):
        del plain[name]
    totals = Totals.from_dict(plain)
    assert totals.groups.value == 5
    assert (math.isnan(totals.clusters.value), totals.clusters.images) == (True, 0)


def test_without_maps_and_gradients_the_rest_is_there(
    explained: tuple[Explanation, ...],
) -> None:
    bare = [
        replace(
            one,
            maps=None,
            path_steps=0,
            saliency_overlap=math.nan,
            groups=tuple(replace(group, place=None, path=None) for group in one.groups),
        )
        for one in explained
    ]
    totals = add_up(bare, draws=50)
    assert math.isnan(totals.inside.value)
    assert math.isnan(totals.path_kinds[0].share.value)
    assert totals.saliency_overlap.images == 0
    assert totals.table.groups == 0
    assert totals.kinds == add_up(explained, draws=50).kinds
