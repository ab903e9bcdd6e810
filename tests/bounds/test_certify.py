"""Certificates hold: no search beats them, and they say what they do not know."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import pinprick.bounds.certify as search
from bounds.small_networks import (
    fewest_by_trying,
    other_classes,
    small_cnn,
    small_images,
    small_network,
)
from pinprick import BadInput, Classifier, Goal, build, run_attack
from pinprick.bounds.affine_layers import AffineLayers
from pinprick.bounds.ball import Ball
from pinprick.bounds.certify import SLACK, Decision, certify
from pinprick.bounds.proof import Status
from pinprick.bounds.read_network import read_network
from pinprick.bounds.rival_bounds import Bounded, RivalBounds, _lines, _through_map, _to_units
from pinprick.bounds.subproblems import SubProblems, all_subproblems, split
from pinprick.bounds.tiles import Tiles, make_tiles
from pinprick.metrics.unit import Unit

CPU = torch.device("cpu")


def answers(model: Classifier | nn.Module, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def tiles_of(images: Tensor, unit: Unit, most: int = 4) -> Tiles:
    planes = images.shape[1] if unit == "elements" else 1
    return make_tiles((planes, *images.shape[2:]), most, CPU)


# the search against trying everything


@pytest.mark.parametrize("unit", ["elements", "pixels"])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_agree_with_trying_every_subset_and_pattern(seed: int, unit: Unit) -> None:
    net = small_network(8, 5, 4, 3, seed=seed)
    images = small_images(3, (2, 2, 2), seed=seed + 10)
    labels = answers(net, images)
    found = certify(net, images, labels, t=3, unit=unit, nodes=3000, seconds=20.0)
    for row, image in enumerate(images):
        fewest = fewest_by_trying(net, image, Goal(labels[row : row + 1]), unit)
        assert found.lower[row] <= fewest <= found.upper[row]
        if found.words[row] == "refuted":
            assert found.lower[row] == fewest
    assert "refuted" in found.words


def test_a_mask_is_kept_to() -> None:
    net = small_network(8, 5, 4, 3, seed=1)
    images = small_images(4, (2, 2, 2), seed=5)
    labels = answers(net, images)
    allowed = torch.tensor([1, 1, 0, 1, 0, 1, 0, 1], dtype=torch.bool).view(1, 2, 2, 2)
    found = certify(net, images, labels, t=5, unit="elements", allowed=allowed, nodes=3000)
    for row, image in enumerate(images):
        goal = Goal(labels[row : row + 1])
        fewest = fewest_by_trying(net, image, goal, "elements", allowed[0])
        assert found.lower[row] <= fewest <= found.upper[row]
    assert not ((found.adversarial != images) & ~allowed).any()


@pytest.mark.parametrize("unit", ["elements", "pixels"])
@pytest.mark.parametrize("seed", range(3))
def test_targeted_bounds_agree_with_trying_everything(seed: int, unit: Unit) -> None:
    net = small_network(8, 5, 4, 4, seed=seed)
    images = small_images(3, (2, 2, 2), seed=seed + 20)
    labels, targets = answers(net, images), other_classes(net, images)
    found = certify(net, images, labels, targets=targets, t=3, unit=unit, nodes=500)
    assert found.goal.targets is not None
    for row, image in enumerate(images):
        goal = Goal(labels[row : row + 1], targets[row : row + 1])
        fewest = fewest_by_trying(net, image, goal, unit)
        assert found.lower[row] <= fewest <= found.upper[row]
        if found.words[row] == "refuted":
            assert found.lower[row] == fewest
    assert "refuted" in found.words


def test_one_target_is_no_easier_to_reach_than_any_class() -> None:
    model = small_cnn(3)
    images = small_images(8, (1, 6, 5), seed=3)
    labels = answers(model, images)
    every = certify(model, images, labels, t=2)
    towards = [certify(model, images, labels, targets=(labels + step) % 3, t=2) for step in (1, 2)]
    decided = torch.ones_like(labels, dtype=torch.bool)
    for each in (every, *towards):
        decided &= torch.tensor([words != "undecided" for words in each.words])
    nearest = torch.minimum(towards[0].lower, towards[1].lower)
    assert nearest[decided].tolist() == every.lower[decided].tolist()
    assert int(decided.sum()) >= 4
    assert (towards[0].lower > every.lower).any()


def test_an_image_of_the_target_class_is_already_fooled() -> None:
    found = certify(
        constant_network(), torch.rand(2, 1, 2, 2), torch.tensor([1, 0]), targets=[0, 1]
    )
    assert found.words == ("already fooled", "all certified")


@settings(max_examples=12)
@given(
    seed=st.integers(0, 200),
    unit=st.sampled_from(["elements", "pixels"]),
    targeted=st.booleans(),
    masked=st.booleans(),
)
def test_no_case_contradicts_trying_everything(
    seed: int, unit: Unit, targeted: bool, masked: bool
) -> None:
    net = small_network(6, 3, 3, 3, seed=seed)
    images = small_images(1, (2, 1, 3), seed=seed)
    labels = answers(net, images)
    goal = Goal(labels, other_classes(net, images) if targeted else None)
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(images.shape, generator=generator) < 0.7 if masked else None
    found = certify(
        net, images, labels, targets=goal.targets, allowed=allowed, unit=unit, t=3, nodes=300
    )
    fewest = fewest_by_trying(net, images[0], goal, unit, None if allowed is None else allowed[0])
    assert float(found.lower) <= fewest <= float(found.upper)


# the parts of the search


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(0, 30), st.sampled_from(["elements", "pixels"]))
def test_every_choice_of_units_is_in_one_subproblem(changes: int, seed: int, unit: Unit) -> None:
    generator = torch.Generator().manual_seed(seed)
    images = torch.zeros(1, 2, 3, 2)
    may = torch.rand((1, 2, 3, 2), generator=generator) < 0.7
    free_units = (may if unit == "elements" else may.any(dim=1)).flatten(1)
    tiles = tiles_of(images, unit)
    free = tiles.free(free_units)
    if int(free_units.sum()) < changes:
        return
    channels = 1 if unit == "elements" else 2
    problems = all_subproblems(0, changes, tiles, free, channels)
    for _ in range(4):
        large = tiles.sizes[problems.tile].amax(dim=1) > 1
        chosen = large & (torch.rand(len(problems), generator=generator) < 0.6)
        spread = torch.zeros_like(problems.low)
        parts = split(problems[chosen], tiles, free, spread[chosen])
        problems = SubProblems.join([problems[~chosen], parts])
    units = free_units[0].nonzero().squeeze(1).tolist()
    members = tiles.members.tolist()
    slots = [[members[tile] for tile in row] for row in problems.tile.tolist()]
    for choice in combinations(units, changes):
        assert sum(_holds(row, choice) for row in slots) == 1


def _holds(slots: list[list[int]], units: tuple[int, ...]) -> bool:
    """Whether the units can be shared out among the slots."""
    left = list(units)
    for members in slots:
        inside = [unit for unit in left if unit in members]
        if not inside:
            return False
        left.remove(inside[0])
    return not left


def test_the_values_of_single_units_are_halved_where_they_matter_most() -> None:
    tiles = make_tiles((1, 1, 2), 1, CPU)
    low = torch.tensor([[[-0.5, -0.25], [-1.0, 0.0]]], dtype=torch.float64)
    high = torch.tensor([[[0.5, 0.75], [0.0, 1.0]]], dtype=torch.float64)
    problem = SubProblems(torch.tensor([0]), tiles.starts.view(1, 2), low, high)
    spread = torch.tensor([[[1.0, 3.0], [2.0, 0.0]]], dtype=torch.float64)
    below, above = split(problem, tiles, torch.ones(1, 2).long(), spread).low.unbind()
    lows, highs = [-0.5, -0.25, -1.0, 0.0], [0.5, 0.75, 0.0, 1.0]
    assert below.flatten().tolist() == lows
    assert above.flatten().tolist() == [-0.5, 0.25, -1.0, 0.0]
    below, above = split(problem, tiles, torch.ones(1, 2).long(), spread).high.unbind()
    assert below.flatten().tolist() == [0.5, 0.25, 0.0, 1.0]
    assert above.flatten().tolist() == highs


@settings(max_examples=12)
@given(
    st.integers(0, 50), st.integers(1, 3), st.sampled_from(["elements", "pixels"]), st.booleans()
)
def test_bounds_hold_for_changes_of_the_subproblem(
    seed: int, changes: int, unit: Unit, targeted: bool
) -> None:
    model = small_cnn(seed % 5, channels=2)
    images = small_images(2, (2, 6, 5), seed=seed)
    labels = answers(model, images)
    goal = Goal(labels, (labels + 1 + seed % 2) % 3 if targeted else None)
    generator = torch.Generator().manual_seed(seed)
    may = torch.rand(images.shape, generator=generator) < 0.8
    tiles = tiles_of(images, unit)
    channels = 1 if unit == "elements" else 2
    free = tiles.free((may if unit == "elements" else may.any(dim=1)).flatten(1))
    layers = AffineLayers.of(read_network(model, images), CPU)
    bounds = RivalBounds(layers, tiles, images, goal, may)
    problems = all_subproblems(1, changes, tiles, free, channels)
    for _ in range(5):
        rows = torch.randperm(len(problems), generator=generator)[:3]
        bounded = bounds(problems[rows])
        for row in range(len(rows)):
            ahead = _drawn(layers, images, goal, may, bounded.problems[row : row + 1], tiles)
            assert float(ahead) <= float(bounded.ahead[row]) + 1e-9
        spread = torch.rand(bounded.spread.shape, generator=generator).double()
        problems = split(bounded.problems, tiles, free, spread)


def _drawn(
    layers: AffineLayers,
    images: Tensor,
    goal: Goal,
    may: Tensor,
    problem: SubProblems,
    tiles: Tiles,
) -> Tensor:
    """How far random changes of a sub-problem get, many at its ends: the negative margin."""
    generator = torch.Generator().manual_seed(0)
    image, count = int(problem.image), 100
    channels = problem.low.shape[2]
    clean = images[image].double().view(channels, -1)
    open_ = may[image].reshape(channels, -1)
    taken = torch.zeros(count, tiles.units, dtype=torch.bool)
    change = torch.zeros(count, *clean.shape, dtype=torch.float64)
    rows = torch.arange(count)
    for slot, tile in enumerate(problem.tile[0].tolist()):
        inside = torch.zeros(tiles.units, dtype=torch.bool)
        inside[tiles.members[tile, : tiles.sizes[tile]]] = True
        keys = torch.rand((count, tiles.units), generator=generator)
        unit = keys.masked_fill(~inside | taken, -1.0).argmax(dim=1)
        taken[rows, unit] = True
        low = torch.maximum((-clean * open_)[:, unit].T, problem.low[0, slot])
        high = torch.minimum(((1 - clean) * open_)[:, unit].T, problem.high[0, slot])
        share = (torch.rand((count, channels), generator=generator) * 2 - 0.5).clamp(0, 1)
        change[rows, :, unit] = low + share * (high - low)
    logits = layers.logits((clean + change).view(count, *images.shape[1:]))
    return -goal[torch.full((count,), image)].margin(logits).min()


def test_slots_of_one_tile_take_different_units() -> None:
    tiles = make_tiles((1, 1, 4), 2, CPU)
    tile = torch.tensor([[0, 0], [0, 3]])  # units 0 and 1 twice, and one of 0 and 1, 2 and 3
    one = torch.ones(2, 2, 1, dtype=torch.float64)
    problems = SubProblems(torch.zeros(2, dtype=torch.long), tile, -one, one)
    limits = torch.ones(1, 5, 1, dtype=torch.float64)
    ball = Ball.of(problems, tiles, -limits, limits)
    slopes = torch.tensor([[[3.0, -5.0, 3.0, -5.0]], [[3.0, -5.0, 1.0, 2.0]]]).double()
    assert ball.most(slopes).tolist() == [[8.0], [7.0]]


@given(st.integers(0, 100))
def test_many_functions_are_bounded_as_few_are(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    rows, weight = drawn(2, 6, 4), drawn(2, 4, 3)
    before, reach = drawn(2, 4), drawn(2, 4).abs()
    line = _lines(torch.arange(4).expand(2, -1), before, -reach, reach)
    slopes, at_zero = _to_units(torch.cat((rows, -rows), dim=1), [weight], [line])
    many, many_at_zero = _through_map(rows, weight, line)
    torch.testing.assert_close(many, slopes)
    torch.testing.assert_close(many_at_zero, at_zero)


def test_bounds_of_a_linear_network_are_the_largest_gains() -> None:
    linear = nn.Linear(4, 2)
    linear.weight.data = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, -2.0, 4.0, 8.0]])
    linear.bias.data = torch.tensor([12.0, 0.0])
    net = nn.Sequential(nn.Flatten(), linear)
    images = torch.full((1, 1, 2, 2), 0.5)
    found = certify(net, images, torch.tensor([0]), t=4, unit="elements")
    # the rival has 5.5; the gains are 4, 2, 1 and 0.5, so it takes three to come above 12
    assert found.lower.tolist() == [3.0]
    assert found.upper.tolist() == [3.0]
    assert found.status == (Status.OPTIMAL,)
    assert found.words == ("refuted",)


# decisions as they come


def test_every_decision_is_told_once_and_agrees_with_the_certificate() -> None:
    model = small_cnn(3)
    images = small_images(12, (1, 6, 5), seed=3)
    labels = answers(model, images)
    result = run_attack(build({"name": "greedy"}), model, images, labels)
    told: list[Decision] = []
    found = certify(model, images, labels, t=2, attacked=result, decided=told.append)
    assert len({(each.image, each.t) for each in told}) == len(told)
    for row in range(len(images)):
        certified = [each.t for each in told if each.image == row and each.certified]
        refuted = [each.t for each in told if each.image == row and not each.certified]
        assert certified == list(range(1, int(found.certified[row]) + 1))
        assert refuted == [t for t in (1, 2) if found.lower[row] == found.upper[row] == t]
    assert {each.certified for each in told} == {True, False}


def test_images_that_take_few_subproblems_are_decided_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "_ROOM_CPU", 1)  # one sub-problem at a time
    model = small_cnn(3)
    images = small_images(12, (1, 6, 5), seed=3)[[3, 6]]
    told: list[Decision] = []
    certify(model, images, answers(model, images), t=2, decided=told.append)
    first = {each.image: each.nodes for each in told if each.t == 1}
    taken = [each.nodes - first[each.image] for each in told if each.t == 2]
    assert len(taken) == 2
    starts = 3  # pairs of the two largest tiles
    for earlier, later in combinations(taken, 2):
        assert earlier <= 2 * max(later, starts) + 1


def test_what_is_decided_before_the_search_stops_is_told() -> None:
    model = small_cnn(3)
    images = small_images(5, (1, 6, 5), seed=3)
    told: list[Decision] = []

    def stop(decision: Decision) -> None:
        told.append(decision)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        certify(model, images, answers(model, images), t=2, decided=stop)
    assert len(told) == 1


# what is said about special cases


def constant_network(lead: float = 1.0) -> nn.Sequential:
    """A dead network: class 0 leads class 1 by ``lead``, whatever the image."""
    first, last = nn.Linear(4, 3), nn.Linear(3, 2)
    for layer in (first, last):
        layer.weight.data.zero_()
    last.bias.data = torch.tensor([lead, 0.0])
    return nn.Sequential(nn.Flatten(), first, nn.ReLU(), last)


def test_a_constant_network_is_never_fooled() -> None:
    found = certify(constant_network(), torch.rand(2, 1, 2, 2), torch.tensor([0, 0]), t=5)
    assert found.lower.tolist() == [torch.inf, torch.inf]
    assert found.status == (Status.NEVER, Status.NEVER)


def test_misclassified_images_are_already_fooled() -> None:
    found = certify(constant_network(), torch.rand(2, 1, 2, 2), torch.tensor([1, 0]))
    assert found.certified.tolist() == [-1.0, 1.0]
    assert found.words == ("already fooled", "all certified")
    assert found.nodes.tolist()[0] == 0


def test_a_tie_of_logits_is_undecided() -> None:
    found = certify(constant_network(0.0), torch.rand(1, 1, 2, 2), torch.tensor([0]))
    assert found.words == ("undecided",)
    assert found.lower.tolist() == [1.0]


def test_a_clean_image_that_rounding_decides_has_no_bounds() -> None:
    """Class 1 is ahead in float64, and both are equal in float32."""
    linear = nn.Linear(2, 2, bias=False)
    linear.weight.data = torch.tensor([[1.0, 0.0], [1.0, 1e-9]])
    found = certify(nn.Sequential(nn.Flatten(), linear), torch.ones(1, 1, 1, 2), torch.tensor([0]))
    assert (found.lower.item(), found.upper.item()) == (0, torch.inf)
    assert found.words == ("undecided",)


def test_a_bound_that_is_not_a_number_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, images = small_cnn(3), small_images(2, (1, 6, 5), seed=3)
    bound = RivalBounds.__call__

    def broken(bounds: RivalBounds, problems: SubProblems) -> Bounded:
        found = bound(bounds, problems)
        return replace(found, ahead=torch.full_like(found.ahead, torch.nan))

    monkeypatch.setattr(RivalBounds, "__call__", broken)
    found = certify(model, images, answers(model, images), nodes=50)
    assert "all certified" not in found.words


def test_an_image_that_nothing_may_change_is_never_fooled() -> None:
    net = small_network(4, 5, 3)
    images = small_images(1, (1, 2, 2))
    nothing = torch.zeros(1, 1, 2, 2, dtype=torch.bool)
    found = certify(net, images, answers(net, images), allowed=nothing)
    assert found.lower.tolist() == [torch.inf]


def test_no_images_give_an_empty_certificate() -> None:
    found = certify(small_network(4, 5, 3), torch.zeros(0, 1, 2, 2), torch.zeros(0).long())
    assert len(found) == 0


def test_limits_leave_true_bounds() -> None:
    model = small_cnn(3)
    images = small_images(5, (1, 6, 5), seed=3)
    labels = answers(model, images)
    whole = certify(model, images, labels, t=2)
    for nodes, seconds in ((1, 60.0), (1000, 1e-6)):
        short = certify(model, images, labels, t=2, nodes=nodes, seconds=seconds)
        assert (short.lower <= whole.lower).all()
        assert "undecided" in short.words


def dead_network(pixels: int) -> nn.Sequential:
    """No pixel matters: class 0 leads by one logit."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(pixels, 3), nn.ReLU(), nn.Linear(3, 2))
    for parameter in net.parameters():
        parameter.data.zero_()
    net.get_parameter("3.bias").data[0] = 1.0
    return net


def test_more_changes_than_the_limit_of_subproblems_allows_are_not_tried() -> None:
    image, label = torch.rand(1, 1, 16, 16), torch.tensor([0])
    found = certify(dead_network(256), image, label, t=60, nodes=1000)
    assert found.lower.tolist() == [4.0]  # 16, 136 and 816 sub-problems, and 3876 for four changes
    assert found.words == ("undecided",)
    assert found.nodes.tolist() == [16 + 136 + 816]


def test_tiles_that_nothing_may_change_take_no_subproblems() -> None:
    image, label = torch.rand(1, 1, 16, 16), torch.tensor([0])
    allowed = torch.zeros_like(image, dtype=torch.bool)
    allowed[..., :4, :4] = True
    found = certify(dead_network(256), image, label, t=30, allowed=allowed, nodes=1)
    assert found.lower.tolist() == [torch.inf]  # sixteen pixels may change, and do not matter
    assert found.nodes.tolist() == [16]


def test_batches_for_a_dead_network_fit_into_memory() -> None:
    images = torch.rand(1, 1, 16, 16)
    layers = AffineLayers.of(read_network(Classifier(dead_network(256)), images), CPU)
    goal, everywhere = Goal(torch.tensor([0])), torch.ones_like(images, dtype=torch.bool)
    bounds = RivalBounds(layers, tiles_of(images, "pixels", 16), images, goal, everywhere)
    values = 4 * 16  # of each sub-problem: units of four slots
    assert bounds.batch_size(4, 1 << 20) * values * 8 <= 1 << 20


def test_an_attack_gives_upper_bounds() -> None:
    model = small_cnn(3)
    images = small_images(5, (1, 6, 5), seed=3)
    labels = answers(model, images)
    result = run_attack(build({"name": "greedy"}), model, images, labels)
    found = certify(model, images, labels, t=3, attacked=result)
    assert (found.upper <= result.needed_pixels).all()
    assert not (found.certified >= result.needed_pixels).any()
    assert (found.upper[found.better] < result.needed_pixels[found.better]).all()


def test_certified_images_keep_their_label_by_the_slack() -> None:
    image, label = torch.rand(1, 1, 2, 2), torch.tensor([0])
    assert certify(constant_network(SLACK / 2), image, label).words == ("undecided",)
    assert certify(constant_network(SLACK * 2), image, label).words == ("all certified",)


def test_large_logits_need_a_larger_slack() -> None:
    image, label = torch.rand(1, 1, 2, 2), torch.tensor([0])
    model = constant_network(5 * SLACK)
    assert isinstance(model[-1], nn.Linear)
    model[-1].bias.data = model[-1].bias.double() + 1000.0
    assert certify(model.double(), image, label).words == ("undecided",)
    model[-1].bias.data[0] += 10 * SLACK
    found = certify(model, image, label)
    assert found.words == ("all certified",)
    assert found.slack.item() == pytest.approx(10 * SLACK, rel=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"t": 0}, "t must be a whole number of at least 1"),
        ({"seconds": 0.0}, "seconds must be a number above 0"),
        ({"nodes": 0}, "nodes must be a whole number of at least 1"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        certify(small_network(4, 5, 3), torch.rand(1, 1, 2, 2), torch.tensor([0]), **wrong)


def test_labels_beyond_the_classes_are_refused() -> None:
    with pytest.raises(BadInput, match="has 3 classes, got labels from 7 to 7"):
        certify(small_network(4, 5, 3), torch.rand(1, 1, 2, 2), torch.tensor([7]))


def test_targets_beyond_the_classes_are_refused() -> None:
    image, label = torch.rand(1, 1, 2, 2), torch.tensor([0])
    with pytest.raises(BadInput, match="has 3 classes, got targets from 5 to 5"):
        certify(small_network(4, 5, 3), image, label, targets=[5])


def test_networks_of_another_kind_are_refused() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2, 2))
    with pytest.raises(BadInput, match="MaxPool2d"):
        certify(net, torch.rand(1, 1, 4, 4), torch.tensor([0]))
    large = nn.Sequential(nn.Flatten(), nn.Linear(4, 8193), nn.ReLU(), nn.Linear(8193, 2))
    with pytest.raises(BadInput, match="the certificate takes at most 8192 ReLUs"):
        certify(large, torch.rand(1, 1, 2, 2), torch.tensor([0]))


def test_results_of_other_images_are_refused() -> None:
    model = small_cnn()
    images = small_images(2, (1, 6, 5))
    result = run_attack(build({"name": "greedy"}), model, images, answers(model, images))
    with pytest.raises(BadInput, match="of other images"):
        certify(model, images.flip(0), answers(model, images.flip(0)), attacked=result)
