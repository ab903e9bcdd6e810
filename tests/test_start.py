"""Attacks by scores may begin at the result of one on another model; its passes stay apart."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import (
    ATTACKS,
    AttackResult,
    BadInput,
    Classifier,
    build,
    load_result,
    run_attack,
    save_result,
)
from pinprick.attacks import Greedy
from pinprick.intake import take_in, take_start
from pinprick.oracle import exact_images, exact_linear, sure_images

SHAPE = (3, 5, 5)
SPECS: dict[str, dict[str, Any]] = {
    "brusle": {"k": 8, "queries": 30},
    "onepixel": {"k": 8, "population": 6, "generations": 4},
    "sa_moo": {"k": 8, "queries": 30, "shrink": False},
    "sparse_rs": {"k": 8, "queries": 30},
}


@pytest.fixture(params=sorted(SPECS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model() -> Classifier:
    return exact_linear(4, SHAPE)


@pytest.fixture
def images(model: Classifier) -> Tensor:
    return sure_images(model, exact_images(5, SHAPE))


@pytest.fixture
def labels(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


@pytest.fixture
def found(model: Classifier, images: Tensor, labels: Tensor) -> AttackResult:
    result = run_attack(Greedy(max_pixels=8), model, images, labels)
    assert result.success.sum() >= 3
    return result


def test_the_cards_say_so() -> None:
    assert all(ATTACKS[name].card.starts for name in SPECS)
    assert not Greedy.card.starts


def test_a_start_that_fools_is_the_first_question(
    name: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    attack = build({"name": name, **SPECS[name]})
    begun = run_attack(attack, model, images, labels, start=found, trace=True)
    hit = found.success
    assert begun.success[hit].all()
    assert begun.trace is not None
    assert begun.trace.fewest_after(1)[hit].isfinite().all()
    assert torch.equal(begun.l0_pixels[hit], found.l0_pixels[hit])
    cold = run_attack(attack, model, images, labels)
    assert (begun.forwards[hit] <= cold.forwards[hit]).all()
    assert (begun.forwards[hit] < cold.forwards[hit]).any()


def test_passes_of_the_start_are_listed_apart(
    name: str,
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    found: AttackResult,
    tmp_path: Path,
) -> None:
    attack = build({"name": name, **SPECS[name]})
    begun = run_attack(attack, model, images, labels, start=found, batch_size=2)
    assert begun.start is not None
    assert torch.equal(begun.start.forwards, found.forwards)
    assert torch.equal(begun.start.backwards, found.backwards)
    assert (begun.backwards == 0).all()
    most = attack.facts().max_forwards
    assert most is not None
    assert (begun.forwards <= most).all()  # not a question more for the start
    assert begun.attack["started_from"] == {**found.attack, "model": found.model}
    save_result(begun, tmp_path / "begun.safetensors")
    back = load_result(tmp_path / "begun.safetensors")
    assert back.start is not None
    assert torch.equal(back.start.forwards, found.forwards)
    cut = begun[torch.tensor([3])]
    assert cut.start is not None
    assert cut.start.forwards.tolist() == [int(found.forwards[3])]
    assert run_attack(attack, model, images, labels).start is None


def test_each_image_begins_at_its_own_start(
    name: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    attack = build({"name": name, **SPECS[name]})
    together = run_attack(attack, model, images, labels, start=found)
    for row in range(len(images)):
        only = torch.tensor([row])
        alone = run_attack(attack, model, images[only], labels[only], start=found[only], ids=only)
        assert torch.equal(alone.adversarial[0], together.adversarial[row])
        assert torch.equal(alone.forwards[0], together.forwards[row])


def test_a_start_without_a_change_changes_nothing(
    name: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    attack = build({"name": name, **SPECS[name]})
    idle = run_attack(Greedy(), model, images, labels, max_forwards=0)
    assert (idle.l0_elements == 0).all()
    begun = run_attack(attack, model, images, labels, start=idle)
    cold = run_attack(attack, model, images, labels)
    assert torch.equal(begun.adversarial, cold.adversarial)
    assert torch.equal(begun.forwards, cold.forwards)


def test_a_start_with_more_pixels_than_k_is_cut_down(
    name: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    attack = build({"name": name, **SPECS[name], "k": 2})
    begun = run_attack(attack, model, images, labels, start=found)
    assert (begun.l0_pixels <= 2).all()


def test_the_mask_is_kept(
    name: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    allowed = exact_images(5, SHAPE, seed=9) > 0.5
    attack = build({"name": name, **SPECS[name]})
    begun = run_attack(attack, model, images, labels, start=found, allowed=allowed)
    assert not ((begun.adversarial != images) & ~allowed).any()


def test_images_of_the_callers_own_are_a_start_without_passes(
    name: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    attack = build({"name": name, **SPECS[name]})
    given = run_attack(attack, model, images, labels, start=found.adversarial.float())
    begun = run_attack(attack, model, images, labels, start=found)
    torch.testing.assert_close(given.adversarial, begun.adversarial, rtol=0, atol=1e-6)
    assert torch.equal(given.forwards, begun.forwards)
    assert given.start is not None
    assert (given.start.forwards == 0).all()
    assert given.attack["started_from"] == {"name": "given images"}


@pytest.mark.parametrize("of", ["brusle", "sa_moo", "sparse_rs"])
def test_the_smallest_k_is_sought_from_there(
    of: str, model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    spec = {**SPECS[of], "name": of, "k": "smallest", "queries": 12, "rounds": 3}
    begun = run_attack(build(spec), model, images, labels, start=found)
    cold = run_attack(build(spec), model, images, labels)
    hit = found.success
    assert (begun.needed_pixels[hit] <= found.needed_pixels[hit]).all()
    assert begun.needed_pixels[hit].mean() < cold.needed_pixels[hit].mean()


def test_on_another_model_a_start_saves_queries(images: Tensor, labels: Tensor) -> None:
    """A neighbour of the model, with a few of its weights changed."""
    near, victim = exact_linear(4, SHAPE), exact_linear(4, SHAPE)
    with torch.no_grad():
        weight = victim.net[1].weight  # type: ignore[index]
        weight[:, ::5] *= 0.5
        truth = victim(images).argmax(dim=1)
    start = run_attack(Greedy(), near, images, truth)
    attack = build({"name": "sparse_rs", "k": 10, "queries": 200})
    begun = run_attack(attack, victim, images, truth, start=start)
    cold = run_attack(attack, victim, images, truth)
    assert begun.success.sum() >= cold.success.sum()
    assert begun.forwards.sum() < cold.forwards.sum() / 2


def test_what_cannot_be_a_start_is_said(
    model: Classifier, images: Tensor, labels: Tensor, found: AttackResult
) -> None:
    attack = build({"name": "sparse_rs", **SPECS["sparse_rs"]})
    with pytest.raises(BadInput, match=r"start must be the result of an attack, or .* got 'sparse"):
        take_start(take_in(images, labels, None, None, None, None, None, None), "sparse_rs")
    with pytest.raises(BadInput, match=r"it has the shape \(4, 3, 5, 5\), the images have \(5, 3"):
        run_attack(attack, model, images, labels, start=images[:4])
    with pytest.raises(BadInput, match=r"start must hold images in \[0, 1\], these run from"):
        run_attack(attack, model, images, labels, start=2 * images)
    with pytest.raises(BadInput, match=r"start must hold images in \[0, 1\]"):
        run_attack(attack, model, images, labels, start=images * torch.nan)
    with pytest.raises(BadInput, match=r"it has the shape \(5, 3, 5, 5\), the images have \(4, 3"):
        run_attack(attack, model, images[:4], labels[:4], start=found)
    with pytest.raises(BadInput, match="the same images, in order; image 0 differs"):
        run_attack(attack, model, images.flip(0), labels.flip(0), start=found)
    with pytest.raises(BadInput, match="greedy cannot begin at the result of another attack"):
        run_attack(Greedy(), model, images, labels, start=found)
