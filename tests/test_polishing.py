"""Polishing shortens what any attack gave, and spoils nothing."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from pinprick import (
    AttackResult,
    BadInput,
    Classifier,
    Goal,
    build,
    load_result,
    polish,
    run_attack,
    save_result,
    score_model,
)
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images
from pinprick.parts.units import Units

Unit = Literal["elements", "pixels"]


def dense(model: Classifier, images: Tensor, labels: Tensor, name: str = "ifgsm") -> AttackResult:
    """An attack that changes everything, of which one image is failed and one is skipped."""
    strong = build({"name": name, "eps": 0.3, "step_size": 0.05})
    labels = labels.clone()
    labels[1] = (labels[1] + 1) % 4  # wrong to begin with
    result = run_attack(strong, model, images, labels, batch_size=4)
    assert result.success.all()
    assert result.skipped.tolist() == [False, True, False, False, False, False]
    gave_up = result.adversarial.clone()
    gave_up[4] = images[4] + 1 / 256
    with torch.no_grad():
        logits, rounded = model(gave_up), model((gave_up * 255).round() / 255)
    result = replace(result, adversarial=gave_up, adversarial_logits=logits, rounded_logits=rounded)
    assert result.success.tolist() == [True, True, True, True, False, True]
    return result


WORKED = torch.tensor([0, 2, 3, 5])


@pytest.mark.parametrize("unit", ["elements", "pixels"])
@pytest.mark.parametrize("name", ["ifgsm", "pgd"])
def test_shortens_a_dense_attack_until_nothing_can_be_spared(
    curved: Classifier, images: Tensor, curved_labels: Tensor, name: str, unit: Unit
) -> None:
    result, units = dense(curved, images, curved_labels, name), Units(unit)
    shorter = polish(result, curved, unit=unit)
    assert torch.equal(shorter.success, result.success)
    before, after = (units.count(r.adversarial, images)[WORKED] for r in (result, shorter))
    assert (after < before / 2).all()
    kept = shorter.adversarial == result.adversarial
    assert (kept | (shorter.adversarial == images)).all()
    for row in WORKED.tolist():
        adv, image = shorter.adversarial[row], images[row]
        places = units.changed(adv[None], image[None])[0].nonzero()
        total = units.total(image[None]).shape[1]
        one = torch.zeros(len(places), total, dtype=torch.bool).scatter(1, places, True)
        spared = torch.where(units.spread(one, adv.expand(len(places), -1, -1, -1)), image, adv)
        with torch.no_grad():
            assert (curved(spared).argmax(dim=1) == result.goal.labels[row]).all()


def test_what_failed_or_needed_nothing_stays_as_it_is(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = dense(curved, images, curved_labels)
    shorter = polish(result, curved)
    for row in (1, 4):
        assert torch.equal(shorter.adversarial[row], result.adversarial[row])
        assert shorter.forwards[row] == result.forwards[row]
        assert shorter.backwards[row] == result.backwards[row]


def test_its_cost_is_added_and_it_is_written_down(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = dense(curved, images, curved_labels)
    shorter = polish(result, curved, unit="pixels")
    spent = shorter.forwards - result.forwards
    assert (spent[WORKED] > 0).all()
    assert (spent >= shorter.backwards - result.backwards).all()
    assert (shorter.backwards > result.backwards)[WORKED].all()
    assert shorter.seconds > result.seconds
    assert shorter.attack == {**result.attack, "polished": "pixels"}
    assert (shorter.model, shorter.seed, shorter.remarks) == ("curved", 0, result.remarks)
    with torch.no_grad():
        torch.testing.assert_close(shorter.adversarial_logits, curved(shorter.adversarial))
        rounded = (shorter.adversarial * 255).round() / 255
        torch.testing.assert_close(shorter.rounded_logits, curved(rounded))


def test_goes_no_further_than_it_may(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = dense(curved, images, curved_labels)
    last = result.needed_elements
    for most in (1, 2, 5, 11, 16, 40):
        shorter = polish(result, curved, max_forwards=most)
        spent = shorter.forwards - result.forwards
        assert (spent <= most).all()
        assert (spent[WORKED] > 0).all()
        assert (shorter.needed_elements <= last).all()
        last = shorter.needed_elements
    assert (last[WORKED] < result.needed_elements[WORKED]).all()
    with pytest.raises(BadInput, match=r"^polish needs max_forwards >= 1, got 0$"):
        polish(result, curved, max_forwards=0)


def test_counts_nothing_but_elements_and_pixels(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = dense(curved, images, curved_labels)
    unchecked: Any = inspect.unwrap(polish)  # the check of types that runs with the tests is off
    line = r"^unit must be one of 'elements', 'pixels', got 'places'$"
    with pytest.raises(BadInput, match=line):
        unchecked(result, curved, unit="places")


def test_from_all_the_corners_a_linear_model_leads_to_the_optimum() -> None:
    model = exact_linear(2, (3, 6, 5))
    images = sure_images(model, exact_images(8, (3, 6, 5)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(
        build({"name": "ifgsm", "eps": 1, "steps": 1, "step_size": 1}), model, images, labels
    )
    assert result.success.all()
    for unit, fewest in (("elements", fewest_elements), ("pixels", fewest_pixels)):
        shorter = polish(result, model, unit="elements" if unit == "elements" else "pixels")
        assert torch.equal(getattr(shorter, f"needed_{unit}"), fewest(model, images, Goal(labels)))


def test_a_target_stays_reached(curved: Classifier, images: Tensor, curved_labels: Tensor) -> None:
    targets = (curved_labels + 1) % 4
    attack = build({"name": "ifgsm", "eps": 0.4, "step_size": 0.05})
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    assert result.success.sum() >= 3
    shorter = polish(result, curved)
    assert torch.equal(shorter.success, result.success)
    assert (shorter.l0_elements < result.l0_elements)[result.success].all()
    reached = shorter.adversarial_logits.argmax(dim=1) == targets
    assert torch.equal(reached, result.success)


def test_values_on_the_grid_and_a_mask_are_kept(curved: Classifier, images: Tensor) -> None:
    images = (images * 255).round() / 255
    allowed = torch.ones(1, 3, 6, 5, dtype=torch.bool)
    allowed[:, 1] = False
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    attack = build({"name": "pinprick", "values": "8bit", "max_forwards": 20})
    result = run_attack(attack, curved, images, labels, allowed=allowed)
    shorter = polish(result, curved)
    assert torch.equal((shorter.adversarial * 255).round() / 255, shorter.adversarial)
    assert torch.equal(shorter.adversarial[:, 1], images[:, 1])


def test_a_result_may_have_been_saved_in_between(
    curved: Classifier, images: Tensor, curved_labels: Tensor, tmp_path: Path
) -> None:
    result = dense(curved, images, curved_labels)
    save_result(result, tmp_path / "dense.safetensors")
    shorter = polish(load_result(tmp_path / "dense.safetensors"), curved)
    assert torch.equal(shorter.adversarial, polish(result, curved).adversarial)
    save_result(shorter, tmp_path / "polished.safetensors")
    again = load_result(tmp_path / "polished.safetensors")
    assert again.attack["polished"] == "elements"
    assert torch.equal(again.adversarial, shorter.adversarial)


def test_polishing_twice_finds_nothing_more(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    once = polish(dense(curved, images, curved_labels), curved)
    assert torch.equal(polish(once, curved).adversarial, once.adversarial)


def test_an_empty_result_and_one_without_a_success_are_no_obstacle(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = dense(curved, images, curved_labels)
    assert len(polish(result[torch.tensor([], dtype=torch.long)], curved)) == 0
    failed = polish(result[torch.tensor([4])], curved)
    assert torch.equal(failed.adversarial, result.adversarial[4:5])
    assert failed.attack["polished"] == "elements"


def test_the_model_and_the_result_are_left_alone(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result = dense(curved, images, curved_labels)
    before = result.adversarial.clone()
    with torch.inference_mode():
        polish(result, curved, max_forwards=3)
    assert torch.equal(result.adversarial, before)
    assert isinstance(curved.net, torch.nn.Module)
    assert all(parameter.requires_grad for parameter in curved.net.parameters())


def test_says_of_how_many_units_it_is_not_sure(
    curved: Classifier, images: Tensor, curved_labels: Tensor, tmp_path: Path
) -> None:
    result = dense(curved, images, curved_labels)
    assert result.unsettled is None
    whole = polish(result, curved)
    assert whole.unsettled is not None
    assert whole.unsettled.tolist() == [0, -1, 0, 0, -1, 0]
    short = polish(result, curved, max_forwards=3)
    assert short.unsettled is not None
    assert torch.equal(short.unsettled[WORKED], short.l0_elements[WORKED])  # no single one tried
    cut = short[WORKED].unsettled
    assert cut is not None
    assert torch.equal(cut, short.unsettled[WORKED])
    save_result(short, tmp_path / "short.safetensors")
    again = load_result(tmp_path / "short.safetensors").unsettled
    assert again is not None
    assert torch.equal(again, short.unsettled)


@pytest.mark.parametrize("access", ["scores", "labels"])
def test_a_model_without_gradients_is_asked_more_often(
    curved: Classifier, images: Tensor, curved_labels: Tensor, access: Literal["scores", "labels"]
) -> None:
    result = dense(curved, images, curved_labels)
    blind = Classifier(curved.net, access=access)
    shorter = polish(result, blind, unit="pixels")
    assert torch.equal(shorter.backwards, result.backwards)
    assert shorter.unsettled is not None
    assert (shorter.unsettled[WORKED] == 0).all()
    assert (shorter.l0_pixels < result.l0_pixels)[WORKED].all()


def test_a_service_that_fails_spoils_nothing(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    result, calls = dense(curved, images, curved_labels), 0

    def flaky(some: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise ConnectionError("away")
        return curved(some.double()).float()

    shorter = polish(result, score_model(flaky, name="flaky", retries=0), unit="pixels")
    assert torch.equal(shorter.success, result.success)
    assert shorter.unsettled is not None
    assert (shorter.unsettled[WORKED] > 0).any()
    assert (shorter.l0_pixels < result.l0_pixels).any()  # what was judged before is remembered
    assert shorter.sent is not None
    assert shorter.sent["failures"] >= 1
