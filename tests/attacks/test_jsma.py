"""JSMA: its pairs against all pairs, its saliency against the Jacobian, and its directions."""

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, build, run_attack
from pinprick.attacks import JSMA
from pinprick.attacks.jsma import best_pair, two_layers
from pinprick.oracle import exact_images, exact_linear, fewest_elements, sure_images

# Pairs


def best_worth_by_trying(a: Tensor, c: Tensor) -> Tensor:
    """The largest worth of all pairs, with D^2 numbers."""
    rise, fall = a.unsqueeze(2) + a.unsqueeze(1), c.unsqueeze(2) + c.unsqueeze(1)
    itself = torch.eye(a.shape[1], dtype=torch.bool)
    fits = (rise > 0) & (fall > 0) & ~itself
    return (rise * fall).masked_fill(~fits, -torch.inf).flatten(1).amax(dim=1)


def worth_of(pair: Tensor, a: Tensor, c: Tensor) -> Tensor:
    return a.gather(1, pair).sum(dim=1) * c.gather(1, pair).sum(dim=1)


@pytest.mark.parametrize("correlation", [-1.0, -0.99, 0.0, 1.0])
@pytest.mark.parametrize("offset", [0.0, -2.0])
def test_the_best_pair_is_the_best_of_all(correlation: float, offset: float) -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 40, 150, generator=generator).double()
    a = first + offset
    c = correlation * first + (1 - correlation**2) ** 0.5 * second + offset
    pair, worth = best_pair(a, c)
    torch.testing.assert_close(worth, best_worth_by_trying(a, c))
    there = worth.isfinite()
    torch.testing.assert_close(worth_of(pair, a, c)[there], worth[there])
    assert (pair[there, 0] != pair[there, 1]).all()


def test_equal_features_make_a_pair_too() -> None:
    generator = torch.Generator().manual_seed(1)
    a, c = torch.randint(-2, 3, (2, 200, 12), generator=generator).double()
    _, worth = best_pair(a, c)
    assert torch.equal(worth, best_worth_by_trying(a, c))
    pair, worth = best_pair(torch.ones(1, 3), torch.ones(1, 3))
    assert worth.item() == 4
    assert pair[0, 0] != pair[0, 1]


def test_features_that_are_out_take_no_part() -> None:
    a, c = torch.tensor([[9.0, 1.0, 2.0, 3.0]]), torch.tensor([[9.0, 3.0, 2.0, 1.0]])
    out = torch.tensor([[True, False, False, False]])
    pair, worth = best_pair(a.masked_fill(out, -torch.inf), c.masked_fill(out, -torch.inf))
    assert worth.item() == 16
    assert 0 not in pair
    alone = torch.tensor([[True, True, True, False]])
    _, worth = best_pair(a.masked_fill(alone, -torch.inf), c.masked_fill(alone, -torch.inf))
    assert worth.item() == -torch.inf  # one feature is no pair
    nothing = torch.full((1, 4), -torch.inf)
    assert best_pair(nothing, nothing)[1].item() == -torch.inf


def test_of_equal_pairs_the_first_is_taken_in_any_company() -> None:
    a = torch.arange(40.0).repeat(2, 1)  # pairs that add up to 40 are the best
    c = 40 - a
    a[1, 31:] = -torch.inf
    assert best_pair(a, c)[0].tolist() == [[39, 1], [30, 10]]
    assert best_pair(a[1:], c[1:])[0].tolist() == [[30, 10]]


def test_the_layers_are_few_and_right() -> None:
    a = torch.tensor([[5.0, 4.0, 3.0, 4.0, 1.0, 0.0]])
    c = torch.tensor([[0.0, 2.0, 3.0, 1.0, 2.0, 1.0]])
    places, there = two_layers(a, c)  # first 0, 1 and 2, then 3 and 4; 5 is below both
    assert sorted(places[there].tolist()) == [0, 1, 2, 3, 4]


def test_a_large_image_needs_no_square_of_its_size() -> None:
    """150,528 features; their pairs would take 84 GiB."""
    generator = torch.Generator().manual_seed(0)
    a, c = torch.randn(2, 1, 150_528, generator=generator)
    assert two_layers(a, c)[0].shape[1] < 200
    _, worth = best_pair(a, c)
    top = torch.cat((a.topk(500).indices, c.topk(500).indices, (a + c).topk(500).indices), dim=1)
    top = top.unique().unsqueeze(0)
    torch.testing.assert_close(worth, best_worth_by_trying(a.gather(1, top), c.gather(1, top)))


# Saliency


def problem(model: Classifier, images: Tensor, labels: Tensor) -> Problem:
    return Problem(model, images, Goal(labels), Streams(0, torch.arange(len(images))))


def jacobian(model: Classifier, image: Tensor, output: str) -> Tensor:
    """d F_j / d x_i as (class, element)."""

    def outputs(flat: Tensor) -> Tensor:
        logits: Tensor = model(flat.view_as(image).unsqueeze(0))[0]
        return logits.softmax(dim=0) if output == "softmax" else logits

    slopes: Tensor = torch.autograd.functional.jacobian(outputs, image.flatten())
    return slopes


@pytest.mark.parametrize("output", ["softmax", "logits"])
@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_step_is_the_one_that_the_jacobian_says(
    curved: Classifier, images: Tensor, curved_labels: Tensor, output: str, direction: str
) -> None:
    targets = (curved_labels + 1) % 4
    attack = build({"name": "jsma", "steps": 1, "output": output, "direction": direction})
    assert isinstance(attack, JSMA)
    with curved.frozen():
        whole = problem(curved, images, curved_labels)
        rise, fall, _ = attack._saliency(whole, images, targets)
        moved = attack._moved(images, attack._choose(rise, fall)[0])
        for row, target in enumerate(targets.tolist()):
            slope = jacobian(curved, images[row], output) * (1 if direction == "up" else -1)
            a, b = slope[target], slope.sum(dim=0) - slope[target]
            worth = best_worth_by_trying(a[None], -b[None])
            changed = (moved[row] != images[row]).flatten().nonzero().T
            assert changed.shape[1] == 2
            torch.testing.assert_close(
                worth_of(changed, a[None], -b[None]), worth, rtol=1e-4, atol=0
            )
            edge = 1.0 if direction == "up" else 0.0
            assert (moved[row].flatten()[changed] == edge).all()


def test_softmax_does_not_vanish_where_the_network_is_sure() -> None:
    model = exact_linear(4, (3, 6, 5))
    sure = Classifier(lambda images: 1000 * model(images))
    images = exact_images(6, (3, 6, 5))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(JSMA(direction="both"), sure, images, labels)
    assert result.success.all()


# Directions, elements and rivals


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("theta", [1.0, 0.25])
def test_elements_go_up_or_down_by_theta(
    linear: Classifier, images: Tensor, labels: Tensor, pairs: bool, theta: float
) -> None:
    for direction, sign in (("up", 1), ("down", -1)):
        spec = {"name": "jsma", "direction": direction, "pairs": pairs, "theta": theta}
        result = run_attack(build(spec), linear, images, labels)
        assert result.success.any()
        assert (sign * result.delta >= 0).all()
        moved = result.delta[result.delta != 0].abs()
        at_edge = result.adversarial[result.delta != 0] == (1 if direction == "up" else 0)
        steps = moved / theta
        assert (at_edge | ((steps - steps.round()).abs() < 1e-9)).all()


def test_both_ways_an_element_at_the_edge_stays_there(
    linear: Classifier, images: Tensor, labels: Tensor, targets: Tensor
) -> None:
    result = run_attack(JSMA(direction="both"), linear, images, labels, targets=targets)
    assert result.success.all()
    assert (result.delta > 0).any()
    assert (result.delta < 0).any()
    changed = result.adversarial[result.delta != 0]
    assert ((changed == 0) | (changed == 1)).all()
    assert torch.equal(result.l0_elements, 2 * (result.forwards - 1))  # two a step, none undone


def test_single_elements_on_two_classes_are_the_fewest() -> None:
    """With two classes the logits' saliency is the gain of an element but for its room."""
    model = exact_linear(2, (3, 8, 8), seed=4)
    images = torch.full((1, 3, 8, 8), 0.5).double()  # the same room for all
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = JSMA(pairs=False, direction="both")
    result = run_attack(attack, model, images, labels)
    assert torch.equal(result.needed_elements, fewest_elements(model, images, Goal(labels)))
    assert result.needed_elements.item() >= 1


def test_more_rivals_never_need_more() -> None:
    model = exact_linear(10, (3, 6, 5), seed=3)
    images = sure_images(model, exact_images(16, (3, 6, 5)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    one, all_of_them = (run_attack(JSMA(rivals=rivals), model, images, labels) for rivals in (1, 9))
    assert (all_of_them.needed_elements <= one.needed_elements).all()
    assert (all_of_them.needed_elements < one.needed_elements).any()
    assert (all_of_them.forwards > one.forwards).all()


def test_an_image_that_cannot_go_further_is_given_up() -> None:
    model = exact_linear(4, (3, 6, 5))
    images = torch.ones(1, 3, 6, 5).double()  # nothing can go up
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(JSMA(), model, images, labels)
    assert not result.success.any()
    assert result.forwards.item() == 2  # the clean image for its rivals, and one step
