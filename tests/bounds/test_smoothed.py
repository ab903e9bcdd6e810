"""Smoothed certificates: the radius is that of all subsets, and claims are right often enough."""

import sys
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor

from bounds.voting_networks import SeesLight, as_model, linear_votes
from pinprick import BadInput, Classifier, MissingExtra, Streams, certify_smoothed
from pinprick.bounds.smoothed import draw_pixels, lower_limit, missed, radius_of
from pinprick.zoo.card import Ablation
from pinprick.zoo.voting import VotingNetwork, encode

IMAGES = torch.rand(4, 1, 2, 3, generator=torch.Generator().manual_seed(3))


def exact_probabilities(net: VotingNetwork, image: Tensor) -> Tensor:
    """The share of all subsets of pixels that each class wins."""
    pixels = image[0].numel()
    masks = torch.zeros(0, pixels, dtype=torch.bool)
    for subset in combinations(range(pixels), net.ablation.kept):
        one = torch.zeros(1, pixels, dtype=torch.bool)
        one[0, list(subset)] = True
        masks = torch.cat((masks, one))
    seen = encode(image.unsqueeze(0), masks.view(-1, 1, *image.shape[1:]))
    with torch.no_grad():
        votes = net.base(seen).argmax(dim=1)
    return torch.bincount(votes, minlength=3).double() / len(votes)


# the combinatorial bound


@pytest.mark.parametrize(("pixels", "kept"), [(6, 1), (6, 2), (7, 3), (8, 8), (5, 4)])
def test_the_share_of_subsets_that_miss_a_change_is_that_of_counting_them(
    pixels: int, kept: int
) -> None:
    subsets = list(combinations(range(pixels), kept))
    for changed in range(pixels + 1):
        free = sum(not set(subset) & set(range(changed)) for subset in subsets)
        assert missed(changed, pixels, kept) == Fraction(free, len(subsets))


@pytest.mark.parametrize("probability", [0.5, 0.5001, 0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize(("pixels", "kept"), [(6, 1), (12, 1), (9, 2), (30, 3)])
def test_the_radius_is_the_largest_that_leaves_more_than_half(
    probability: float, pixels: int, kept: int
) -> None:
    holds = [
        Fraction(probability) - (1 - missed(changed, pixels, kept)) > Fraction(1, 2)
        for changed in range(pixels + 1)
    ]
    radius = radius_of(probability, pixels, kept)
    assert radius == sum(holds) - 1
    assert holds == [changed <= radius for changed in range(pixels + 1)]


def test_the_radius_of_mnist_is_that_of_the_closed_form() -> None:
    assert radius_of(1.0, 784, 45) == 11
    assert radius_of(0.9, 784, 45) == 8
    assert radius_of(0.5, 784, 45) == -1


# the confidence limit


@pytest.mark.parametrize(("hits", "draws"), [(0, 10), (1, 10), (7, 10), (10, 10), (990, 1000)])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_limit_is_that_of_clopper_and_pearson(hits: int, draws: int, alpha: float) -> None:
    test = binomtest(hits, draws, alternative="greater")
    wanted = test.proportion_ci(1 - alpha, method="exact").low
    assert lower_limit(hits, draws, alpha) == pytest.approx(wanted, abs=1e-8)
    assert lower_limit(hits, draws, alpha) <= wanted


def test_all_hits_have_a_limit_in_closed_form() -> None:
    assert lower_limit(100, 100, 0.01) == pytest.approx(0.01 ** (1 / 100), abs=1e-8)


@pytest.mark.parametrize("probability", [0.3, 0.8])
def test_the_limit_exceeds_the_probability_as_seldom_as_alpha_says(probability: float) -> None:
    draws, alpha, series = 40, 0.1, 4000
    made = torch.rand(series, draws, generator=torch.Generator().manual_seed(7)) < probability
    limits = {hits: lower_limit(hits, draws, alpha) for hits in range(draws + 1)}
    above = sum(limits[hits] > probability for hits in made.sum(dim=1).tolist()) / series
    assert 0.02 < above <= alpha + 0.015  # three standard deviations


# the draws


def test_draws_have_no_pixel_twice_and_follow_seed_image_and_step() -> None:
    streams = Streams(3, torch.tensor([5, 8]))
    masks = draw_pixels(streams, 20, 6, 4)
    assert (masks.sum(dim=1) == 6).all()
    assert torch.equal(masks[1:], draw_pixels(Streams(3, torch.tensor([8])), 20, 6, 4))
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(masks, draw_pixels(streams, 20, 6, 5))
    assert not torch.equal(masks, draw_pixels(Streams(4, torch.tensor([5, 8])), 20, 6, 4))


def test_the_same_seed_gives_the_same_certificate_also_one_by_one() -> None:
    model = as_model(linear_votes())
    labels = torch.zeros(4, dtype=torch.int64)
    together = certify_smoothed(model, IMAGES, labels, draws=50, first_draws=10, seed=3)
    alone = certify_smoothed(
        model,
        IMAGES[2:3],
        labels[2:3],
        draws=50,
        first_draws=10,
        seed=3,
        ids=torch.tensor([2]),
    )
    assert torch.equal(together.hits[2:3], alone.hits)
    other = certify_smoothed(model, IMAGES, labels, draws=50, first_draws=10, seed=4)
    assert not torch.equal(together.hits, other.hits)


def test_votes_estimate_the_exact_probabilities() -> None:
    net = linear_votes(seed=2)
    found = certify_smoothed(
        as_model(net), IMAGES, torch.zeros(4, dtype=torch.int64), draws=2000, alpha=0.01
    )
    for image, top, hits, limit in zip(
        IMAGES, found.top.tolist(), found.hits.tolist(), found.probability.tolist(), strict=True
    ):
        exact = exact_probabilities(net, image)[top].item()
        assert hits / 2000 == pytest.approx(exact, abs=0.05)
        assert limit <= exact


# what is claimed


@pytest.mark.parametrize("seed", range(4))
def test_no_change_within_the_radius_moves_the_exact_smoothed_classifier(seed: int) -> None:
    net = linear_votes(kept=1, seed=seed)
    labels = torch.zeros(4, dtype=torch.int64)
    found = certify_smoothed(as_model(net), IMAGES, labels, draws=400, alpha=1e-6, seed=seed)
    for image, prediction, radius in zip(
        IMAGES, found.prediction.tolist(), found.radius.tolist(), strict=True
    ):
        for where in combinations(range(6), max(radius, 0)):
            for values in product((0.0, 0.5, 1.0), repeat=max(radius, 0)):
                adv = image.flatten().clone()
                adv[list(where)] = torch.tensor(values)
                exact = exact_probabilities(net, adv.view_as(image))
                assert prediction < 0 or exact.argmax().item() == prediction


def test_the_radius_is_reached_where_every_draw_that_sees_a_change_is_lost() -> None:
    net = VotingNetwork(SeesLight(), (1, 3, 4), Ablation(kept=1, draws=4))
    zero = torch.zeros(1, dtype=torch.int64)
    dark = torch.zeros(1, 1, 3, 4)
    found = certify_smoothed(as_model(net), dark, zero, draws=2000)
    assert found.radius.item() == 5  # 6 of 12 pixels leave half of the draws
    light = dark.clone()
    light.view(-1)[:6] = 1.0
    assert exact_probabilities(net, light[0])[:2].tolist() == [0.5, 0.5]


def test_it_abstains_where_no_class_has_more_than_half() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=4))
    half = torch.zeros(1, 1, 2, 6)
    half.view(-1)[:6] = 1.0
    found = certify_smoothed(as_model(net), half, torch.zeros(1, dtype=torch.int64), draws=500)
    assert found.words == ("abstains",)
    assert (found.prediction.item(), found.radius.item(), found.certified.item()) == (-1, -1, -1)
    assert "abstains on 1, each claim wrong with probability at most 0.001" in repr(found)


def test_another_class_is_certified_as_such() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=4))
    found = certify_smoothed(
        as_model(net), torch.zeros(1, 1, 2, 6), torch.ones(1, dtype=torch.int64), draws=500
    )
    assert found.words == ("certified as another class",)
    assert (found.radius.item(), found.certified.item()) == (5, -1)


def test_mean_and_std_are_part_of_the_network() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=4))
    model = Classifier(net, mean=(-0.6,), std=(1.0,))  # a black pixel becomes a light one
    found = certify_smoothed(
        model, torch.zeros(1, 1, 2, 6), torch.ones(1, dtype=torch.int64), draws=500
    )
    assert found.words == ("certified",)


def test_no_images_give_an_empty_certificate() -> None:
    found = certify_smoothed(
        as_model(linear_votes()), IMAGES[:0], torch.zeros(0, dtype=torch.int64)
    )
    assert len(found) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"draws": 0}, "draws must be"),
        ({"first_draws": 0}, "first_draws must be"),
        ({"draws": 10**9}, "at most 10000000 draws"),
        ({"alpha": 0.0}, "alpha must be a number above 0 and below 1, got 0.0"),
        ({"alpha": 1.0}, "alpha must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        certify_smoothed(
            as_model(linear_votes()), IMAGES, torch.zeros(4, dtype=torch.int64), **changes
        )


def test_labels_must_be_classes() -> None:
    with pytest.raises(BadInput, match="labels must lie in 0 to 2"):
        certify_smoothed(as_model(linear_votes()), IMAGES, torch.full((4,), 7))


def test_a_model_that_does_not_vote_is_refused() -> None:
    model = Classifier(lambda images: images.flatten(1)[:, :3], name="plain")
    with pytest.raises(BadInput, match="plain does not vote over few pixels"):
        certify_smoothed(model, IMAGES, torch.zeros(4, dtype=torch.int64))


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(MissingExtra, match=r"package scipy; .* pip install 'pinprick\[bounds\]'"):
        lower_limit(3, 4, 0.1)
