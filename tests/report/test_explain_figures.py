"""Figures of an explanation: the right panels, marks on the right pixels, bars as high as said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor, nn

from pinprick import Classifier, NoiseSettings, guided_gradcam, rivals, run_attack
from pinprick.attacks import Greedy
from pinprick.data.pictures import Named
from pinprick.explain.explained import Explained, explain_result
from pinprick.explain.explanation import Explanation, Group
from pinprick.explain.labels import LABELS
from pinprick.report.effects_figure import effects_figure
from pinprick.report.explain_figure import explain_figure
from pinprick.report.explain_gallery import hang_explanations
from pinprick.report.explain_views import views_of
from pinprick.report.heat import draw_guided, draw_heat
from pinprick.report.kinds import LOOKS, legend_marks, shape
from pinprick.report.marks import draw_marks, effect_of, mark_radius
from pinprick.report.png import save_figure
from pinprick.report.row import Row, make_rows


def net(bend: nn.Module) -> nn.Module:
    """Channels seen at their places, so that every group has an effect of its own."""
    see = nn.Conv2d(3, 3, 1, bias=False)
    see.weight.data = torch.eye(3).view(3, 3, 1, 1)
    weigh = nn.Linear(3, 3, bias=False)
    weigh.weight.data = 10 * torch.eye(3)
    return nn.Sequential(see, bend, nn.AdaptiveAvgPool2d(1), nn.Flatten(), weigh).eval()


@pytest.fixture(scope="module")
def model() -> Classifier:
    return Classifier(net(nn.ReLU()), classes=("red", "green", "$blue"), name="channels")


@pytest.fixture(scope="module")
def told(model: Classifier) -> Explained:
    base = torch.tensor([[0.45, 0.4, 0.2], [0.3, 0.3, 0.35]]).view(2, 3, 1, 1)
    images = base + 0.1 * torch.rand(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    result = run_attack(Greedy(), model, images, torch.tensor([0, 2]))
    return explain_result(result, model, NoiseSettings(grouping="pixels"))


@pytest.fixture(scope="module")
def row(told: Explained, model: Classifier) -> Row:
    return make_rows(told.result, model)[0]


@pytest.fixture(scope="module")
def figure(told: Explained, model: Classifier, row: Row) -> Figure:
    (views, *_) = views_of(told, model, [0])
    return explain_figure(row, told.explanations[0], *views, title="picture: greedy on channels")


def mark_centres(axes: Axes, count: int) -> list[tuple[float, float]]:
    """Row and column of the marks, which are drawn after the frames of single pixels."""
    boxes = [one.get_paths()[0].get_extents() for one in axes.collections[-count:]]
    return [((box.y0 + box.y1) / 2, (box.x0 + box.x1) / 2) for box in boxes]


def some_group(told: Explained, number: int, **changes: object) -> Group:
    return replace(told.explanations[0].groups[number], **changes)  # type: ignore[arg-type]


def test_the_panels_stand_as_in_the_paper(figure: Figure, row: Row) -> None:
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        "clean",
        "Grad-CAM, clean",
        "Guided Grad-CAM, clean",
        "adversarial",
        "Grad-CAM, adversarial",
        "Guided Grad-CAM, adversarial",
    ]
    below = [axes.get_xlabel() for axes in figure.axes]
    assert below[0] == f"red {row.clean.confidence:.2f}"
    assert below[3] == f"green {row.adversarial.confidence:.2f}"
    assert below[1:3] == ["for red"] * 2
    assert below[4:] == ["for green"] * 2


def test_each_panel_shows_its_own_picture(
    figure: Figure, told: Explained, model: Classifier
) -> None:
    shown = [np.asarray(axes.images[-1].get_array()) for axes in figure.axes]
    result = told.result
    assert np.allclose(shown[0], result.images[0].permute(1, 2, 0))
    assert np.allclose(shown[3], result.adversarial[0].permute(1, 2, 0))
    assert told.true_maps is not None
    assert told.adversarial_maps is not None
    for panel, maps in ((shown[1], told.true_maps), (shown[4], told.adversarial_maps)):
        assert np.allclose(panel, maps.scaled[0], atol=1e-6)
    pairs = ((shown[2], result.images, result.goal.labels), (shown[5], result.adversarial, None))
    for panel, images, labels in pairs:
        classes = rivals(result) if labels is None else labels
        values = guided_gradcam(model, images, classes).values[0].permute(1, 2, 0).numpy()
        assert np.array_equal(panel > 0.5, values > 0)


def test_marks_lie_on_the_changed_pixels(figure: Figure, told: Explained) -> None:
    changed = (told.result.adversarial != told.result.images)[0].any(dim=0).nonzero().tolist()
    groups = told.explanations[0].groups
    assert not figure.axes[0].collections  # the clean picture is left alone
    for axes in figure.axes[1:]:
        frames = axes.collections[: len(groups)]
        assert np.allclose(sorted(mark_centres(axes, len(groups))), changed)
        places = [
            [(box.y0 + box.y1) / 2, (box.x0 + box.x1) / 2]
            for frame in frames
            for box in (path.get_extents() for path in frame.get_paths())
        ]
        assert np.allclose(sorted(places), changed)
        assert axes.get_xlim() == (-0.5, 11.5)


def test_numbers_are_those_of_the_explanation(figure: Figure, told: Explained) -> None:
    drawn = [text.get_text() for text in figure.axes[3].texts]
    assert len(told.explanations[0].groups) <= 12
    assert drawn == [str(group.number) for group in told.explanations[0].groups]


@pytest.mark.parametrize("kind", LABELS)
def test_a_kind_has_its_colour_and_its_place(told: Explained, kind: str) -> None:
    effect = replace(told.explanations[0].groups[0].shapley, label=kind)
    group = some_group(told, 0, shapley=effect, centre=(3.0, 8.0), pixels=((3, 8),))
    axes = Figure().subplots()
    axes.imshow(np.zeros((12, 12)))
    draw_marks(axes, [group], 12)
    frame, mark = axes.collections
    for drawn in (frame, mark):
        assert np.allclose(np.asarray(drawn.get_edgecolor())[0], to_rgba(LOOKS[kind].colour))
    box = mark.get_paths()[0].get_extents()
    assert box.x0 < 8 < box.x1
    assert box.y0 < 3 < box.y1
    assert [line.get_label() for line in legend_marks({kind})] == [kind]


def test_red_is_obscuring_and_green_leading() -> None:
    red, green = (to_rgba(LOOKS[kind].colour) for kind in ("obscuring", "leading"))
    assert red[0] > 0.8 > 0.3 > red[1]
    assert green[1] > 0.6 > 0.3 > green[0]
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS) == len(LABELS)


def test_the_area_of_a_mark_goes_with_the_effect() -> None:
    whole, half = (mark_radius(effect, 2.0, 224) for effect in (2.0, 1.0))
    assert half**2 == pytest.approx(whole**2 / 2)
    assert mark_radius(1e-9, 2.0, 224) > 3  # it can still be seen
    assert mark_radius(0.0, 0.0, 224) > 3


@pytest.mark.parametrize("kind", LABELS)
def test_shapes_are_about_as_large_as_they_should_be(kind: str) -> None:
    box = (
        shape(kind, 5.0, 7.0, 2.0)
        .get_path()
        .get_extents(shape(kind, 5.0, 7.0, 2.0).get_transform())
    )
    assert box.width == pytest.approx(4, rel=0.3)
    assert box.height == pytest.approx(4, rel=0.3)


def test_the_size_shows_the_larger_effect(told: Explained) -> None:
    effect = replace(told.explanations[0].groups[0].shapley, obscuring=-3.0, leading=1.0)
    assert effect_of(some_group(told, 0, shapley=effect)) == 3.0


def test_very_many_pixels_have_no_frames(told: Explained) -> None:
    pixels = tuple((i // 24, i % 24) for i in range(401))
    axes = Figure().subplots()
    axes.imshow(np.zeros((24, 24)))
    draw_marks(axes, [some_group(told, 0, pixels=pixels)], 24)
    assert len(axes.collections) == 1


def test_bars_are_the_effects_in_the_order_of_the_margin(told: Explained) -> None:
    explanation = told.explanations[0]
    bars, way = effects_figure(explanation, title="t", true_name="red", rival_name="$blue").axes
    groups = [explanation.groups[number] for number in explanation.order]
    obscuring, leading = ([bar.get_height() for bar in bars.containers[i]] for i in _bars(bars))
    assert obscuring == pytest.approx([group.shapley.obscuring for group in groups])
    assert leading == pytest.approx([group.shapley.leading for group in groups])
    assert [label.get_text() for label in bars.get_xticklabels()] == [
        str(group.number) for group in groups
    ]
    margins = [stage.margin for stage in explanation.stages]
    assert np.allclose(np.asarray(way.lines[0].get_ydata()), margins)
    assert [label.get_text() for label in way.get_xticklabels()] == [
        "clean",
        *(f"+{group.number}" for group in groups),
    ]


def _bars(axes: Axes) -> list[int]:
    """Which containers are bars, and not their errors."""
    return [i for i, one in enumerate(axes.containers) if type(one).__name__ == "BarContainer"]


def test_sampled_effects_have_error_bars_and_exact_ones_none(told: Explained) -> None:
    one = told.explanations[0]
    sampled = replace(
        one,
        method="sampled",
        pairs=16,
        largest_error=0.031,
        groups=tuple(
            replace(group, shapley=replace(group.shapley, obscuring_error=0.25))
            for group in one.groups
        ),
    )
    exact = replace(one, method="exact")
    for explanation, several in ((sampled, 2), (exact, 0)):
        figure = effects_figure(explanation, title="t", true_name="a", rival_name="b")
        bars = figure.axes[0]
        errors = [c for c in bars.containers if type(c).__name__ == "ErrorbarContainer"]
        assert len(errors) == several
        words = figure.get_suptitle()
        assert ("16 pairs" in words and "3.1 %" in words) == bool(several)
    assert errors == []


def test_a_failed_attack_says_so(told: Explained, model: Classifier, row: Row) -> None:
    (views, *_) = views_of(told, model, [0])
    failed = replace(row, success=False, remark="not found")
    explanation = replace(told.explanations[0], status="failed", groups=(), changed_pixels=0)
    figure = explain_figure(failed, explanation, *views, title="picture")
    assert "failed: not found; nothing changed" in figure.get_suptitle()
    assert figure.axes[3].get_title() == "after the attack"
    assert not figure.legends


def test_an_image_that_needed_no_attack_is_not_called_adversarial(
    told: Explained, model: Classifier, row: Row
) -> None:
    (views, *_) = views_of(told, model, [0])
    wrong = replace(told.explanations[0], status="skipped", groups=(), changed_pixels=0)
    figure = explain_figure(row, wrong, *views, title="picture")
    assert [axes.get_title() for axes in figure.axes[3:]] == [
        "not attacked",
        "Grad-CAM, not attacked",
        "Guided Grad-CAM, not attacked",
    ]


@pytest.mark.parametrize(
    ("spare", "words"),
    [(0, "none to spare"), (2, "2 to spare"), (None, "at most 2 to spare (not all were tried)")],
)
def test_the_headline_says_whether_pixels_can_be_spared(
    told: Explained, model: Classifier, row: Row, spare: int | None, words: str
) -> None:
    (views, *_) = views_of(told, model, [0])
    explanation = replace(told.explanations[0], spare_pixels=spare, most_spare_pixels=2)
    figure = explain_figure(row, explanation, *views, title="picture")
    assert figure.get_suptitle().endswith(f", {words}")


def test_a_network_without_relus_says_why_there_is_no_guided_map(told: Explained) -> None:
    gelus = Classifier(net(nn.GELU()), name="gelus")
    (pair, *_) = views_of(told, gelus, [0])
    assert pair[0].guided is None
    assert "gelu" in pair[0].why_not
    row = make_rows(told.result, gelus)[0]
    figure = explain_figure(row, told.explanations[0], *pair, title="picture")
    assert "defined for ReLUs alone" in " ".join(figure.axes[2].texts[0].get_text().split())


def test_without_maps_the_panels_say_so(told: Explained, model: Classifier, row: Row) -> None:
    bare = replace(told, true_maps=None, adversarial_maps=None)
    (pair, *_) = views_of(bare, model, [0])
    figure = explain_figure(row, told.explanations[0], *pair, title="picture")
    assert "no map" in figure.axes[1].texts[0].get_text()
    assert "without a map" in figure.axes[5].texts[0].get_text()


def test_a_map_of_zeros_is_drawn_and_told(told: Explained, model: Classifier, row: Row) -> None:
    ((clean, adversarial), *_) = views_of(told, model, [0])
    assert clean.heat is not None
    empty = replace(clean, heat=torch.zeros_like(clean.heat))
    figure = explain_figure(row, told.explanations[0], empty, adversarial, title="picture")
    assert figure.axes[1].get_xlabel() == "for red\nzero everywhere"
    assert figure.axes[2].get_xlabel() == "for red"
    assert clean.guided is not None
    empty = replace(empty, guided=torch.zeros_like(clean.guided))
    figure = explain_figure(row, told.explanations[0], empty, adversarial, title="picture")
    assert figure.axes[2].get_xlabel() == "for red\nzero everywhere"


def test_maps_of_grey_images_and_of_nothing_are_drawn() -> None:
    first, second = Figure().subplots(1, 2)
    draw_heat(first, torch.rand(1, 8, 8), torch.zeros(8, 8))
    draw_guided(second, torch.zeros(1, 8, 8))
    assert np.allclose(np.asarray(second.images[0].get_array()), 0.5)


def words_of(figure: Figure) -> list[Tensor]:
    """The boxes of all words around panels, in pixels of the file."""
    figure.draw_without_rendering()
    words = [part for axes in figure.axes for part in (axes.title, axes.xaxis.label)]
    words += [text for text in figure.texts if text.get_text()]
    words += [part for legend in figure.legends for part in (legend.get_title(), *legend.texts)]
    boxes = [part.get_window_extent() for part in words if part.get_text()]
    return [torch.tensor([box.x0, box.y0, box.x1, box.y1]) for box in boxes]


@pytest.mark.slow
def test_no_words_overlap(figure: Figure) -> None:
    boxes = words_of(figure)
    assert len(boxes) >= 13
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (one[:2] >= other[2:] - 1).any() or (other[:2] >= one[2:] - 1).any()
            assert apart


@pytest.mark.slow
def test_the_gallery_draws_so_many_and_names_its_files(
    told: Explained, model: Classifier, tmp_path: Path
) -> None:
    photos = [Named(name, Path(name)) for name in ("one", "two")]
    first, second = hang_explanations(told, photos, model, tmp_path, title="t", figures=[0])
    assert (second.figure, second.effects) == (None, None)
    for path in (first.figure, first.effects):
        assert path is not None
        with Image.open(path) as picture:
            assert min(picture.size) > 500
    assert first.plain()["files"] == {
        "adversarial": "one-adversarial.png",
        "changes": None,
        "figure": "one-explained.png",
        "effects": "one-effects.png",
    }
    assert Explanation.from_dict(first.plain()["explanation"]) == told.explanations[0]
    save_figure(Figure(), tmp_path / "plain.png")
