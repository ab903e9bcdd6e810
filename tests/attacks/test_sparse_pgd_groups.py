"""sparse-PGD with rows, columns and patches: groups by brute force, and the oracle."""

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, build, run_attack
from pinprick.attacks import SparsePGD
from pinprick.attacks.build import describe
from pinprick.attacks.sparse_pgd import Groups
from pinprick.errors import BadInput
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.report.words import settings_in_words

KINDS = ("row", "column", "patch")
SHAPE = (3, 8, 8)


def members(kind: str, side: int, height: int, width: int) -> list[Tensor]:
    """The pixels of every group, as masks of (height, width), in the order of groups."""
    tall, wide = min(side, height), min(side, width)
    if kind == "row":
        tall, wide = 1, width
    elif kind == "column":
        tall, wide = height, 1
    masks = []
    for top in range(height - tall + 1):
        for left in range(width - wide + 1):
            mask = torch.zeros(height, width, dtype=torch.bool)
            mask[top : top + tall, left : left + wide] = True
            masks.append(mask)
    return masks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("height", "width", "side"), [(4, 7, 3), (5, 2, 3), (3, 3, 1), (2, 2, 9)])
def test_groups_are_those_of_brute_force(kind: Any, height: int, width: int, side: int) -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(-9, 10, (2, 3, height, width), generator=generator).float()
    groups, masks = Groups("pixels", kind, side), members(kind, side, height, width)
    inside = torch.stack([values[:, :, mask].flatten(1) for mask in masks], dim=1)
    assert torch.equal(groups.total(values), inside.sum(dim=2))
    assert torch.equal(groups.largest(values), inside.amax(dim=2))
    zero = values.masked_fill(values < 6, 0)
    few = torch.stack([zero[:, :, mask].flatten(1) for mask in masks], dim=1)
    assert torch.equal(groups.changed(zero, torch.zeros_like(zero)), (few != 0).any(dim=2))
    chosen = torch.rand(2, len(masks), generator=generator) < 0.4
    union = torch.stack([(torch.stack(masks)[row]).any(dim=0) for row in chosen])
    assert torch.equal(groups.spread(chosen, values), union.unsqueeze(1).expand_as(values))


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_changed_pixels_lie_in_at_most_k_groups(
    curved: Classifier, images: Tensor, kind: Any, projected: bool
) -> None:
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    height, width = images.shape[2:]
    attack = SparsePGD(k=2, steps=8, group=kind, patch_size=2, projected=projected)
    result = run_attack(attack, curved, images, labels)
    masks = members(kind, 2, height, width)
    unions = torch.stack([first | second for first, second in combinations(masks, 2)])
    for changed in (result.adversarial != images).any(dim=1):
        assert changed.any()
        assert (changed <= unions).flatten(1).all(dim=1).any()


def can_be_fooled(model: Classifier, images: Tensor, kind: str, side: int, k: int) -> Tensor:
    """Which images of a linear model some k groups fool; groups must not overlap if k > 1."""
    size = images[0].numel()
    with torch.no_grad():
        logits, bias = model(images), model(torch.zeros_like(images[:1]))
        basis = torch.eye(size, dtype=images.dtype).view(size, *images.shape[1:])
        weight = (model(basis) - bias).T
    labels, possible = logits.argmax(dim=1), []
    masks = members(kind, side, *images.shape[2:])
    for image, own, row in zip(images.flatten(1), labels, logits, strict=True):
        slope = weight - weight[own]  # of the lead of every class over the label's
        gain = torch.where(slope > 0, slope * (1 - image), -slope * image)
        gain = gain.view(len(weight), *images.shape[1:])
        by_group = torch.stack([gain[:, :, mask].sum(dim=(1, 2)) for mask in masks], dim=1)
        closed = by_group.topk(k, dim=1).values.sum(dim=1)
        possible.append(bool((closed > row[own] - row).any()))
    return torch.tensor(possible)


@pytest.mark.parametrize("projected", [True, False])
@pytest.mark.parametrize(("kind", "side", "k"), [("row", 1, 2), ("column", 1, 2), ("patch", 4, 1)])
def test_fools_a_linear_model_where_the_best_groups_do(
    kind: Any, side: int, k: int, projected: bool
) -> None:
    model = exact_linear(4, SHAPE, seed=4)
    images = sure_images(model, exact_images(24, SHAPE, seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = SparsePGD(k=k, steps=60, group=kind, patch_size=side, projected=projected)
    fooled = run_attack(attack, model, images, labels).success
    possible = can_be_fooled(model, images, kind, side, k)
    assert 8 <= possible.sum() < 24
    assert not (fooled & ~possible).any()
    assert fooled.sum() >= 0.8 * possible.sum()


@pytest.mark.parametrize("kind", ["row", "column"])
def test_the_smallest_k_is_near_the_fewest_groups(kind: Any) -> None:
    model = exact_linear(4, SHAPE, seed=4)
    images = sure_images(model, exact_images(16, SHAPE, seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = SparsePGD(k="smallest", steps=40, group=kind)
    assert attack.facts().kind == "minimal"
    result = run_attack(attack, model, images, labels)
    needed = Groups("pixels", kind, 1).count(result.adversarial, images)
    fewest = torch.stack([~can_be_fooled(model, images, kind, 1, k) for k in range(1, 9)])
    ratio = needed / (fewest.sum(dim=0) + 1)
    assert result.success.all()
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.15


def test_a_patch_of_one_pixel_is_a_pixel(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    single = run_attack(SparsePGD(k=3, steps=10), curved, images, curved_labels)
    patch = SparsePGD(k=3, steps=10, group="patch", patch_size=1)
    grouped = run_attack(patch, curved, images, curved_labels)
    assert torch.equal(single.adversarial, grouped.adversarial)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_without_an_allowed_pixel_are_never_chosen(
    curved: Classifier, images: Tensor, curved_labels: Tensor, kind: Any
) -> None:
    allowed = torch.zeros(images.shape[2:], dtype=torch.bool)
    allowed[-1, -1] = True
    attack = SparsePGD(k=1, steps=10, group=kind, patch_size=2)
    result = run_attack(attack, curved, images, curved_labels, allowed=allowed)
    changed = (result.adversarial != images).any(dim=1)
    assert changed[:, -1, -1].all()
    assert (changed.flatten(1).sum(dim=1) == 1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group": "row", "unit": "elements"}, 'group="row".* needs unit="pixels"'),
        ({"group": "patch", "k": "smallest"}, 'group="patch" needs a number as k'),
        ({"group": "rows"}, "group"),
        ({"patch_size": 0}, "patch_size >= 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        build({"name": "sparse_pgd", **settings})


def test_facts_and_words_say_what_k_counts() -> None:
    assert SparsePGD().facts().k_counts is None
    assert SparsePGD(group="row").facts().k_counts == "rows"
    patches = SparsePGD(group="patch", patch_size=5, k=2)
    assert patches.facts().k_counts == "patches of 5 x 5 pixels"
    assert patches.facts().unit == "pixels"
    assert settings_in_words(patches) == "k=2, group=patch, patch_size=5"


def test_settings_of_groups_are_described_where_they_have_an_effect() -> None:
    assert not {"group", "patch_size"} & set(describe(SparsePGD()))
    patches = SparsePGD(group="patch", patch_size=5)
    assert describe(patches)["patch_size"] == 5
    assert build(describe(patches)) == patches
    assert build(describe(SparsePGD())) == SparsePGD()
