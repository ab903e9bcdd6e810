"""WI-FGSM without one departure: ``plans/wifgsm_departures.py`` leaves out what it says."""

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pinprick import Classifier, build, run_attack
from pinprick.attacks import WIFGSM

FILE = Path(__file__).parents[2] / "plans/wifgsm_departures.py"


def attack(name: str, **settings: Any) -> WIFGSM:
    found = build({"name": f"{FILE}:{name}", **settings})
    assert isinstance(found, WIFGSM)
    return found


@pytest.fixture(scope="module")
def case() -> tuple[Classifier, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 16), nn.Tanh(), nn.Linear(16, 4))
    model, images = Classifier(net), torch.rand(6, 3, 4, 4)
    return model, images, model(images).argmax(dim=1)


def test_without_the_scale_rule_a_steeper_loss_takes_longer_steps() -> None:
    own, force = attack("WithoutScale"), torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(own._scale(10 * force), 10 * own._scale(force))
    torch.testing.assert_close(WIFGSM()._scale(10 * force), WIFGSM()._scale(force))


def test_without_equal_sizes_a_gate_acts_as_far_as_the_start_went() -> None:
    own = attack("WithoutEqualSizes")
    change = torch.tensor([4.0, -1.0, 0.0]).view(1, 3, 1, 1) / 255
    sides = own._sides(change)
    torch.testing.assert_close(sides.flatten(), torch.tensor([1.0, -0.25, 0.0]))
    gates, images = torch.full((1, 3, 1, 1), 0.2), torch.full((1, 3, 1, 1), 0.5)
    left, soft, hard = own._apply(gates, images, sides)
    torch.testing.assert_close(soft.flatten(), torch.tensor([0.7, 0.45, 0.5]))
    assert hard.flatten().tolist() == [1.0, 0.0, 0.5]
    torch.testing.assert_close(left.flatten(), torch.tensor([0.2, 0.2, 0.0]))


def test_without_the_bound_the_image_leaves_the_box() -> None:
    gates, images = torch.full((1, 1, 1, 1), 2.0), torch.full((1, 1, 1, 1), 0.5)
    sides = torch.ones_like(images)
    left, soft, hard = attack("WithoutBound")._apply(gates, images, sides)
    assert (left.item(), soft.item(), hard.item()) == (2, 2.5, 1)
    assert WIFGSM()._apply(gates, images, sides)[1].item() == 1


def test_without_the_second_try_no_dense_attack_is_run(
    case: tuple[Classifier, torch.Tensor, torch.Tensor],
) -> None:
    once = run_attack(attack("WithoutSecondTry", steps=1, tau=5.0), *case)
    twice = run_attack(WIFGSM(steps=1, tau=5.0), *case)
    assert not once.success.any()
    assert (once.forwards == 4).all()
    assert (once.backwards == 1).all()
    assert (twice.backwards > 2).all()


@pytest.mark.parametrize("name", ["WithoutBound", "WithoutSparsest"])
def test_what_is_returned_is_valid_and_no_sparser_than_ours(
    name: str, case: tuple[Classifier, torch.Tensor, torch.Tensor]
) -> None:
    left_out, ours = run_attack(attack(name), *case), run_attack(WIFGSM(), *case)
    assert ((left_out.adversarial >= 0) & (left_out.adversarial <= 1)).all()
    assert left_out.needed_elements.mean() >= ours.needed_elements.mean()


def test_without_the_sparsest_the_last_image_at_the_edge_is_returned(
    case: tuple[Classifier, torch.Tensor, torch.Tensor],
) -> None:
    model, images, labels = case
    result = run_attack(attack("WithoutSparsest", tau=0.01), model, images, labels)
    assert result.success.any()
    changed = result.adversarial != images
    assert set(result.adversarial[changed].tolist()) <= {0.0, 1.0}


def test_every_class_in_the_file_is_in_the_plan() -> None:
    text = (FILE.parent / "wifgsm.toml").read_text(encoding="utf-8")
    names = [name for name in runpy.run_path(str(FILE)) if name.startswith("Without")]
    assert len(names) == 5
    assert all(f"plans/wifgsm_departures.py:{name}" in text for name in names)
