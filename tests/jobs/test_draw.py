"""The public figures are those of the commands, for any image of a result."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from pinprick import (
    AttackResult,
    BadInput,
    Classifier,
    draw_attack,
    draw_comparison,
    draw_effects,
    draw_explanation,
    explain_result,
    run_attack,
)
from pinprick.attacks import Greedy, SigmaZero
from pinprick.report.row import make_rows


@pytest.fixture
def result(linear: Classifier, images: Tensor, labels: Tensor) -> AttackResult:
    return run_attack(Greedy(), linear, images, labels)


def test_an_attack_is_drawn_with_its_own_image_and_numbers(
    result: AttackResult, linear: Classifier, tmp_path: Path
) -> None:
    figure = draw_attack(result, linear, row=1)
    before, change, after = figure.axes
    for axes, picture in ((before, result.images[1]), (after, result.adversarial[1])):
        shown = np.asarray(axes.images[0].get_array())
        assert np.allclose(shown, picture.permute(1, 2, 0).numpy())
    assert f"{int(result.l0_pixels[1])} pixel" in change.get_xlabel()
    assert figure.get_suptitle().startswith("Greedy pixels on exact linear: fooled")
    assert draw_attack(result, linear, title="mine").get_suptitle().startswith("mine: fooled")
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_a_comparison_has_a_column_per_result(
    result: AttackResult, linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    other = run_attack(SigmaZero(steps=20), linear, images, labels)
    figure = draw_comparison({"mine": result, "theirs": other}, linear, row=1)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["clean", "mine", "theirs"]
    assert make_rows(other, linear)[1].adversarial.name in figure.axes[2].get_xlabel()
    with pytest.raises(BadInput, match="image 1 of theirs is another"):
        draw_comparison({"mine": result, "theirs": other[[0, 0]]}, linear, row=1)
    with pytest.raises(BadInput, match="at least one result"):
        draw_comparison({}, linear)


def test_an_explanation_is_drawn_in_two_figures(result: AttackResult, linear: Classifier) -> None:
    explained = explain_result(result, linear, maps=False)
    panels = draw_explanation(explained, linear, row=1)
    assert panels.get_suptitle().startswith("Greedy pixels on exact linear\nfooled; ")
    assert f"{explained.explanations[1].changed_pixels} changed pixel" in panels.get_suptitle()
    bars = draw_effects(explained, linear, row=1)
    assert f"moved by {explained.explanations[1].margin:.2f}" in bars.get_suptitle()


def test_what_cannot_be_drawn_is_refused(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    wrong = run_attack(Greedy(), linear, images[:1], (labels[:1] + 1) % 4)
    with pytest.raises(BadInput, match="no pixel of image 0 changed"):
        draw_effects(explain_result(wrong, linear, maps=False), linear)
    for row in (-1, 1):
        with pytest.raises(BadInput, match=f"row must be an index from 0 to 0, got {row}"):
            draw_attack(wrong, linear, row)
    assert torch.equal(wrong.images, wrong.adversarial)
