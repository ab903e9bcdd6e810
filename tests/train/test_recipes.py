"""What a recipe may do to the images: no more than it says, and as its paper has it."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier, Goal, Problem, Streams, UnknownName
from pinprick.oracle import exact_images, exact_linear
from pinprick.parts.units import Units
from pinprick.train import (
    NFGSM,
    PGDAT,
    RECIPES,
    FastAT,
    RandomisedAblation,
    Recipe,
    SparseAT,
    Standard,
    find_recipe,
)
from pinprick.types import Images

EPS = 0.1


@pytest.fixture
def net() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
        net = nn.Sequential(*layers)
        net(torch.rand(2, 3, 9, 9))
        return net.train()


@pytest.fixture
def problem(net: nn.Sequential) -> Problem:
    return make_problem(net)


def make_problem(net: nn.Module, seed: int = 0) -> Problem:
    drawn = Streams(5, torch.arange(16))
    images = drawn.uniform(3, 9, 9, step=0, use="images")
    labels = drawn.integers(5, step=0, use="labels")
    return Problem(Classifier(net), images, Goal(labels), Streams(seed, torch.arange(16)))


ALL: list[Recipe] = [
    Standard(),
    PGDAT(eps=EPS, steps=3),
    FastAT(eps=EPS),
    NFGSM(eps=EPS),
    SparseAT(k_max=7),
    SparseAT(k_max=7, unit="pixels"),
    RandomisedAblation(kept=5),
]


@pytest.mark.parametrize("recipe", ALL, ids=lambda recipe: recipe.name)
def test_stays_in_the_box_and_leaves_the_batch_and_the_weights_alone(
    recipe: Recipe, problem: Problem, net: nn.Sequential
) -> None:
    before = problem.images.clone()
    weights = [parameter.clone() for parameter in net.parameters()]
    adv = recipe.perturb(problem, 1.0)
    assert adv.min() >= 0
    assert adv.max() <= 1
    assert torch.equal(problem.images, before)
    assert all(parameter.grad is None for parameter in net.parameters())
    assert all(torch.equal(*pair) for pair in zip(weights, net.parameters(), strict=True))
    assert net.training


@pytest.mark.parametrize("strength", [0.25, 1.0])
@pytest.mark.parametrize(
    ("recipe", "most"),
    [(PGDAT(eps=EPS), EPS), (FastAT(eps=EPS), EPS), (NFGSM(eps=EPS), 3 * EPS)],
    ids=lambda value: value.name if isinstance(value, Recipe) else "",
)
def test_no_value_changes_by_more_than_the_radius(
    recipe: Recipe, most: float, strength: float, problem: Problem
) -> None:
    change = (recipe.perturb(problem, strength) - problem.images).abs().max()
    assert change <= strength * most + 1e-6
    assert change > 0.9 * strength * most  # some values use it up


@pytest.mark.parametrize("unit", ["elements", "pixels"])
def test_sparse_at_changes_as_many_units_as_were_drawn(unit: Any, problem: Problem) -> None:
    recipe = SparseAT(k_min=2, k_max=9, unit=unit)
    adv = recipe.perturb(problem, 1.0)
    count = Units(unit).count(adv, problem.images)
    drawn = problem.rng.integers(8, step=0, use="sparse_at k") + 2
    assert ((count <= drawn) & (count <= 9)).all()
    assert len(set(drawn.tolist())) > 4  # each image has its own
    assert (count == drawn).float().mean() > 0.5
    changed = adv != problem.images
    assert ((adv == 0) | (adv == 1))[changed].all()  # all the way to the corner


def test_sparse_at_keeps_the_candidate_of_highest_loss(net: nn.Sequential) -> None:
    net.eval()
    problem = make_problem(net)
    losses = [
        problem.goal.cross_entropy(
            problem.logits(SparseAT(passes=n, starts=1, temperature=0.0).perturb(problem, 1.0))
        )
        for n in (1, 3, 6)
    ]
    clean = problem.goal.cross_entropy(problem.logits(problem.images))
    for before, after in pairwise(losses):  # it falls as the loss grows
        assert (after <= before + 1e-6).all()
    assert losses[2].mean() < losses[0].mean() < clean.mean()


def test_sparse_at_sets_out_from_random_places(net: nn.Sequential) -> None:
    seen: list[Images] = []
    net.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().clone()))
    problem = make_problem(net.eval())
    SparseAT(k_min=3, k_max=3, passes=4, starts=2).perturb(problem, 1.0)
    clean = problem.images
    first, second = ((seen[step] != clean).flatten(1) for step in (0, 2))
    assert (first.sum(dim=1) <= 3).all()
    assert first.any()
    assert second.any()
    assert not torch.equal(first, second)


def test_sparse_at_finds_the_best_units_of_a_linear_model() -> None:
    """With two classes the margin is linear, so the best k values are the k largest products."""
    model, images = exact_linear(2, (3, 6, 5)), exact_images(6, (3, 6, 5))
    labels = model(images).argmax(dim=1)
    problem = Problem(model, images, Goal(labels), Streams(0, torch.arange(6)))
    k = 5
    recipe = SparseAT(k_min=k, k_max=k, passes=2, starts=1, temperature=0.0)
    grad = problem.gradient(images, problem.goal.margin)
    room = torch.where(grad > 0, images, 1 - images)
    best = (grad.abs() * room).flatten(1).sort(dim=1, descending=True).values[:, :k].sum(dim=1)
    margin = problem.goal.margin(problem.logits(images)) - problem.goal.margin(
        problem.logits(recipe.perturb(problem, 1.0))
    )
    torch.testing.assert_close(margin, best)


def test_ablation_leaves_the_pixels_that_were_drawn_as_pairs_and_nothing_else(
    problem: Problem,
) -> None:
    given = RandomisedAblation(kept=7).perturb(problem, 1.0)
    colour, inverse = given.chunk(2, dim=1)
    seen = (given != 0).any(dim=1)
    assert (seen.flatten(1).sum(dim=1) == 7).all()
    assert len({tuple(mask.flatten().tolist()) for mask in seen}) == 16  # each image has its own
    kept = seen.unsqueeze(1).expand_as(colour)
    assert torch.equal(colour[kept], problem.images[kept])
    assert torch.equal(inverse[kept], 1 - problem.images[kept])


def test_ablation_cannot_keep_more_pixels_than_there_are(problem: Problem) -> None:
    with pytest.raises(BadInput, match="at most all 81 pixels, got kept 82"):
        RandomisedAblation(kept=82).perturb(problem, 1.0)


def test_fast_at_is_the_step_of_the_paper(net: nn.Sequential) -> None:
    net.eval()
    problem = make_problem(net)
    images = problem.images
    draw = problem.rng.uniform(3, 9, 9, step=0, use="pgd start")
    start = (images + EPS * (2 * draw - 1)).clamp(0, 1)
    grad = problem.gradient(start, lambda logits: -problem.goal.cross_entropy(logits))
    delta = (start - images + 1.25 * EPS * grad.sign()).clamp(-EPS, EPS)
    expected = (images + delta).clamp(0, 1)
    torch.testing.assert_close(FastAT(eps=EPS).perturb(problem, 1.0), expected)


@pytest.mark.parametrize("recipe", ALL[1:], ids=lambda recipe: recipe.name)
def test_random_numbers_belong_to_the_seed(recipe: Recipe, net: nn.Sequential) -> None:
    net.eval()
    first, again, other = (recipe.perturb(make_problem(net, s), 1.0) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_ramp_that_has_not_begun_changes_nothing(problem: Problem) -> None:
    for recipe in (PGDAT(eps=EPS), FastAT(eps=EPS)):
        assert torch.equal(recipe.perturb(problem, 0.0), problem.images)


def test_after_a_collapse_each_recipe_is_more_careful_than_the_one_before() -> None:
    steps: list[Recipe] = [FastAT(eps=0.2)]
    while (following := steps[-1].careful()) is not None:
        steps.append(following)
    shorter, *rest = steps[1:]
    assert shorter == FastAT(eps=0.2, step_size=0.75 * 1.25 * 0.2)
    assert rest == [PGDAT(eps=0.2, steps=n, step_size=0.2 / n) for n in (2, 4, 8)]


def test_only_one_step_recipes_are_guarded() -> None:
    assert {recipe.name for recipe in ALL if recipe.guarded()} == {"fast_at", "n_fgsm"}
    assert not replace(FastAT(), guard=False).guarded()


@pytest.mark.parametrize("recipe", ALL[:-1], ids=lambda recipe: recipe.name)
def test_the_probe_is_at_least_as_strong(recipe: Recipe, net: nn.Sequential) -> None:
    net.eval()
    problem = make_problem(net)

    def loss(images: Tensor) -> Tensor:
        return -problem.goal.cross_entropy(problem.logits(images)).mean()

    probed = loss(recipe.probe(EPS).perturb(problem, 1.0))
    if not isinstance(recipe, NFGSM):  # which may leave the ball
        assert probed >= loss(recipe.perturb(problem, 1.0)) - 1e-3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SparseAT(k_min=5, k_max=4), "got k_min 5, k_max 4"),
        (
            lambda: SparseAT(passes=2, starts=3),
            "sparse_at needs starts of at most passes, 2, got 3",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(make: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        make()


def test_recipes_are_found_by_name() -> None:
    assert all(find_recipe(name).name == name for name in RECIPES)
    with pytest.raises(UnknownName, match="no recipe is called 'pgd'; did you mean pgd_at"):
        find_recipe("pgd")
