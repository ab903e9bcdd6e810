"""A network that votes: balanced draws, scores that are the vote, a gradient to attack it by."""

import json
import math
from pathlib import Path

import pytest
import torch
from bounds.voting_networks import as_model, linear_votes
from torch import Tensor, nn

from pinprick import BadInput, ModelCard, UnknownName, build, run_attack, save_model
from pinprick.bench.cache import Cache
from pinprick.zoo import voting
from pinprick.zoo.card import Ablation, read_card
from pinprick.zoo.from_card import build as build_net
from pinprick.zoo.from_card import wrap_net
from pinprick.zoo.voting import (
    VotingNetwork,
    balanced_subsets,
    encode,
    one_vote,
    with_channel_pairs,
)

IMAGES = torch.rand(5, 1, 2, 3, generator=torch.Generator().manual_seed(3))


def card(**changes: object) -> ModelCard:
    entries: dict[str, object] = {
        "net": "mnist_cnn",
        "classes": ("a", "b", "c"),
        "mean": None,
        "std": None,
        "size": (28, 28),
        "channels": 1,
        "ablation": Ablation(kept=45, draws=8),
    }
    return ModelCard(**(entries | changes))  # type: ignore[arg-type]


# draws


@pytest.mark.parametrize(("pixels", "kept", "draws"), [(784, 45, 64), (6, 4, 9), (5, 5, 3)])
def test_draws_hold_no_pixel_twice_and_all_pixels_equally_often(
    pixels: int, kept: int, draws: int
) -> None:
    subsets = balanced_subsets(pixels, kept, draws, seed=1)
    assert subsets.shape == (draws, kept)
    assert all(len(set(subset)) == kept for subset in subsets.tolist())
    seen = torch.bincount(subsets.flatten(), minlength=pixels)
    assert seen.max() - seen.min() <= 1


def test_draws_follow_the_seed() -> None:
    first, again, other = (balanced_subsets(50, 7, 10, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_each_draw_is_uniform() -> None:
    """Over many seeds every pixel is in the third subset equally often, across the cut as well."""
    third = torch.stack([balanced_subsets(5, 2, 3, seed=seed)[2] for seed in range(400)])
    seen = torch.bincount(third.flatten(), minlength=5) / 400
    assert (seen - 2 / 5).abs().max() < 0.1  # 4 standard deviations


@pytest.mark.parametrize("kept", [0, 7])
def test_a_draw_keeps_at_least_one_and_at_most_all_pixels(kept: int) -> None:
    with pytest.raises(BadInput, match="1 to 6 pixels"):
        balanced_subsets(6, kept, 3, seed=0)


# scores


def votes_by_hand(net: VotingNetwork, images: Tensor) -> Tensor:
    votes = torch.zeros(len(images), 3)
    for mask in net.masks:
        chosen = net.base(encode(images, mask)).argmax(dim=1)
        votes[torch.arange(len(images)), chosen] += 1
    return votes


def test_scores_are_logarithms_of_vote_shares_with_the_mean_softmax_for_ties() -> None:
    net = linear_votes(draws=13)
    with torch.no_grad():
        scores, votes = net(IMAGES), votes_by_hand(net, IMAGES)
        soft = net.draw_logits(IMAGES).softmax(dim=2).mean(dim=1)
    assert torch.allclose(scores.exp(), (votes + soft / 2) / 13.5, atol=1e-6)
    assert torch.allclose(scores.exp().sum(dim=1), torch.ones(5))


def test_the_largest_score_is_the_vote_and_ties_go_to_the_larger_mean_softmax() -> None:
    class ByPixel(nn.Module):
        """Class 0 by a lot where it sees the first pixel, class 1 by a little elsewhere."""

        def forward(self, seen: Tensor) -> Tensor:
            first = seen[:, :, 0, 0].sum(dim=1)
            return torch.stack((4 * first, 1 - first), dim=1)

    net = VotingNetwork(ByPixel(), (1, 1, 2), Ablation(kept=1, draws=2))
    with torch.no_grad():
        votes, scores = votes_by_hand_two(net), net(torch.zeros(1, 1, 1, 2))
    assert votes.tolist() == [1, 1]
    assert scores.argmax().item() == 0


def votes_by_hand_two(net: VotingNetwork) -> Tensor:
    return torch.bincount(net.draw_logits(torch.zeros(1, 1, 1, 2)).argmax(dim=2).flatten())


def test_one_vote_moves_the_two_highest_scores_by_what_the_votes_say() -> None:
    net = VotingNetwork(nn.Identity(), (1, 4, 4), Ablation(kept=2, draws=9))
    votes = torch.tensor([[5.0, 4.0, 0.01], [1.0, 8.0, 0.2]])
    moved = one_vote(net, (votes / 9.5).log())
    assert moved is not None
    wanted = [math.log(5 / 4) + math.log(5 / 4), math.log(8 / 7) + math.log(2 / 1)]
    torch.testing.assert_close(moved, torch.tensor(wanted, dtype=torch.float64), rtol=1e-5, atol=0)
    assert one_vote(nn.Linear(2, 2), votes) is None


def test_the_gradient_is_that_of_the_log_of_the_mean_softmax() -> None:
    net = linear_votes()
    images = IMAGES.clone().requires_grad_()
    (got,) = torch.autograd.grad(net(images)[:, 1].sum(), images)
    soft = net.draw_logits(images).softmax(dim=2).mean(dim=1)
    (wanted,) = torch.autograd.grad(soft[:, 1].log().sum(), images)
    assert torch.allclose(got, wanted, atol=1e-6)
    assert got.abs().sum() > 0


def test_little_room_does_not_change_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    net = linear_votes()
    with torch.no_grad():
        whole = net(IMAGES)
        monkeypatch.setattr(voting, "_ROOM", 5 * 2 * 6 * 5)  # five draws at a time
        assert torch.allclose(net(IMAGES), whole, atol=1e-6)


@pytest.mark.slow  # torch loads its compiler for the first checkpoint
def test_little_room_does_not_change_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    def gradient(net: VotingNetwork) -> Tensor:
        images = IMAGES.clone().requires_grad_()
        return torch.autograd.grad(net(images)[:, 0].sum(), images)[0]

    net = linear_votes()
    whole = gradient(net)
    monkeypatch.setattr(voting, "_ROOM", 5 * 2 * 6 * 5)
    assert torch.allclose(gradient(net), whole, atol=1e-6)


def test_the_same_image_has_the_same_scores_alone_and_in_a_batch() -> None:
    net = linear_votes()
    with torch.no_grad():
        assert torch.allclose(net(IMAGES)[2:3], net(IMAGES[2:3]))


def test_an_absent_pixel_differs_from_a_black_one_and_a_hidden_change_is_not_seen() -> None:
    black = torch.zeros(1, 1, 2, 3)
    first = torch.tensor([1, 0, 0, 0, 0, 0], dtype=torch.bool).view(1, 1, 2, 3)
    assert encode(black, first).sum() == 1
    changed = black.clone()
    changed[..., 1, 2] = 1
    assert torch.equal(encode(changed, first), encode(black, first))


def test_images_of_another_size_are_one_clear_line() -> None:
    with pytest.raises(BadInput, match="votes on images of 1 x 2 x 3, got 1 x 3 x 3"):
        linear_votes()(torch.zeros(1, 1, 3, 3))


def test_an_attack_takes_the_lead_in_votes_from_the_label() -> None:
    net = linear_votes(kept=3, draws=10, seed=2)
    with torch.no_grad():
        labels = net(IMAGES).argmax(dim=1)
    result = run_attack(build("greedy"), as_model(net), IMAGES, labels)
    with torch.no_grad():
        votes = votes_by_hand(net, result.adversarial)
    own = votes.gather(1, labels.unsqueeze(1)).squeeze(1)
    others = votes.scatter(1, labels.unsqueeze(1), -1).amax(dim=1)
    assert result.success.any()
    assert (own <= others)[result.success].all()


# cards


def test_a_card_with_an_ablation_goes_there_and_back_and_builds_a_voting_model() -> None:
    there = card()
    back = read_card(there.as_json(), "here")
    assert back == there
    net = build_net(back)
    assert isinstance(net, VotingNetwork)
    model = wrap_net(net, back, "votes")
    assert model.access == "gradients"
    with torch.no_grad():
        assert model(torch.rand(2, 1, 28, 28)).shape == (2, 3)


def test_a_benchmark_tells_networks_of_other_draws_apart(tmp_path: Path) -> None:
    net, hashes = build_net(card()), set[str]()
    for ablation in (Ablation(kept=45, draws=8), Ablation(kept=45, draws=9), Ablation(kept=9)):
        folder = tmp_path / str(len(hashes))
        save_model(net, card(ablation=ablation), folder)
        hashes.add(Cache().weights(f"file:{folder}"))
    assert len(hashes) == 3


def test_a_card_of_a_plain_network_does_not_mention_ablation() -> None:
    assert "ablation" not in json.loads(card(ablation=None).as_json())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('{"kept": 785, "draws": 8}', "at most all 784 pixels"),
        ('{"kept": 0, "draws": 8}', "kept >= 1"),
        ('{"kept": 45, "draws": 0}', "draws"),
        ('{"kept": "45", "draws": 8}', "kept"),
        ('{"kept": 45}', "must name draws"),
        ('{"kept": 45, "draws": 8, "sed": 1}', "did you mean seed"),
        ("45", "an object, or null"),
    ],
)
def test_a_wrong_entry_is_one_clear_line(entry: str, message: str) -> None:
    text = (
        '{"net": "mnist_cnn", "classes": 3, "size": [28, 28], "channels": 1, "ablation": '
        f"{entry}}}"
    )
    with pytest.raises((BadInput, UnknownName), match=message) as error:
        read_card(text, "card.json")
    assert "\n" not in str(error.value)


def test_a_voting_network_takes_no_mean() -> None:
    with pytest.raises(BadInput, match="leave out mean and std"):
        card(mean=(0.5,))


def test_a_network_without_a_plain_first_convolution_is_refused() -> None:
    with pytest.raises(BadInput, match="needs a convolutional network"):
        with_channel_pairs(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), "flat")


def test_colour_networks_get_six_channels() -> None:
    net = build_net(
        card(net="resnet20", size=(32, 32), channels=3, ablation=Ablation(kept=75, draws=2))
    )
    assert net.base.conv1.in_channels == 6  # type: ignore[union-attr]
    with torch.no_grad():
        assert net.eval()(torch.rand(2, 3, 32, 32)).shape == (2, 3)
