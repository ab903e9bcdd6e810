"""The oracle against brute force, and every sparse attack against the oracle."""

import math
import sys
from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor, nn

from pinprick import (
    ATTACKS,
    BadInput,
    Classifier,
    Goal,
    MissingExtra,
    least_likely,
    run_attack,
)
from pinprick.attacks.build import build_quick
from pinprick.oracle import (
    exact_images,
    exact_linear,
    fewest_elements,
    fewest_for_target,
    fewest_pixels,
    nearest_l2,
    sure_images,
)
from pinprick.selftest import FACTORS, ROOMS, give_room, own_box

TINY = (2, 2, 2)  # eight elements on four pixels: few enough to try everything
SMALL = (3, 4, 4)  # 48 elements: as many as the integer program takes
SPARSE = sorted(  # those with trained weights take the model alone that these are for
    name for name, cls in ATTACKS.items() if cls.card.norm == "l0" and cls().facts().inputs is None
)


def ends(image: Tensor, eps: float | None) -> tuple[Tensor, Tensor]:
    reach = 1.0 if eps is None else eps
    return (image - reach).clamp(min=0), (image + reach).clamp(max=1)


def fewest_by_trying(
    model: Classifier, image: Tensor, goal: Goal, allowed: Tensor, eps: float | None
) -> tuple[float, float]:
    """Fewest elements and pixels over all ways to leave each element or push it to an end."""
    low, high = ends(image, eps)
    ways = torch.tensor(list(product((0, 1, 2), repeat=image.numel()))).view(-1, *image.shape)
    candidates = torch.where(ways == 1, low, torch.where(ways == 2, high, image))
    candidates = torch.where(allowed, candidates, image)
    with torch.no_grad():
        met = goal[torch.zeros(len(ways), dtype=torch.long)].met(model(candidates))
    changed = candidates[met] != image
    elements = changed.flatten(1).sum(dim=1).tolist()
    pixels = changed.any(dim=1).flatten(1).sum(dim=1).tolist()
    return min(elements, default=float("inf")), min(pixels, default=float("inf"))


@pytest.mark.parametrize(("classes", "targeted"), [(2, False), (4, False), (2, True)])
@pytest.mark.parametrize("eps", [None, 1 / 4])
@pytest.mark.parametrize("masked", [False, True])
def test_sorting_finds_what_trying_everything_finds(
    classes: int, eps: float | None, masked: bool, targeted: bool
) -> None:
    model, images = exact_linear(classes, TINY, seed=3), exact_images(6, TINY)
    allowed = torch.ones_like(images, dtype=torch.bool)
    if masked:
        allowed = exact_images(6, TINY, seed=5) > 0.4
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    goal = Goal(labels, 1 - labels if targeted else None)
    elements = fewest_elements(model, images, goal, allowed=allowed, eps=eps)
    pixels = fewest_pixels(model, images, goal, allowed=allowed, eps=eps)
    for row in range(6):
        tried = fewest_by_trying(model, images[row], goal[torch.tensor([row])], allowed[row], eps)
        assert (elements[row].item(), pixels[row].item()) == tried


def two_scores(first: float, second: float) -> Classifier:
    """Two classes and two elements; the scores at 0 are 1/2 and 0, an element at 1 adds to one."""
    layer = nn.Linear(2, 2).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[0.0, 0.0], [first, second]]))
        layer.bias.copy_(torch.tensor([0.5, 0.0]))
    return Classifier(nn.Sequential(nn.Flatten(), layer))


def test_a_tie_goes_to_the_lower_class() -> None:
    image = torch.zeros(1, 1, 1, 2).double()
    goal = Goal(torch.tensor([0]))
    assert fewest_elements(two_scores(0.5, 0.25), image, goal).item() == 2  # 1/2 is a tie
    assert fewest_elements(two_scores(0.51, 0.25), image, goal).item() == 1

    full = torch.ones(1, 1, 1, 2).double()
    back = Goal(torch.tensor([1]))
    assert fewest_elements(two_scores(0.5, 0.25), full, back).item() == 1  # down to 1/2 at most


def test_what_cannot_be_fooled_needs_infinitely_many() -> None:
    model, images = exact_linear(3, TINY), exact_images(2, TINY)
    with torch.no_grad():
        goal = Goal(model(images).argmax(dim=1))
    shut = torch.zeros_like(images, dtype=torch.bool)
    assert fewest_elements(model, images, goal, allowed=shut).tolist() == [float("inf")] * 2
    assert fewest_pixels(model, images, goal, allowed=shut).tolist() == [float("inf")] * 2


def test_what_is_fooled_already_needs_none() -> None:
    model, images = exact_linear(3, TINY), exact_images(2, TINY)
    with torch.no_grad():
        wrong = model(images).argmin(dim=1)
    assert fewest_elements(model, images, Goal(wrong)).tolist() == [0, 0]
    assert nearest_l2(model, images, Goal(wrong)).tolist() == [0, 0]


def fewest_by_linear_programs(model: Classifier, image: Tensor, target: int) -> tuple[float, float]:
    """Fewest elements and pixels over all subsets, each asked whether it is enough."""
    layer = model.net[1]  # type: ignore[index]
    weight = layer.weight.detach().numpy()
    flat = image.flatten().numpy()
    steer = np.delete(weight, target, axis=0) - weight[target]
    logits = weight @ flat
    gap = logits[target] - np.delete(logits, target) - 1e-4
    elements = pixels = float("inf")
    for subset in product((False, True), repeat=image.numel()):
        bounds = [(-x, 1 - x) if free else (0.0, 0.0) for x, free in zip(flat, subset, strict=True)]
        if linprog(np.zeros(len(flat)), A_ub=steer, b_ub=gap, bounds=bounds).status == 0:
            elements = min(elements, sum(subset))
            places = np.array(subset).reshape(image.shape).any(axis=0)
            pixels = min(pixels, int(places.sum()))
    return elements, pixels


@pytest.mark.slow
def test_the_integer_program_finds_what_all_subsets_find() -> None:
    model, images = exact_linear(3, TINY, seed=2), exact_images(3, TINY)
    with torch.no_grad():
        logits = model(images)
    goal = Goal(logits.argmax(dim=1), least_likely(logits, logits.argmax(dim=1)))
    elements = fewest_for_target(model, images, goal)
    pixels = fewest_for_target(model, images, goal, unit="pixels")
    for row in range(3):
        tried = fewest_by_linear_programs(model, images[row], int(logits[row].argmin()))
        assert (elements[row].item(), pixels[row].item()) == tried
    assert elements.isfinite().any()


def test_the_integer_program_agrees_with_sorting_on_two_classes() -> None:
    model = exact_linear(2, SMALL)
    images = sure_images(model, exact_images(6, SMALL))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    goal = Goal(labels, 1 - labels)
    allowed = exact_images(6, SMALL, seed=4) > 0.3
    for eps in (None, 1 / 8):
        by_program = fewest_for_target(model, images, goal, allowed=allowed, eps=eps)
        assert torch.equal(
            by_program, fewest_elements(model, images, goal, allowed=allowed, eps=eps)
        )


def test_the_integer_program_says_what_cannot_be_done() -> None:
    model, images = exact_linear(3, TINY), exact_images(1, TINY)
    with torch.no_grad():
        logits = model(images)
    goal = Goal(logits.argmax(dim=1), logits.argmin(dim=1))
    assert fewest_for_target(model, images, goal, eps=1e-4).tolist() == [float("inf")]


def test_the_nearest_boundary_is_where_the_class_changes() -> None:
    model = exact_linear(4, SMALL)
    images = exact_images(5, SMALL)
    with torch.no_grad():
        goal = Goal(model(images).argmax(dim=1))
    distance = nearest_l2(model, images, goal)
    weight = model.net[1].weight.detach()  # type: ignore[index]
    towards = weight.unsqueeze(0) - weight[goal.labels].unsqueeze(1)
    rays = (towards / towards.norm(dim=2, keepdim=True).clamp(min=1e-9)).view(5, 4, *SMALL)

    def classes_at(share: float) -> Tensor:
        ends = images.unsqueeze(1) + share * distance.view(5, 1, 1, 1, 1) * rays
        with torch.no_grad():
            return model(ends.flatten(0, 1)).argmax(dim=1).view(5, 4)

    assert (classes_at(0.999) == goal.labels.unsqueeze(1)).all()
    assert (classes_at(1.001) != goal.labels.unsqueeze(1)).any(dim=1).all()


def test_a_model_that_is_not_linear_is_refused() -> None:
    first = nn.Linear(8, 3)
    with torch.no_grad():
        first.weight.fill_(1.0)
        first.bias.fill_(-1.0)
    net = nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Linear(3, 2)).double()
    model, images = Classifier(net, name="bent"), exact_images(2, TINY)
    with pytest.raises(BadInput, match="linear models only; bent is not linear"):
        fewest_elements(model, images, Goal(torch.tensor([0, 0])))


def test_the_oracle_says_which_way_leads_to_a_target() -> None:
    model, images = exact_linear(3, TINY), exact_images(2, TINY)
    goal = Goal(torch.tensor([0, 0]), torch.tensor([1, 2]))
    with pytest.raises(BadInput, match="use fewest_for_target"):
        fewest_elements(model, images, goal)
    with pytest.raises(BadInput, match="needs a goal with targets"):
        fewest_for_target(model, images, Goal(goal.labels))
    large = exact_images(2, (3, 6, 5))
    with pytest.raises(BadInput, match="at most 48 elements, these have 90"):
        fewest_for_target(exact_linear(3, (3, 6, 5)), large, goal)


def test_the_integer_program_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    goal = Goal(torch.tensor([0, 0]), torch.tensor([1, 2]))
    with pytest.raises(MissingExtra, match=r"needs the package scipy; .* 'pinprick\[bounds\]'"):
        fewest_for_target(exact_linear(3, TINY), exact_images(2, TINY), goal)


def test_mean_and_std_are_part_of_the_model() -> None:
    plain = exact_linear(3, TINY)
    images = exact_images(4, TINY)
    shifted = Classifier(plain.net, mean=(0.5, 0.25), std=(0.5, 0.5))
    with torch.no_grad():
        goal = Goal(shifted(images).argmax(dim=1))
    fewest = fewest_elements(shifted, images, goal)
    anywhere = torch.ones(TINY, dtype=torch.bool)
    for row in range(4):
        only = goal[torch.tensor([row])]
        assert fewest[row].item() == fewest_by_trying(shifted, images[row], only, anywhere, None)[0]


def test_every_sparse_attack_has_its_factor_or_its_room_on_record() -> None:
    minimal = {name for name in SPARSE if ATTACKS[name].card.kind == "minimal"}
    assert set(FACTORS) == minimal
    assert set(ROOMS) == set(SPARSE) - minimal


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize("classes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_no_sparse_attack_beats_the_optimum_nor_strays_far_from_it(name: str, classes: int) -> None:
    shape = (3, 8, 8)
    model = exact_linear(classes, shape, seed=4)
    images = sure_images(model, exact_images(12, shape, seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build_quick(name)
    fewest = fewest_pixels if attack.facts().unit == "pixels" else fewest_elements
    optimum = fewest(model, images, Goal(labels), eps=own_box(attack))
    attack = give_room(attack, optimum) if name in ROOMS else attack
    result = run_attack(attack, model, images, labels)
    needed = result.needed_pixels if attack.facts().unit == "pixels" else result.needed_elements
    assert (needed >= optimum).all()
    if name in ROOMS:
        assert result.fooling_rate >= ROOMS[name].leave
    else:
        assert result.success.all() or math.isinf(FACTORS[name].leave)
        assert (needed / optimum).mean() <= FACTORS[name].leave


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SPARSE if ATTACKS[name].card.targeted])
def test_a_targeted_sparse_attack_is_held_to_the_integer_program(name: str) -> None:
    model = exact_linear(4, SMALL, seed=4)
    images = sure_images(model, exact_images(8, SMALL, seed=6))
    with torch.no_grad():
        logits = model(images)
    labels = logits.argmax(dim=1)
    targets = least_likely(logits, labels)
    goal = Goal(labels, targets)
    attack = build_quick(name)
    unit = attack.facts().unit or "elements"
    optimum = fewest_for_target(model, images, goal, unit=unit, eps=own_box(attack))
    attack = give_room(attack, optimum) if name in ROOMS else attack
    of_target = torch.stack([images[labels == target][0] for target in targets])
    start = of_target if attack.facts().access == "labels" else None  # noise may miss the target
    result = run_attack(attack, model, images, labels, targets=targets, start=start)
    needed = result.needed_pixels if unit == "pixels" else result.needed_elements
    assert (needed >= optimum).all()
    if name in ROOMS:
        assert result.fooling_rate >= ROOMS[name].reach
    else:
        assert result.success.all() or math.isinf(FACTORS[name].reach)
        assert (needed / optimum).mean() <= FACTORS[name].reach
