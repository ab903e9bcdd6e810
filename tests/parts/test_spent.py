"""Where no image is answered any more, there is nothing left to do."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, Goal, Problem, Streams, build, run_attack
from pinprick.types import Images, Logits

LONG = (  # 100 passes and more
    *("cw_l0", "cw_l2", "sapf", "strattack", "corner_search", "fmn", "sigma_zero"),
    *("homotopy", "pinprick", "wifgsm", "auto", "pgd0", "sparse_pgd", "gse", "brendel_bethge"),
)
SMALLEST = ("pgd0", "sparse_pgd")  # which are through with a fixed k at once


def test_it_is_over_once_all_are_refused(linear: Classifier, images: Tensor) -> None:
    with torch.no_grad():
        logits = linear(images)
    problem = Problem(
        linear,
        images,
        Goal(logits.argmax(dim=1)),
        Streams(0, torch.arange(len(images))),
        clean_logits=logits,
        max_forwards=1,
    )
    assert not problem.all_refused
    problem.logits(images)
    problem[torch.tensor([0, 1])].logits(images[:2])
    assert problem[torch.tensor([0, 1])].all_refused
    assert not problem.all_refused


@pytest.mark.parametrize("name", LONG)
def test_a_long_attack_ends_with_its_passes(
    name: str,
    linear: Classifier,
    images: Tensor,
    labels: Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    ask = Problem.logits

    def note(problem: Problem, some: Images) -> Logits:
        asked.append(len(some))
        return ask(problem, some)

    monkeypatch.setattr(Problem, "logits", note)
    limits: dict[str, Any] = {"max_forwards": 2}
    attack = build({"name": name, "k": "smallest"} if name in SMALLEST else name)
    result = run_attack(attack, linear, images, labels, **limits)
    assert result.out_of_budget.all()
    assert (result.forwards == 2).all()
    assert len(asked) <= 30  # once more in each search for a weight, or stage, at most
