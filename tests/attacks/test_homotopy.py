"""Homotopy: the proximal step against brute force, nmAPG on a known function, and the path."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import Homotopy
from pinprick.attacks.homotopy.nmapg import (
    Box,
    Look,
    Penalised,
    _ahead,
    _barzilai_borwein,
    descend,
    prox,
    waking_lambda,
)
from pinprick.oracle import exact_images, exact_linear, fewest_elements, sure_images


def box_of(images: Tensor, eps: float) -> Box:
    return Box((-images).clamp_min(-eps), (1 - images).clamp_max(eps))


def some_points(count: int, shape: tuple[int, int, int], spread: float) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return spread * torch.randn(count, *shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("eps", [1.0, 0.2])
@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("most", [2, 6])
def test_the_proximal_step_is_the_best_of_all_choices(eps: float, spread: float, most: int) -> None:
    """Of 6 elements every set of changed ones is tried, each at its nearest place in the box."""
    images = exact_images(5, (1, 2, 3))
    box, points = box_of(images, eps), some_points(5, (1, 2, 3), spread)
    rate = torch.tensor([0.1, 0.3, 0.5, 1.0, 2.0]).double()
    lam = torch.full((5,), 0.05).double()
    found = prox(points, rate, lam, torch.full((5,), most), box)
    sets = torch.tensor(list(itertools.product((0, 1), repeat=6))).bool()
    sets = sets[sets.sum(dim=1) <= most].view(-1, 1, 2, 3)
    for row in range(5):
        near = torch.where(sets, box.clip(points)[row], 0)
        cost = (near - points[row]).square().flatten(1).sum(dim=1) / (2 * rate[row])
        cost = cost + lam[row] * (near != 0).flatten(1).sum(dim=1)
        assert torch.equal(found[row], near[cost.argmin()])


def test_nothing_moves_above_the_waking_lambda_and_something_does_below() -> None:
    images, grad = exact_images(6, (3, 4, 5)), some_points(6, (3, 4, 5), 1.0)
    for eps, rate in itertools.product((1.0, 0.1), (1e-3, 1.0, 50.0)):
        box, rates = box_of(images, eps), torch.full((6,), rate).double()
        wakes = waking_lambda(torch.zeros_like(images), grad, rates, box)
        most = torch.full((6,), 60)
        points = -rate * grad
        assert not prox(points, rates, 1.0001 * wakes, most, box).any()
        changed = (prox(points, rates, 0.9999 * wakes, most, box) != 0).flatten(1).sum(dim=1)
        assert (changed >= 1).all()


def test_what_is_changed_already_does_not_wake_again() -> None:
    images, grad = exact_images(1, (1, 1, 3)), torch.tensor([[[[3.0, 2.0, 1.0]]]]).double()
    delta, rate = torch.zeros_like(images), torch.tensor([0.01]).double()
    delta[0, 0, 0, 0] = 0.1
    wakes = waking_lambda(delta, grad, rate, box_of(images, 1.0))
    assert wakes.item() == pytest.approx(0.01 * 2.0**2 / 2)


def test_momentum_leads_forwards() -> None:
    """In the authors' code its weight stays 0, and with it y would lie behind x."""
    before, x = torch.zeros(1, 1, 1, 1), torch.full((1, 1, 1, 1), 0.3)
    t = torch.tensor([1.618])
    y = _ahead(x, x, before, torch.tensor([1.5]), t, Box(-torch.ones_like(x), torch.ones_like(x)))
    assert y.item() == pytest.approx(0.3 + 0.5 / 1.618 * 0.3)


def test_the_step_of_a_quadratic_is_one_over_its_curvature() -> None:
    moved = some_points(3, (1, 2, 2), 1.0)
    largest = torch.full((3,), 0.5).double()
    assert torch.allclose(_barzilai_borwein(moved, 4 * moved, largest), torch.tensor(0.25).double())
    for turned in (-moved, 0 * moved, 0.1 * moved):
        assert torch.equal(_barzilai_borwein(moved, turned, largest), largest)


def test_a_descent_lowers_the_price_that_is_paid(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem = Problem(curved, images, Goal(curved_labels), Streams(0, torch.arange(len(images))))
    with curved.frozen():
        start = torch.zeros_like(images)
        ones = torch.ones(6).double()
        penalised = Penalised(problem, box_of(images, 1.0), ones, ones, ones.long())
        first = penalised.look(start)
        rate = 1 / first.grad.abs().flatten(1).amax(dim=1)
        lam = 0.5 * waking_lambda(start, first.grad, rate, penalised.box)
        penalised = replace(penalised, rate=rate, lam=lam, most=torch.full((6,), 12))
        ended, met = descend(penalised, start, first, 20)
        after, fools = penalised.judge(ended)
    assert ((after <= penalised.total(first.loss, start)) | met).all()
    assert (after < penalised.total(first.loss, start)).any()
    assert torch.equal(fools, met)
    assert ((ended != 0).flatten(1).sum(dim=1) <= 12).all()


@pytest.mark.parametrize(("classes", "eps"), [(2, 1.0), (4, 1.0), (10, 1.0), (4, 0.4)])
def test_comes_near_the_fewest_elements(classes: int, eps: float) -> None:
    model = exact_linear(classes, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(64, (3, 8, 8), seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(Homotopy(eps=eps), model, images, labels)
    ratio = result.needed_elements / fewest_elements(model, images, Goal(labels), eps=eps)
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.1
    assert (result.linf <= eps + 1e-12).all()


def test_no_more_elements_join_in_a_round_than_may(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    one = run_attack(Homotopy(rounds=1, growth=1), linear, images, labels)
    many = run_attack(Homotopy(growth=1), linear, images, labels)
    assert (one.l0_elements <= 1).all()
    assert many.success.all()
    assert not one.success.all()


def test_the_largest_change_is_cut_down_at_no_cost_in_elements(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    plain = run_attack(Homotopy(shrink_steps=0), linear, images, labels)
    shrunk = run_attack(Homotopy(shrink_steps=12), linear, images, labels)
    assert shrunk.success.all()
    assert (shrunk.linf <= plain.linf).all()
    assert (shrunk.linf < plain.linf).any()
    assert torch.equal(shrunk.l0_elements, plain.l0_elements)
    assert torch.equal(shrunk.forwards, plain.forwards + 12)


def test_a_refinement_moves_what_is_changed_and_nothing_else(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    problem = Problem(curved, images, Goal(curved_labels), Streams(0, torch.arange(len(images))))
    ones = torch.ones(6).double()
    penalised = Penalised(problem, box_of(images, 1.0), ones, ones, ones.long())
    delta = torch.zeros_like(images)
    delta[:, :, 2, 2:4] = 1e-3
    with curved.frozen():
        moved = Homotopy(refine_steps=5)._refined(penalised, delta)
        assert (penalised.look(moved).loss < penalised.look(delta).loss).all()
    assert not moved[delta == 0].any()
    assert problem.tally.backwards.max() <= 5 + 2


def test_gives_up_where_the_gradient_is_flat(images: Tensor) -> None:
    def flat(images: Tensor) -> Tensor:
        return 0 * images.flatten(1)[:, :2] + torch.tensor([1.0, 0.0]).to(images)

    result = run_attack(Homotopy(), flat, images, torch.zeros(len(images), dtype=torch.long))
    assert (result.forwards == 1).all()
    assert torch.equal(result.adversarial, images)


def test_goes_on_where_refinements_alone_move_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element wanders about the middle of its room, and several are needed."""

    def valleys(images: Tensor) -> Tensor:
        margin = (images - 0.6).abs().sum(dim=(1, 2, 3)) - 8
        return torch.stack((margin, torch.zeros_like(margin)), dim=1)

    def held_fast(
        penalised: Penalised, delta: Tensor, first: Look, steps: int
    ) -> tuple[Tensor, Tensor]:
        return delta.clone(), torch.zeros_like(first.met)

    monkeypatch.setattr("pinprick.attacks.homotopy.attack.descend", held_fast)
    images = torch.full((1, 3, 4, 2), 0.21).double()  # 24 of them, 9.36 from their valleys
    result = run_attack(Homotopy(refine_steps=3), valleys, images, torch.zeros(1, dtype=torch.long))
    assert result.success.all()
    assert result.l0_elements.item() >= 4  # each brings at most 0.39
