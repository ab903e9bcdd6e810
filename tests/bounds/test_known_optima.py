"""Networks with proved optima: the files are sound, and Pinprick comes as near as it should."""

import dataclasses
from pathlib import Path

import pytest
import torch

from bounds.small_networks import small_images, small_network, wasteful
from pinprick import AttackResult, BadInput, Classifier, UnknownName, run_attack
from pinprick.attacks import Pinprick
from pinprick.bounds.exact import prove
from pinprick.bounds.known_optima import (
    FOLDER,
    KnownOptima,
    known_names,
    known_optima,
    save_known,
)
from pinprick.bounds.proof import Proof, Status
from pinprick.metrics.unit import Unit

NAMES = known_names()
WIDTHS = [8, 4, 3]


def attacked(known: KnownOptima) -> AttackResult:
    attack = Pinprick(unit=known.unit)
    labels, targets = known.goal.labels, known.goal.targets
    return run_attack(attack, known.model, known.images, labels, targets=targets)


def ratios(known: KnownOptima) -> torch.Tensor:
    """Units that Pinprick needs, over the fewest."""
    result = attacked(known)
    needed = result.needed_pixels if known.unit == "pixels" else result.needed_elements
    ratio: torch.Tensor = needed / known.fewest
    assert bool((ratio >= 1).all()), "a proved optimum was beaten"
    return ratio


def test_all_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 200_000


def test_both_goals_and_both_units_are_there() -> None:
    assert {name.split("/")[1] for name in NAMES} == {"untargeted", "targeted"}
    assert {name.split("/")[2] for name in NAMES} == {"elements", "pixels"}


@pytest.mark.parametrize("name", NAMES)
def test_every_stored_image_shows_its_optimum(name: str) -> None:
    known = known_optima(name)  # which judges them
    assert len(known.images) >= 12
    assert known.fewest.min() >= 1


def test_pinprick_finds_proved_optima() -> None:
    ratio = ratios(known_optima("digits/untargeted/elements").first(8))
    assert (ratio == 1).double().mean() >= 0.95


@pytest.mark.slow
def test_pinprick_is_optimal_on_nearly_all_of_them() -> None:
    ratio = torch.cat([ratios(known_optima(name)) for name in NAMES])
    assert (ratio == 1).double().mean() >= 0.95
    assert ratio.mean() <= 1.02


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "untargeted" in name])
def test_stored_optima_are_proved_again(name: str) -> None:
    known = known_optima(name).first(6)
    with torch.no_grad():
        logits = known.model(known.adversarial)
    start = run_attack(Pinprick(), known.model, known.images, known.goal.labels, max_forwards=0)
    result = dataclasses.replace(start, adversarial=known.adversarial, adversarial_logits=logits)
    proof = prove(result, known.model, unit=known.unit)
    assert set(proof.status) == {Status.OPTIMAL}
    assert torch.equal(proof.lower, known.fewest)


def saved_small(folder: Path) -> Path:
    net = small_network(*WIDTHS).half().float()
    images = (small_images(3, (2, 2, 2)) * 255).round() / 255
    result = wasteful(net, images)
    proofs: dict[tuple[str, Unit], Proof] = {
        ("untargeted", "pixels"): prove(result, net, unit="pixels")
    }
    save_known(folder / "small.safetensors", net, WIDTHS, proofs, {})
    return folder


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    folder = saved_small(tmp_path)
    assert known_names(folder) == ["small/untargeted/pixels"]
    known = known_optima("small/untargeted/pixels", folder)
    assert len(known.images) == 3
    changed = (known.adversarial != known.images).any(dim=1).flatten(1).sum(dim=1)
    assert torch.equal(changed.double(), known.fewest)


def test_a_proof_with_gaps_is_not_saved(tmp_path: Path) -> None:
    net = small_network(*WIDTHS)
    proof = prove(wasteful(net, small_images(2, (2, 2, 2))), net)
    gap = dataclasses.replace(proof, lower=proof.lower - 1)
    with pytest.raises(BadInput, match="has gaps"):
        save_known(tmp_path / "x.safetensors", net, WIDTHS, {("untargeted", "elements"): gap}, {})


def test_an_optimum_that_its_image_does_not_show_is_not_loaded(tmp_path: Path) -> None:
    net = small_network(*WIDTHS).half().float()
    images = (small_images(2, (2, 2, 2)) * 255).round() / 255
    proof = prove(wasteful(net, images), net)
    wrong = dataclasses.replace(proof, lower=proof.lower - 1, upper=proof.upper - 1)
    save_known(tmp_path / "x.safetensors", net, WIDTHS, {("untargeted", "elements"): wrong}, {})
    with pytest.raises(BadInput, match="does not show the optimum that is claimed"):
        known_optima("x/untargeted/elements", tmp_path)


def test_an_unknown_case_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownName, match="did you mean digits/untargeted/elements"):
        known_optima("digits/untargeted/element")


def test_the_networks_are_classifiers_that_get_their_images_right() -> None:
    for name in NAMES:
        known = known_optima(name)
        assert isinstance(known.model, Classifier)
        with torch.no_grad():
            assert torch.equal(known.model(known.images).argmax(dim=1), known.goal.labels)
