"""GreedyFool: its first step by hand, its second stage against a plain loop, and its maps."""

import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier, Goal, Problem, Streams, run_attack
from pinprick.attacks import GreedyFool
from pinprick.attacks.greedyfool import Distortion, hiding_weights, hill_cost, reduce_pixels
from pinprick.oracle import exact_images, exact_linear, fewest_pixels, sure_images

MAPS: tuple[Distortion, ...] = ("hill", "sigma")


def two_classes(weight: Tensor, bias: float) -> nn.Module:
    """Class 1 leads by ``weight . x - bias``."""
    layer = nn.Linear(weight.numel(), 2).double()
    layer.weight.data = torch.stack((torch.zeros_like(weight), weight)).flatten(1).double()
    layer.bias.data = torch.tensor([bias, 0.0]).double()
    return nn.Sequential(nn.Flatten(), layer)


def problem_of(model: Classifier, images: Tensor, labels: Tensor) -> Problem:
    return Problem(model, images, Goal(labels), Streams(0, torch.arange(len(images))))


def test_a_step_moves_the_chosen_pixel_in_proportion_to_its_gradient() -> None:
    weight = torch.tensor([[[3.0, 1.0]], [[1.0, -4.0]]])  # pixels of 3 + 1 and 1 + 4
    images = torch.full((1, 2, 1, 2), 0.5, dtype=torch.float64)
    net = two_classes(weight, bias=0.5 + 0.5)  # the lead starts at -0.5
    result = run_attack(GreedyFool(trials=0, eps=0.6), net, images, [0])
    moved = 0.5 + torch.tensor([[[[0.0, 0.3 * 1 / 4]], [[0.0, -0.3]]]], dtype=torch.float64)
    torch.testing.assert_close(result.adversarial, moved)
    assert (result.forwards.item(), result.backwards.item()) == (2, 2)


def test_all_chosen_pixels_move_on_and_one_more_joins_them_each_step() -> None:
    weight = torch.tensor([[[4.0, 2.0, 1.0]]])
    images = torch.full((1, 1, 1, 3), 0.25, dtype=torch.float64)
    net = two_classes(weight, bias=0.25 * 7 + 0.6 * 4)
    result = run_attack(GreedyFool(trials=0, eps=0.6), net, images, [0])
    expected = 0.25 + torch.tensor([[[[0.6, 0.15, 0.0]]]], dtype=torch.float64)
    torch.testing.assert_close(result.adversarial, expected)  # 0.3 and 0, then 0.6 and 0.15
    assert result.forwards.item() == 3


def test_under_a_small_eps_one_pixel_more_is_chosen_each_step(
    linear: Classifier, curved: Classifier, images: Tensor, labels: Tensor, curved_labels: Tensor
) -> None:
    single, boosted = (GreedyFool(trials=0, eps=eps) for eps in (0.503, 0.501))
    for attack in (single, boosted):  # the largest of a gradient that stays the same: one a step
        result = run_attack(attack, linear, images, labels)
        assert torch.equal(result.l0_pixels, result.forwards - 1)
    one = run_attack(single, curved, images, curved_labels)
    many = run_attack(boosted, curved, images, curved_labels)
    assert (one.l0_pixels <= one.forwards - 1).all()
    assert (many.l0_pixels > many.forwards - 1).any()
    assert (many.l0_pixels <= many.forwards * (many.forwards - 1) // 2).all()


def one_image_at_a_time(problem: Problem, image: Tensor, eps: float, trials: int) -> Tensor:
    """The published second stage for one image, with a Python loop for each of its loops."""
    clean, place = problem.images, 0
    for _ in range(trials):
        size = (image - clean).abs().sum(dim=1).flatten()
        changed = size.nonzero().squeeze(1)
        if place >= len(changed) or len(changed) <= 1:
            break
        pixel = changed[size[changed].argsort(stable=True)][place]
        delta = (image - clean).flatten(2).clone()
        delta[:, :, pixel] = 0
        delta = delta.view_as(clean) / delta.abs().max()
        place += 1
        for scale in (*(tenth / 10 for tenth in range(1, 11)), 1.25, 1.6, 2, 3, 5):
            tried = clean + (delta * scale * eps).clamp(-eps, eps)
            tried = tried.clamp(0, 1)
            if problem.goal.met(problem.logits(tried)).item():
                image, place = tried, place - 1
                break
    return image


@pytest.mark.parametrize("eps", [1.0, 0.5])
def test_the_second_stage_is_the_loop_over_images_pixels_and_scales(
    curved: Classifier, images: Tensor, curved_labels: Tensor, eps: float
) -> None:
    first = run_attack(GreedyFool(trials=0, eps=eps), curved, images, curved_labels)
    assert first.success.all()
    problem = problem_of(curved, images, curved_labels)
    with curved.frozen():
        together = reduce_pixels(problem, first.adversarial, eps, 40)
        for row in range(len(images)):
            only = problem[torch.tensor([row])]
            alone = one_image_at_a_time(only, first.adversarial[row : row + 1], eps, 40)
            torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-12)
    fewer = (together != images).any(dim=1).flatten(1).sum(dim=1)
    assert (fewer <= first.l0_pixels).all()
    assert (fewer < first.l0_pixels).any()


def test_of_pixels_that_changed_alike_the_first_are_put_back() -> None:
    """A third of 90 pixels is needed; which go does not depend on the other image."""
    model = Classifier(two_classes(torch.ones(1, 10, 10), bias=29.5))
    images = torch.zeros(2, 1, 10, 10, dtype=torch.float64)
    adv = images.flatten(1).clone()
    adv[0, :90], adv[1, 5:40] = 1, 1
    adv = adv.view_as(images)
    problem = problem_of(model, images, torch.zeros(2, dtype=torch.long))
    together = reduce_pixels(problem, adv, 1.0, 20)
    assert together[1].flatten().nonzero().flatten().tolist() == list(range(10, 40))
    alone = reduce_pixels(problem[torch.tensor([1])], adv[1:], 1.0, 20)
    assert torch.equal(alone, together[1:])


def test_a_pixel_goes_where_the_others_make_up_for_it_beyond_the_largest_change() -> None:
    """Without the second pixel the third must change 1.375 times as much; 1.6 is the next scale."""
    weight = torch.tensor([[[4.0, 2.0, 2.0]]])
    model = Classifier(two_classes(weight, bias=5.1))
    images = torch.zeros(1, 1, 1, 3, dtype=torch.float64)
    adv = torch.tensor([[[[1.0, 0.3, 0.4]]]], dtype=torch.float64)
    problem = problem_of(model, images, torch.zeros(1, dtype=torch.long))
    less = reduce_pixels(problem, adv, 1.0, 1)
    expected = torch.tensor([[[[1.0, 0.0, 0.4 * 1.6]]]], dtype=torch.float64)
    torch.testing.assert_close(less, expected)
    assert problem.forwards.item() == 15


def test_the_second_stage_costs_fifteen_passes_per_trial_at_most(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    first = run_attack(GreedyFool(trials=0), linear, images, labels)
    both = run_attack(GreedyFool(trials=3), linear, images, labels)
    spent = both.forwards - first.forwards
    assert (spent <= 45).all()
    assert spent.any()
    assert torch.equal(both.backwards, first.backwards)
    assert (both.l0_pixels <= first.l0_pixels).all()


@pytest.mark.parametrize("classes", [2, 4, 10])
@pytest.mark.parametrize("eps", [1.0, 0.4])
def test_comes_near_the_fewest_pixels(classes: int, eps: float) -> None:
    model = exact_linear(classes, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(64, (3, 8, 8), seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(GreedyFool(eps=eps), model, images, labels)
    ratio = result.needed_pixels / fewest_pixels(model, images, Goal(labels), eps=eps)
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.15


def test_gives_up_where_nothing_moves(images: Tensor) -> None:
    def flat(images: Tensor) -> Tensor:
        return 0 * images.flatten(1)[:, :2] + torch.tensor([1.0, 0.0]).to(images)

    result = run_attack(GreedyFool(), flat, images, torch.zeros(len(images), dtype=torch.long))
    assert (result.forwards == 1).all()
    assert torch.equal(result.adversarial, images)


def half_busy() -> Tensor:
    """A picture that is flat on the left and busy on the right."""
    pictures = torch.full((2, 3, 16, 16), 0.5, dtype=torch.float64)
    noise = torch.rand(2, 3, 16, 6, generator=torch.Generator().manual_seed(0)).double()
    pictures[..., 10:] = noise
    return pictures


@pytest.mark.parametrize("distortion", MAPS)
def test_changes_hide_where_the_picture_is_busy(distortion: Distortion) -> None:
    weights = hiding_weights(half_busy(), distortion).view(2, 16, 16)
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[..., :5].max() < 0.1
    assert weights[..., 12:].mean() > 0.3


@pytest.mark.parametrize("distortion", MAPS)
def test_pixels_are_chosen_where_they_hide(distortion: Distortion) -> None:
    pictures, weight = half_busy(), torch.ones(3, 16, 16)
    net = two_classes(weight, bias=float(pictures.flatten(1).sum(dim=1).max()) + 3)
    result = run_attack(GreedyFool(distortion=distortion), net, pictures, [0, 0])
    assert result.success.all()
    assert not (result.adversarial != pictures)[..., :5].any()
    plain = run_attack(GreedyFool(), net, pictures, [0, 0])
    assert (plain.adversarial != pictures)[..., :5].any()


@pytest.mark.parametrize("distortion", ["none", *MAPS])
def test_a_flat_picture_hides_nothing_anywhere(distortion: Distortion) -> None:
    flat = torch.full((2, 1, 5, 4), 0.25)
    assert torch.equal(hiding_weights(flat, distortion), torch.ones(2, 20))


def test_the_hill_cost_of_a_single_dot_is_worked_out_by_hand() -> None:
    """The dot makes 5 x 5 pixels busy; what counts is how many of them the 15 x 15 around show."""
    picture = torch.zeros(1, 1, 41, 41, dtype=torch.float64)
    picture[0, 0, 20, 20] = 1
    cost = hill_cost(picture)[0, 0]
    for row, column, seen in ((20, 20, 25), (20, 13, 15), (27, 27, 9), (20, 11, 5), (20, 10, 0)):
        assert cost[row, column].item() == pytest.approx(1 - seen / 25, abs=1e-6)


def test_images_are_weighed_each_by_itself() -> None:
    pictures = torch.cat((half_busy(), exact_images(2, (3, 16, 16))))
    for distortion in MAPS:
        together = hiding_weights(pictures, distortion)
        alone = torch.cat([hiding_weights(one[None], distortion) for one in pictures])
        torch.testing.assert_close(together, alone)


def test_refuses_a_map_it_does_not_have() -> None:
    from pinprick import build

    with pytest.raises(BadInput, match="distortion"):
        build({"name": "greedyfool", "distortion": "network"})
