"""What a group does, on networks where that can be worked out by hand."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from explain.designed import SHAPE, changed_at, coalitions_of, model_of, result_of
from pinprick import Classifier
from pinprick.explain.noise.coalitions import Coalitions, Effects
from pinprick.explain.noise.cross_checks import ablate, path_effects
from pinprick.explain.noise.shapley import shapley_values

PLACES = [1, 7, 12, 18]


def linear_case(images: int = 3) -> tuple[Classifier, Tensor, Tensor]:
    """A linear model of four classes, and the weights that centred logits go by."""
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(4, 20, generator=generator, dtype=torch.double)
    clean = torch.rand(images, *SHAPE, generator=generator, dtype=torch.double)
    return model_of(lambda flat: flat @ weight.T), clean, weight - weight.mean(dim=0)


def sampled(coalitions: Coalitions) -> Effects:
    return shapley_values(coalitions, exact=0).effects


DEFINITIONS: dict[str, Callable[[Coalitions], Effects]] = {
    "exact": lambda coalitions: shapley_values(coalitions).effects,
    "sampled": sampled,
    "removed": lambda coalitions: ablate(coalitions).removed,
    "inserted": lambda coalitions: ablate(coalitions).inserted,
    "path": lambda coalitions: path_effects(coalitions, steps=1).parts,
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_on_a_linear_model_all_definitions_agree_with_the_weights(name: str) -> None:
    model, images, centred = linear_case()
    labels, targets = torch.tensor([0, 1, 2]), torch.tensor([3, 2, 0])
    adversarial = changed_at(images, PLACES)
    result = result_of(model, images, adversarial, labels, targets)
    delta = (adversarial - images).flatten(1)[:, PLACES]
    wanted = torch.stack(
        [-centred[labels][:, PLACES] * delta, centred[targets][:, PLACES] * delta], dim=2
    )
    torch.testing.assert_close(DEFINITIONS[name](coalitions_of(model, result)), wanted)


def both_on(flat: Tensor) -> Tensor:
    """Class 1 fires if places 1 and 7 are both on."""
    fires = flat[:, 1] * flat[:, 7]
    return torch.stack([torch.full_like(fires, 0.5), fires], dim=1)


def any_on(flat: Tensor) -> Tensor:
    """Class 1 fires if place 1 or 7 is on."""
    fires = 1 - (1 - flat[:, 1]) * (1 - flat[:, 7])
    return torch.stack([torch.full_like(fires, 0.5), fires], dim=1)


def margins(effects: Effects) -> list[float]:
    return effects[0].sum(dim=1).tolist()


def test_where_both_are_needed_removal_gives_each_all_and_insertion_none() -> None:
    model, images = model_of(both_on), torch.zeros(1, *SHAPE, dtype=torch.double)
    result = result_of(model, images, changed_at(images, [1, 7]), [0])
    coalitions = coalitions_of(model, result)
    assert margins(ablate(coalitions).removed) == [1.0, 1.0]
    assert margins(ablate(coalitions).inserted) == [0.0, 0.0]
    assert margins(shapley_values(coalitions).effects) == [0.5, 0.5]
    assert margins(sampled(coalitions)) == [0.5, 0.5]


def test_where_one_would_do_insertion_gives_each_all_and_removal_none() -> None:
    model, images = model_of(any_on), torch.zeros(1, *SHAPE, dtype=torch.double)
    result = result_of(model, images, changed_at(images, [1, 7]), [0])
    coalitions = coalitions_of(model, result)
    assert margins(ablate(coalitions).removed) == [0.0, 0.0]
    assert margins(ablate(coalitions).inserted) == [1.0, 1.0]
    assert margins(shapley_values(coalitions).effects) == [0.5, 0.5]


def lopsided(flat: Tensor) -> Tensor:
    """Place 1 feeds class 1 alone, places 7 and 12 do so only together, 18 feeds nobody."""
    fires = 2 * flat[:, 1] + 4 * flat[:, 7] * flat[:, 12]
    return torch.stack([1 - fires, fires, 0 * fires], dim=1)


@pytest.mark.parametrize("exact", [8, 0])
def test_a_group_that_does_nothing_has_exactly_nothing_and_equal_ones_the_same(exact: int) -> None:
    model, images = model_of(lopsided), torch.zeros(1, *SHAPE, dtype=torch.double)
    result = result_of(model, images, changed_at(images, PLACES), [0])
    coalitions = coalitions_of(model, result)
    effects = shapley_values(coalitions, exact=exact).effects[0]
    assert effects[3].tolist() == [0.0, 0.0]
    torch.testing.assert_close(effects[1], effects[2])
    torch.testing.assert_close(effects.sum(dim=1), effects.new_tensor([4.0, 4.0, 4.0, 0.0]))
    path = path_effects(coalitions).parts[0]
    assert path[3].tolist() == [0.0, 0.0]


def noisy_images(curved: Classifier, images: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Images with 0 to ``most`` pixels turned over, and the classes they started with."""
    adversarial = images.flatten(2).clone()
    for row in range(len(images)):
        places = torch.randperm(30, generator=torch.Generator().manual_seed(row))
        places = places[: row * most // (len(images) - 1)]
        adversarial[row, :, places] = (adversarial[row, :, places] < 0.5).double()
    with torch.no_grad():
        return adversarial.view_as(images), curved(images).argmax(dim=1)


def test_effects_add_up_to_the_whole_change(curved: Classifier, images: Tensor) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    coalitions = coalitions_of(curved, result_of(curved, images, adversarial, labels))
    totals = coalitions.totals
    for exact in (12, 4, 0):
        effects = shapley_values(coalitions, exact=exact).effects
        torch.testing.assert_close(effects.sum(dim=1), totals, rtol=1e-5, atol=1e-9)
    path = path_effects(coalitions, steps=2)
    gap = (path.parts.sum(dim=1) - totals).abs().amax(dim=1)
    assert (gap <= 0.02 * totals.sum(dim=1).abs()).all()
    assert path.steps.tolist()[0] == 0  # nothing changed, nothing asked
    assert path.steps.max() > 2  # a round was not enough for all
    rough = path_effects(coalitions, steps=1, max_steps=1)
    assert (rough.parts.sum(dim=1) - totals).abs().sum() > gap.sum()


def test_three_times_as_many_points_are_the_same_as_starting_with_them(
    curved: Classifier, images: Tensor
) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    coalitions = coalitions_of(curved, result_of(curved, images, adversarial, labels))
    grown = path_effects(coalitions, steps=2, max_steps=18, gap=0.0)
    at_once = path_effects(coalitions, steps=18, max_steps=18, gap=0.0)
    assert grown.steps.tolist() == at_once.steps.tolist() == [0, 18, 18, 18, 18, 18]
    torch.testing.assert_close(grown.parts, at_once.parts)


@pytest.mark.slow
def test_samples_are_as_far_from_the_truth_as_their_errors_say(
    curved: Classifier, images: Tensor
) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    result = result_of(curved, images, adversarial, labels)[torch.tensor([3, 4, 5])]
    truth = shapley_values(coalitions_of(curved, result), exact=10).effects
    off = []
    for seed in range(12):
        coalitions = coalitions_of(curved, result, seed=seed)
        drawn = shapley_values(coalitions, exact=0)
        errors = drawn.covariance[:, :, :2].sqrt()
        bound = 0.05 * coalitions.totals.sum(dim=1).abs().view(-1, 1, 1)
        assert (errors <= bound).all()
        there = coalitions.everything.unsqueeze(2).expand_as(errors) & (errors > 1e-12)
        off.append(((drawn.effects - truth) / errors)[there])
    far = torch.cat(off)
    assert len(far) > 400
    assert 0.9 < (far.abs() < 2).double().mean() < 0.99
    assert 0.8 < far.square().mean().sqrt() < 1.3


def test_more_orders_are_drawn_where_the_error_is_too_large(
    curved: Classifier, images: Tensor
) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    coalitions = coalitions_of(curved, result_of(curved, images, adversarial, labels))
    loose = shapley_values(coalitions, exact=0, error=1.0)
    assert loose.pairs.tolist() == [0, 16, 16, 16, 16, 16]
    tight = shapley_values(coalitions, exact=0, error=0.002, max_pairs=60)
    assert tight.pairs.max() == 60
    assert tight.covariance[5].sum() < loose.covariance[5].sum()


def test_only_groups_with_an_open_label_are_sampled_further(
    curved: Classifier, images: Tensor
) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    result = result_of(curved, images, adversarial, labels)[torch.tensor([5])]
    plain, longer = coalitions_of(curved, result), coalitions_of(curved, result)

    def third(rows: Tensor, effects: Tensor, covariance: Tensor) -> Tensor:
        return torch.arange(10).expand(len(rows), -1) == 3

    before = shapley_values(plain, exact=0, error=1.0, max_pairs=80)
    after = shapley_values(longer, exact=0, error=1.0, max_pairs=80, is_undecided=third)
    assert (before.pairs.tolist(), after.pairs.tolist()) == ([16], [80])
    others = torch.arange(10) != 3
    torch.testing.assert_close(after.effects[0, others], before.effects[0, others])
    assert after.covariance[0, 3, 0] < before.covariance[0, 3, 0]
    truth = shapley_values(coalitions_of(curved, result), exact=10).effects
    errors = after.covariance[0, 3, :2].sqrt()
    assert ((after.effects - truth)[0, 3].abs() < 4 * errors + 1e-12).all()
    more = int(longer.problem.tally.forwards - plain.problem.tally.forwards)
    assert 0 < more <= 64 * 4  # two coalitions per order, two orders per pair


def test_passes_are_those_of_the_coalitions(curved: Classifier, images: Tensor) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    result = result_of(curved, images, adversarial, labels)
    coalitions = coalitions_of(curved, result)
    assert coalitions.groups.count.tolist() == [0, 2, 4, 6, 8, 10]
    shapley_values(coalitions, exact=6, error=1.0)
    ends, pairs = 2, 16
    forwards = coalitions.problem.tally.forwards.tolist()
    assert forwards[:4] == [ends, 4 + ends, 16 + ends, 64 + ends]
    assert forwards[4:] == [ends + 2 * pairs * 7, ends + 2 * pairs * 9]
    assert coalitions.problem.tally.backwards.sum() == 0


def test_each_image_is_asked_about_by_itself(curved: Classifier, images: Tensor) -> None:
    adversarial, labels = noisy_images(curved, images, 10)
    result = result_of(curved, images, adversarial, labels)
    for name, define in DEFINITIONS.items():
        together = define(coalitions_of(curved, result))
        for row in range(1, len(result)):
            part = coalitions_of(curved, result[torch.tensor([row])])
            alone = define(part)[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, msg=name)
