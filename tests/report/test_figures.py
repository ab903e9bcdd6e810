"""Figures have the panels they should, and even one changed pixel can be seen in them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from pinprick import BadInput, Classifier, run_attack
from pinprick.attacks import IFGSM, Greedy
from pinprick.report.attack_figure import attack_figure
from pinprick.report.compare_figure import Column, compare_figure
from pinprick.report.drawing import draw_changes
from pinprick.report.png import read_png, save_figure, save_png
from pinprick.report.row import Prediction, Row, make_rows
from pinprick.report.words import amount, duration, time_words
from pinprick.types import Picture

Made = tuple[Row, Picture, Picture]


@pytest.fixture
def make(linear: Classifier, images: Tensor, labels: Tensor) -> Callable[..., Made]:
    def _make(attack: Greedy | IFGSM) -> Made:
        result = run_attack(attack, linear, images, labels)
        return make_rows(result, linear)[0], result.images[0], result.adversarial[0]

    return _make


def shapes(axes: Axes) -> int:
    return sum(len(collection.get_paths()) for collection in axes.collections[:1])


def test_the_attack_figure_shows_before_change_and_after(make: Callable[..., Made]) -> None:
    row, clean, adv = make(Greedy())
    before, change, after = attack_figure(row, clean, adv, title="greedy on linear").axes
    assert (before.get_title(), after.get_title()) == ("clean", "adversarial")
    assert before.get_xlabel() == f"{row.clean.name} {row.clean.confidence:.2f}"
    assert after.get_xlabel() == f"{row.adversarial.name} {row.adversarial.confidence:.2f}"
    assert f"{row.l0_pixels} pixel" in change.get_xlabel()
    assert f"{row.l0_elements} elements" in change.get_xlabel()
    shown = np.asarray(after.images[0].get_array())
    assert np.allclose(shown, adv.permute(1, 2, 0).numpy())


def test_the_compare_figure_has_a_column_for_each_attack(make: Callable[..., Made]) -> None:
    first, clean, adv = make(Greedy())
    second, _, dense = make(IFGSM(eps=0.5, step_size=None))
    columns = [
        Column("greedy", "Greedy pixels", first, adv),
        Column(
            "ifgsm", "I-FGSM", second, dense, judged=Prediction(3, "as the judge sees it", 0.25)
        ),
    ]
    figure = compare_figure(clean, columns, title="picture", clean_prediction=first.clean)
    above, below = np.array(figure.axes).reshape(2, 3)
    assert [axes.get_title() for axes in above] == ["clean", "Greedy pixels", "I-FGSM"]
    assert above[1].get_xlabel() == f"{first.adversarial.name} {first.adversarial.confidence:.2f}"
    assert above[2].get_xlabel() == "as the judge sees it 0.25"
    for axes, row in zip(below[1:], (first, second), strict=True):
        pixels, elements, seconds = axes.get_xlabel().split("\n")
        assert pixels == amount(row.l0_pixels, "pixels", row.l0_pixels_percent)
        assert elements == amount(row.l0_elements, "elements", row.l0_elements_percent)
        assert seconds == f"{duration(row.seconds)} (share of batch)"
    assert time_words(replace(first, batch_size=1)) == duration(first.seconds)
    assert not below[0].axison


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("count", [1, 25, 100, 2000])
def test_every_changed_pixel_is_drawn_enlarged(count: int, channels: int) -> None:
    clean = torch.rand(channels, 224, 224, generator=torch.Generator().manual_seed(0))
    adv = clean.clone()
    adv.view(channels, -1)[:, torch.randperm(224 * 224)[:count]] = 1
    axes = Figure().subplots()
    assert "times as wide" in draw_changes(axes, clean, adv)
    assert shapes(axes) == count
    assert (len(axes.collections) == 2) == (count <= 30)  # rings around the few
    assert axes.get_xlim() == (-0.5, 223.5)


def test_one_pixel_of_224_covers_more_than_a_thousandth_of_the_panel() -> None:
    clean = torch.zeros(3, 224, 224)
    adv = clean.clone()
    adv[0, 100, 50] = 1
    axes = Figure().subplots()
    draw_changes(axes, clean, adv)
    box = axes.collections[0].get_paths()[0].get_extents()
    assert box.width * box.height > 224 * 224 / 1000
    assert (box.x0 + box.width / 2, box.y0 + box.height / 2) == (50, 100)


@pytest.mark.parametrize(("change", "gain"), [(1 / 64, "32"), (1 / 4096, "2050"), (0.4, "1.25")])
def test_the_strength_of_a_dense_change_is_said_in_plain_digits(change: float, gain: str) -> None:
    clean = torch.full((3, 8, 8), 0.5)
    axes = Figure().subplots()
    assert draw_changes(axes, clean, clean + change) == f"change, {gain} times as strong"


def test_a_dense_change_is_shown_at_full_strength() -> None:
    clean = torch.full((3, 8, 8), 0.5)
    adv = clean.clone()
    adv[:, ::2] += 0.01
    axes = Figure().subplots()
    assert draw_changes(axes, clean, adv).startswith("change, 50")
    shown = np.asarray(axes.images[0].get_array())
    assert (shown.min(), shown.max()) == pytest.approx((0.5, 1.0), abs=1e-4)


def test_no_change_is_said() -> None:
    clean = torch.zeros(3, 8, 8)
    assert draw_changes(Figure().subplots(), clean, clean) == "nothing changed"


def test_figures_are_written_without_touching_global_state(
    make: Callable[..., Made], tmp_path: Path
) -> None:
    before = dict(matplotlib.rcParams)
    row, clean, adv = make(Greedy())
    save_figure(attack_figure(row, clean, adv, title="costs $5, or $6_7"), tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as picture:
        assert picture.width > 1000
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_comes_back_number_for_number(channels: int, tmp_path: Path) -> None:
    picture = torch.arange(256).repeat(channels).view(channels, 16, 16).float() / 255
    save_png(picture, tmp_path / "picture.png")
    assert torch.equal(read_png(tmp_path / "picture.png"), picture)


def test_a_png_of_two_channels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="1 or 3 channels, this image has 2"):
        save_png(torch.zeros(2, 4, 4), tmp_path / "picture.png")
