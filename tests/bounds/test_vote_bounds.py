"""Certificates of a network that votes: no change within them moves the vote."""

from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bounds.voting_networks import SeesLight, as_model, linear_votes
from pinprick import BadInput, Classifier, Goal, build, certify, run_attack
from pinprick.bounds.vote_bounds import votes_to_lose
from pinprick.zoo.card import Ablation
from pinprick.zoo.voting import VotingNetwork

VALUES = (0.0, 0.3, 0.7, 1.0)  # that changed pixels try
IMAGES = torch.rand(4, 1, 2, 3, generator=torch.Generator().manual_seed(3))


def fewest_by_trying(net: VotingNetwork, image: Tensor, label: int, most: int) -> float:
    """The fewest changed pixels that fool, among the values that are tried."""
    pixels = image.shape[1:].numel()
    for count in range(most + 1):
        tried = []
        for where in combinations(range(pixels), count):
            for values in product(VALUES, repeat=count):
                adv = image.flatten().clone()
                adv[list(where)] = torch.tensor(values)
                tried.append(adv.view_as(image))
        with torch.no_grad():
            if (net(torch.stack(tried)).argmax(dim=1) != label).any():
                return count
    return float("inf")


@pytest.mark.parametrize("seed", range(6))
def test_no_change_within_the_bound_moves_the_vote(seed: int) -> None:
    net = linear_votes(kept=1, draws=12, seed=seed)
    with torch.no_grad():
        labels = net(IMAGES).argmax(dim=1)
    found = certify(as_model(net), IMAGES, labels, t=4)
    for image, label, lower in zip(IMAGES, labels.tolist(), found.lower.tolist(), strict=True):
        assert lower <= fewest_by_trying(net, image, label, 3)
    assert (found.lower >= 1).all()


def test_the_bound_is_reached_where_every_draw_that_sees_a_change_is_lost() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=12))
    dark = torch.zeros(1, 1, 2, 6)
    found = certify(as_model(net), dark, torch.zeros(1, dtype=torch.int64), t=12)
    assert found.certified.item() == 5  # of 12 pixels with a draw each, 5 leave 7 to 5
    assert fewest_by_trying(net, dark[0], 0, 0) == float("inf")
    light = dark.clone()
    light.view(-1)[:7] = 1.0
    with torch.no_grad():
        assert net(light).argmax().item() == 1


def test_t_limits_what_is_tried() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=12))
    found = certify(as_model(net), torch.zeros(1, 1, 2, 6), torch.zeros(1, dtype=torch.int64), t=2)
    assert found.certified.item() == 2
    assert found.words == ("all certified",)


def test_a_mask_takes_pixels_out_of_the_attack() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=12))
    labels = torch.zeros(1, dtype=torch.int64)
    allowed = torch.zeros(1, 1, 2, 6, dtype=torch.bool)
    allowed.view(-1)[:5] = True
    found = certify(as_model(net), torch.zeros(1, 1, 2, 6), labels, t=8, allowed=allowed)
    assert found.lower.item() == float("inf")


def test_a_misclassified_image_is_fooled_already() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=12))
    found = certify(as_model(net), torch.zeros(1, 1, 2, 6), torch.ones(1, dtype=torch.int64), t=3)
    assert found.words == ("already fooled",)
    assert found.certified.item() == -1


def test_mean_and_std_are_part_of_the_network() -> None:
    net = VotingNetwork(SeesLight(), (1, 2, 6), Ablation(kept=1, draws=12))
    model = Classifier(net, mean=(-0.6,), std=(1.0,))  # a black pixel becomes a light one
    found = certify(model, torch.zeros(1, 1, 2, 6), torch.ones(1, dtype=torch.int64), t=12)
    assert found.certified.item() == 5


def test_a_network_in_training_mode_is_left_as_it_is() -> None:
    norm = nn.BatchNorm2d(2)
    base = nn.Sequential(norm, nn.Flatten(), nn.Linear(12, 3))
    net = VotingNetwork(base, (1, 2, 3), Ablation(kept=2, draws=12)).train()
    certify(Classifier(net), IMAGES, torch.zeros(4, dtype=torch.int64))
    assert norm.training
    assert norm.num_batches_tracked is not None
    assert norm.num_batches_tracked.item() == 0


MASKS = torch.eye(4, dtype=torch.bool).view(4, 1, 2, 2)  # a draw per pixel
FREE = torch.ones(1, 4, dtype=torch.bool)
ZERO = torch.zeros(1, dtype=torch.int64)


def test_a_draw_that_rounding_may_decide_counts_as_lost() -> None:
    logits = torch.tensor([1.0, 0.0]).repeat(1, 4, 1).double()
    assert votes_to_lose(logits, Goal(ZERO), MASKS, FREE, 4).item() == 1
    logits[0, 0, 1] = 1 - 1e-6
    assert votes_to_lose(logits, Goal(ZERO), MASKS, FREE, 4).item() == 0


def test_a_tie_is_not_certified_even_where_nothing_may_change() -> None:
    logits = torch.eye(2)[[0, 0, 1, 1]].unsqueeze(0).double()
    nothing = torch.zeros_like(FREE)
    assert votes_to_lose(logits, Goal(ZERO), MASKS, nothing, 4).item() == 0
    logits[0, 2] = logits[0, 0]
    assert votes_to_lose(logits, Goal(ZERO), MASKS, nothing, 4).item() == float("inf")


def test_with_a_target_only_the_target_counts() -> None:
    """Three draws vote for class 0 and one for class 1; class 2 has none."""
    logits = torch.eye(3)[[0, 0, 0, 1]].unsqueeze(0).double()
    assert votes_to_lose(logits, Goal(ZERO), MASKS, FREE, 4).item() == 0
    for target, pixels in ((1, 0), (2, 1)):
        goal = Goal(ZERO, torch.tensor([target]))
        assert votes_to_lose(logits, goal, MASKS, FREE, 4).item() == pixels
    misclassified = Goal(torch.tensor([2]), torch.tensor([1]))  # class 0 leads all the same
    assert votes_to_lose(logits, misclassified, MASKS, FREE, 4).item() == 0


def test_what_an_attack_found_is_an_upper_bound_and_never_below_the_lower_one() -> None:
    net = linear_votes((1, 4, 4), kept=4, draws=16, seed=1)
    images = torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        labels = net(images).argmax(dim=1)
    model = as_model(net)
    result = run_attack(build("greedy"), model, images, labels)
    found = certify(model, images, labels, t=4, attacked=result)
    assert torch.equal(found.upper, result.needed_pixels.double())
    assert (found.lower <= found.upper).all()


def test_no_images_have_no_bounds() -> None:
    found = certify(as_model(linear_votes()), IMAGES[:0], torch.zeros(0, dtype=torch.int64), t=2)
    assert len(found) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": torch.full((4,), 3)}, "labels must lie in 0 to 2"),
        ({"images": torch.rand(4, 1, 3, 3)}, "votes on images of 1 x 2 x 3"),
        ({"t": 0}, "t must be"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"images": IMAGES, "labels": torch.zeros(4, dtype=torch.int64), "t": 1}
    given |= changes
    with pytest.raises(BadInput, match=message):
        certify(as_model(linear_votes()), given["images"], given["labels"], t=given["t"])


def test_another_network_with_a_vote_inside_is_still_refused() -> None:
    net = nn.Sequential(linear_votes())
    with pytest.raises(BadInput, match="VotingNetwork"):
        certify(Classifier(net), IMAGES, torch.zeros(4, dtype=torch.int64))
