"""Proofs against trying everything, and claims that no tolerance or time limit can turn wrong."""

import dataclasses
import math
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bounds.small_networks import (
    attack_small,
    failed,
    fewest_by_trying,
    other_classes,
    small_images,
    small_network,
    sure_images,
    wasteful,
)
from pinprick import BadInput, Classifier, Goal, MissingExtra, run_attack
from pinprick.attacks import Greedy
from pinprick.bounds import exact, program
from pinprick.bounds.exact import prove
from pinprick.bounds.linear_bounds import Ball
from pinprick.bounds.proof import Judge, Proof, Status, wrong_claims
from pinprick.metrics.unit import Unit

INFINITE = float("inf")


@pytest.mark.parametrize("widths", [(8, 4, 3), (8, 3, 2, 2), (12, 4, 2)])
@pytest.mark.parametrize("targeted", [False, True])
def test_a_proof_finds_what_trying_everything_finds(
    widths: tuple[int, ...], targeted: bool
) -> None:
    net = small_network(*widths, seed=len(widths))
    images = sure_images(net, 2, (1, 2, widths[0] // 2))
    targets = other_classes(net, images) if targeted else None
    result = attack_small(net, images, targets=targets)
    proof = prove(result, net)
    for row in range(len(images)):
        truth = fewest_by_trying(net, images[row], result.goal[torch.tensor([row])], "elements")
        assert proof.lower[row] == proof.upper[row] == truth


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_a_proof_counts_the_unit_and_keeps_to_the_mask(unit: Unit) -> None:
    net, images = small_network(12, 4, 3, seed=5), small_images(3, (3, 2, 2))
    allowed = small_images(3, (3, 2, 2), seed=9) > 0.4
    result = attack_small(net, images, allowed=allowed)
    proof = prove(result, net, unit=unit, allowed=allowed)
    changed = proof.adversarial != proof.images
    assert not (changed & ~allowed).any()
    for row in range(3):
        goal = result.goal[torch.tensor([row])]
        truth = fewest_by_trying(net, images[row], goal, unit, allowed[row])
        assert proof.lower[row] == proof.upper[row] == truth
    if unit == "pixels":
        finite = proof.upper.isfinite()
        assert torch.equal(
            changed.any(dim=1).flatten(1).sum(dim=1)[finite].double(), proof.upper[finite]
        )


def test_a_convolution_with_batch_norm_and_pooling_is_one_affine_map() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 2),
        nn.BatchNorm2d(2),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Dropout(),
        nn.Flatten(),
        nn.Linear(2, 2),
    )
    with torch.no_grad():
        net.get_buffer("1.running_mean").normal_()
        net.get_buffer("1.running_var").uniform_(0.5, 2)
    model = Classifier(net.eval(), mean=(0.3,), std=(0.4,))
    images = small_images(2, (1, 3, 3))
    labels = model(images).argmax(dim=1)
    result = run_attack(Greedy(), model, images, labels)
    proof = prove(result, model)
    for row in range(2):
        truth = fewest_by_trying(model, images[row], Goal(labels[row : row + 1]), "elements")
        assert proof.lower[row] == proof.upper[row] == truth


def test_an_attack_that_wasted_units_is_beaten_by_an_image_that_fools() -> None:
    net = small_network(12, 5, 3, seed=2)
    images = sure_images(net, 6, (1, 3, 4))
    result = wasteful(net, images)
    proof = prove(result, net)
    better = proof.better
    assert better.any()
    assert bool((proof.upper[better] < result.needed_elements[better]).all())
    again = failed(net, proof.adversarial[better], result.goal.labels[better])
    assert again.skipped.all()  # the referee says the same
    assert all(proof.status[row] is Status.BETTER for row in better.nonzero().squeeze(1).tolist())


def test_where_the_attack_failed_the_fewest_are_found_all_the_same() -> None:
    net = small_network(8, 4, 2, seed=3)
    images = sure_images(net, 2, (1, 2, 4))
    with torch.no_grad():
        labels = net(images).argmax(dim=1)
    proof = prove(failed(net, images, labels), net)
    for row in range(2):
        truth = fewest_by_trying(net, images[row], Goal(labels[row : row + 1]), "elements")
        assert proof.lower[row] == proof.upper[row] == truth
        assert proof.status[row] is (Status.BETTER if truth < INFINITE else Status.NEVER)


def constant_network(*logits: float) -> nn.Sequential:
    net = small_network(4, 3, len(logits))
    with torch.no_grad():
        net.get_parameter("3.weight").zero_()
        net.get_parameter("3.bias").copy_(torch.tensor(logits))
    return net


def test_a_constant_network_cannot_be_fooled() -> None:
    net, images = constant_network(1.0, 0.0), small_images(2, (1, 2, 2))
    proof = prove(failed(net, images, torch.tensor([0, 0])), net)
    assert proof.lower.tolist() == proof.upper.tolist() == [INFINITE] * 2
    assert proof.status == (Status.NEVER, Status.NEVER)
    assert torch.equal(proof.adversarial, images)


def test_a_network_whose_relus_are_all_dead_cannot_be_fooled() -> None:
    net = small_network(4, 3, 2)
    with torch.no_grad():
        net.get_parameter("1.bias").fill_(-100)
    images = small_images(1, (1, 2, 2))
    proof = prove(failed(net, images, net(images).argmax(dim=1)), net)
    assert proof.status == (Status.NEVER,)


def test_an_image_that_is_wrong_already_needs_no_units() -> None:
    net, images = small_network(8, 4, 3), small_images(2, (1, 2, 4))
    with torch.no_grad():
        wrong = net(images).argmin(dim=1)
    proof = prove(failed(net, images, wrong), net)
    assert proof.lower.tolist() == proof.upper.tolist() == [0, 0]
    assert proof.status == (Status.ALREADY, Status.ALREADY)


def test_a_mask_that_allows_nothing_leaves_an_image_that_cannot_be_fooled() -> None:
    net, images = small_network(8, 4, 3), small_images(1, (1, 2, 4))
    result = failed(net, images, net(images).argmax(dim=1))
    proof = prove(result, net, allowed=torch.zeros(2, 4, dtype=torch.bool))
    assert proof.status == (Status.NEVER,)


def tie_network() -> nn.Sequential:
    """Class 0 scores 1, class 1 as many as there are bright elements, without rounding."""
    net = small_network(3, 3, 2, dtype=torch.float64)
    with torch.no_grad():
        net.get_parameter("1.weight").copy_(torch.eye(3))
        net.get_parameter("1.bias").zero_()
        net.get_parameter("3.weight").copy_(torch.tensor([[0.0] * 3, [1.0] * 3]))
        net.get_parameter("3.bias").copy_(torch.tensor([1.0, 0.0]))
    return net


def test_a_tie_is_neither_an_attack_nor_a_proof() -> None:
    images = torch.zeros(1, 1, 1, 3, dtype=torch.float64)
    proof = prove(failed(tie_network(), images, torch.tensor([0])), tie_network())
    assert (proof.lower.item(), proof.upper.item()) == (1, 2)  # one element ties, and loses
    assert not proof.proved.any()


def test_a_tie_that_wins_is_an_attack() -> None:
    net = tie_network()
    images = torch.zeros(1, 1, 1, 3, dtype=torch.float64)
    images[..., 0] = images[..., 1] = 1.0
    proof = prove(failed(net, images, torch.tensor([1])), net)
    assert proof.lower.item() == proof.upper.item() == 1  # at 1 to 1 class 0 wins


def test_a_time_limit_that_ends_a_proof_midway_gives_true_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = small_network(12, 5, 3, seed=2)
    result = wasteful(net, sure_images(net, 2, (1, 3, 4)))
    truth = prove(result, net).lower
    solved = program._Rows.solve
    monkeypatch.setattr(program._Rows, "solve", lambda rows, cost, _: solved(rows, cost, 1e-3))
    proof = prove(result, net, seconds=0.25)
    assert bool((proof.lower <= truth).all())
    assert bool((truth <= proof.upper).all())
    assert not proof.proved.any()


def test_the_slack_holds_for_every_rival() -> None:
    """The first rival has large weights and cannot win; the second nearly wins with one element."""
    net = small_network(3, 3)
    with torch.no_grad():
        weight = torch.tensor([[0.0] * 3, [1000.0] * 3, [1.0, 0.5, 0.0]])
        net.get_parameter("1.weight").copy_(weight)
        net.get_parameter("1.bias").copy_(torch.tensor([1.0001, -1e4, 0.0]))
    images = torch.zeros(1, 1, 1, 3)
    proof = prove(failed(net, images, torch.tensor([0])), net)
    assert proof.lower.item() == proof.upper.item() == 2
    images[..., 0] = 1.0
    logits = net(images)[0].double()
    missed = (logits[0] - logits[2]).item()
    assert 5e-5 < missed < 2e-4
    assert 0 < proof.slack.item() <= missed


def test_the_units_of_a_bound_are_rounded_up_with_care() -> None:
    assert program._round_up(2.5) == 3
    assert program._round_up(3.0000001) == 3  # rounding of the solver, not a fourth unit
    assert program._round_up(None) == program._round_up(math.inf) == -math.inf


def claims() -> tuple[Proof, Judge]:
    net, images = small_network(8, 4, 3), small_images(2, (1, 2, 4))
    result = attack_small(net, images)
    return prove(result, net), Judge(Classifier(net))


def test_a_true_proof_has_no_wrong_claims() -> None:
    assert list(wrong_claims(*claims())) == []


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("lower", lambda proof: proof.lower + 1, "the lower bound is above the upper one"),
        ("lower", lambda proof: proof.lower - 0.5, "no whole number"),
        ("upper", lambda proof: proof.upper + 1, "changes another number of units"),
        ("adversarial", lambda proof: proof.images, "does not fool in float32 and float64"),
        ("adversarial", lambda proof: proof.adversarial + 2, "leaves the box"),
        ("status", lambda proof: (Status.NEVER,) * 2, "does not follow from the bounds"),
        ("goal", lambda proof: Goal((proof.goal.labels + 1) % 3), "the clean image fools"),
    ],
)
def test_a_wrong_claim_is_found_out(name: str, change: object, sentence: str) -> None:
    proof, judge = claims()
    assert callable(change)
    wrong = dataclasses.replace(proof, **{name: change(proof)})
    assert any(sentence in claim for claim in wrong_claims(wrong, judge))


def test_a_solution_that_the_network_denies_is_no_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    net, images = small_network(8, 4, 3), small_images(2, (1, 2, 4))
    result = attack_small(net, images)
    truth = prove(result, net)

    def lie(network: object, ball: Ball, *_: object, **__: object) -> program.Solved:
        change = np.zeros_like(ball.image)
        change[ball.free[0]] = (ball.high + ball.low)[ball.free[0]]
        return program.Solved(change, 1.0, finished=True)

    monkeypatch.setattr(exact, "fewest_units", lie)
    proof = prove(result, net)
    assert bool((proof.upper <= result.needed_elements).all())
    assert bool((proof.lower <= truth.lower).all())


class Squared(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) ** 2


class Doubled(nn.Linear):
    def forward(self, inputs: Tensor) -> Tensor:
        return 2 * super().forward(inputs).abs()


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(8, 3), nn.Sigmoid()), "holds Sigmoid"),
        (Squared(), "holds Squared"),
        (nn.Sequential(nn.Flatten(), Doubled(8, 3)), "does not compute what its modules say"),
        (
            nn.Sequential(nn.Flatten(), nn.Linear(8, 2000), nn.ReLU(), nn.Linear(2000, 3)),
            "at most 1024 ReLUs, Sequential has at least 2000",
        ),
        (lambda images: images.flatten(1)[:, :3], "has no network inside"),
    ],
)
def test_what_cannot_be_proved_is_refused_in_one_line(net: nn.Module, message: str) -> None:
    images = small_images(2, (1, 2, 4))
    result = failed(small_network(8, 3, 3), images, torch.tensor([0, 1]))
    with pytest.raises(BadInput, match=message):
        prove(result, net)


def test_images_that_are_too_large_are_refused() -> None:
    images = torch.rand(1, 3, 64, 64)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 2))
    with pytest.raises(BadInput, match="at most 4096 elements, these have 12288"):
        prove(failed(net, images, torch.tensor([0])), net)


@pytest.mark.plain
@pytest.mark.parametrize("seconds", [0, -1, math.nan, "60", True])
def test_a_time_limit_that_is_none_is_refused(seconds: float) -> None:
    net, images = small_network(8, 3, 3), small_images(1, (1, 2, 4))
    with pytest.raises(BadInput, match="seconds must be a number above 0"):
        prove(attack_small(net, images), net, seconds=seconds)


def test_a_result_that_broke_the_mask_is_refused() -> None:
    net = small_network(8, 3, 3)
    result = wasteful(net, small_images(2, (1, 2, 4)))
    with pytest.raises(BadInput, match="where allowed is False"):
        prove(result, net, allowed=torch.zeros(2, 4, dtype=torch.bool))


def test_weights_that_are_not_finite_are_refused() -> None:
    net, images = small_network(8, 3, 3), small_images(1, (1, 2, 4))
    result = attack_small(net, images)
    with torch.no_grad():
        net.get_parameter("1.weight")[0, 0] = torch.nan
    with pytest.raises(BadInput, match="not finite"):
        prove(result, net)


def test_a_missing_solver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    net = small_network(12, 5, 3, seed=2)
    images = sure_images(net, 6, (1, 3, 4))
    result = wasteful(net, images)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pinprick\[bounds\]'"):
        prove(result, net)


def test_no_images_give_an_empty_proof() -> None:
    net, images = small_network(8, 3, 3), small_images(1, (1, 2, 4))
    assert len(prove(attack_small(net, images)[:0], net)) == 0


def test_a_network_without_relus_is_proved_by_its_bounds() -> None:
    net, images = small_network(8, 3), small_images(3, (1, 2, 4))
    result = attack_small(net, images)
    proof = prove(result, net)
    for row in range(3):
        goal = result.goal[torch.tensor([row])]
        assert proof.lower[row] == fewest_by_trying(net, images[row], goal, "elements")
    assert proof.proved.all()
