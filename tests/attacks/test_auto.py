"""Auto is the worst case over its attacks, and says where scores beat gradients."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pinprick import (
    AttackResult,
    BadInput,
    Classifier,
    Problem,
    build,
    check_result,
    load_result,
    run_attack,
    save_result,
)
from pinprick.attacks import Auto, Pinprick, SparseRS
from pinprick.checks import flag_beaten
from pinprick.oracle import exact_images, exact_linear, sure_images

SHAPE = (3, 5, 5)
QUICK: dict[str, Any] = {"budgets": (2, 4, 8), "effort": "fast", "steps": 15, "queries": 60}


class Misleading(nn.Module):
    """Answers in steps of a sixteenth, over a faint slope that leads the other way.

    The gradient is that of the slope, as the steps have none: a defence that rounds its input.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        steps = (images * 16).round().div(16)
        logits: Tensor = self.net(steps) - self.net(images) / 1024
        return logits


@pytest.fixture
def honest() -> Classifier:
    return exact_linear(4, SHAPE)


@pytest.fixture
def masked(honest: Classifier) -> Classifier:
    assert isinstance(honest.net, nn.Module)
    return Classifier(Misleading(honest.net), name="misleading")


@pytest.fixture
def images(honest: Classifier) -> Tensor:
    return sure_images(honest, exact_images(8, SHAPE))


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


def assert_stages_add_up(result: AttackResult) -> None:
    for name in ("forwards", "backwards"):
        total = torch.stack([getattr(passes, name) for passes in result.stages.values()]).sum(dim=0)
        assert torch.equal(total, getattr(result, name))


def test_no_stage_is_better_than_all_of_them(honest: Classifier, images: Tensor) -> None:
    labels = guesses(honest, images)
    result = run_attack(Auto(**QUICK), honest, images, labels)
    first = run_attack(Pinprick(effort="fast", unit="pixels"), honest, images, labels)
    assert (result.needed_pixels <= first.needed_pixels).all()
    assert list(result.stages) == ["pinprick", "sparse_pgd", "sparse_rs"]
    assert torch.equal(result.stages["pinprick"].forwards, first.forwards)
    assert (result.stages["sparse_rs"].backwards == 0).all()
    assert_stages_add_up(result)


def test_a_budget_is_tried_on_those_that_withstand_it(honest: Classifier, images: Tensor) -> None:
    labels = guesses(honest, images)
    result = run_attack(Auto(**QUICK), honest, images, labels)
    first = run_attack(Pinprick(effort="fast", unit="pixels"), honest, images, labels)
    withstood = torch.stack([first.needed_pixels > k for k in (2, 4, 8)]).sum(dim=0)
    most = 2 * 16 * withstood  # both forms of sparse-PGD, with a last look each
    assert (result.stages["sparse_pgd"].forwards <= most).all()
    assert torch.equal(result.stages["sparse_pgd"].forwards > 0, most > 0)
    easy = exact_images(8, SHAPE)
    least = run_attack(Auto(**QUICK), honest, easy, guesses(honest, easy))
    assert (least.needed_pixels <= 2).all()
    assert list(least.stages) == ["pinprick"]


def test_an_honest_network_raises_no_flag(honest: Classifier, images: Tensor) -> None:
    result = run_attack(Auto(**QUICK), honest, images, guesses(honest, images))
    assert not result.beaten_by_scores.any()
    assert check_result(result) == []
    assert set(result.found_by) <= {"pinprick", "sparse_pgd"}


@pytest.mark.slow
def test_what_scores_find_and_gradients_do_not_is_flagged(
    masked: Classifier, honest: Classifier, images: Tensor, tmp_path: Path
) -> None:
    labels = guesses(masked, images)
    white = run_attack(Pinprick(effort="fast", unit="pixels"), masked, images, labels)
    attack = Auto(**{**QUICK, "queries": 400})
    result = run_attack(attack, masked, images, labels)
    beaten = result.beaten_by_scores
    assert beaten.sum() >= 4
    assert (result.needed_pixels[beaten] < white.needed_pixels[beaten]).all()
    assert [name == "sparse_rs" for name in result.found_by] == beaten.tolist()
    (flag,) = check_result(result)
    assert flag.name == "scores_beat_gradients"
    said = f"score search found fewer than gradient search on {int(beaten.sum())} of 8 images"
    assert flag.sentence == said
    again = result.stages["pinprick_again"]
    assert torch.equal(again.backwards > 0, beaten)  # the others have no second search
    assert (again.forwards <= 400).all()
    save_result(result, tmp_path / "auto.safetensors")
    back = load_result(tmp_path / "auto.safetensors")
    assert torch.equal(back.beaten_by_scores, beaten)
    assert check_result(back) == [flag]
    apart = run_attack(attack, masked, images, labels, batch_size=3)
    assert apart.found_by == result.found_by
    assert_stages_add_up(apart)
    assert torch.equal(result[beaten].beaten_by_scores, beaten[beaten])


def test_gradients_have_a_second_chance_before_a_flag(
    honest: Classifier, images: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = guesses(honest, images)
    settings: dict[str, Any] = {"budgets": (8,), "effort": "fast", "steps": 1, "queries": 300}
    calls: list[torch.Tensor] = []
    search = Pinprick.__call__

    def weak_at_first(self: Pinprick, problem: Problem) -> Tensor:
        calls.append(problem.rng.uniform(4, step=0, use="which numbers"))
        return problem.images.clone() if len(calls) == 1 else search(self, problem)

    monkeypatch.setattr(Pinprick, "__call__", weak_at_first)
    result = run_attack(Auto(**settings), honest, images, labels)
    assert len(calls) == 2
    assert "sparse_rs" in result.stages
    assert not torch.equal(calls[0][: len(calls[1])], calls[1])  # other random numbers
    won = torch.tensor([name == "pinprick_again" for name in result.found_by])
    assert won.any()
    assert not result.beaten_by_scores.any()
    assert check_result(result) == []
    scores = run_attack(SparseRS(k=8, queries=300), honest, images, labels)
    assert (result.needed_pixels[won] <= scores.needed_pixels[won]).all()


def test_a_few_images_are_no_flag() -> None:
    assert flag_beaten(2, 2) == []
    assert flag_beaten(3, 3)
    assert flag_beaten(3, 30)
    assert flag_beaten(3, 31) == []
    assert flag_beaten(0, 0) == []


def test_scores_alone_go_straight_to_the_black_box_part(masked: Classifier, images: Tensor) -> None:
    closed = Classifier(masked.net, access="scores", name="closed")
    labels = guesses(closed, images)
    result = run_attack(Auto(**{**QUICK, "queries": 400}), closed, images, labels)
    assert list(result.stages) == ["sparse_rs"]
    assert (result.backwards == 0).all()
    assert result.success.any()
    assert not result.beaten_by_scores.any()  # no gradient was tried
    assert check_result(result) == []
    labels_alone = Classifier(masked.net, access="labels", name="mute")
    with pytest.raises(BadInput, match="auto needs scores, but mute gives labels alone"):
        run_attack(Auto(), labels_alone, images, labels)


def test_budgets_come_from_the_shell() -> None:
    assert build({"name": "auto", "budgets": "20,5"}) == Auto(budgets=(20, 5))
    assert Auto(budgets=(5, 5, 9)).facts().max_forwards == Auto(budgets=(9, 5)).facts().max_forwards


def test_refuses_to_go_without_a_budget() -> None:
    with pytest.raises(BadInput, match=r"auto needs at least one budget, got \(\)"):
        Auto(budgets=())
