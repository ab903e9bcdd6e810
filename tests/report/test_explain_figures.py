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

from pinprick import (
    Classifier,
    NoiseSettings,
    guided_gradients,
    layercam,
    rivals,
    run_attack,
)
from pinprick.attacks import Greedy
from pinprick.data.pictures import PictureRecord
from pinprick.explain.explain_result import Explained, explain_result
from pinprick.explain.noise.explanation import Explanation, Group
from pinprick.explain.noise.labels import LABELS
from pinprick.jobs.explain_files import make_views, save_explanations
from pinprick.report.effects_figure import effects_figure
from pinprick.report.explain_figure import crop_of, explain_figure, shown_groups
from pinprick.report.group_numbers import (
    Box,
    anchor_of,
    box_around,
    effect_of,
    number_marks,
    place_labels,
)
from pinprick.report.group_outlines import LOOKS, legend_marks, mark, outline, reach
from pinprick.report.map_drawing import draw_guided, draw_heat, edges
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
    (views, *_) = make_views(told, model, [0])
    return explain_figure(row, told.explanations[0], *views, title="picture: greedy on channels")


def some_group(told: Explained, number: int, **changes: object) -> Group:
    return replace(told.explanations[0].groups[number], **changes)  # type: ignore[arg-type]


def test_the_panels_stand_as_in_the_paper(figure: Figure, row: Row) -> None:
    titles = [axes.get_title() for axes in figure.axes[:6]]
    assert titles == [
        "clean",
        "LayerCAM, clean",  # the pictures are small
        "Guided LayerCAM, clean",
        "adversarial",
        "LayerCAM, adversarial",
        "Guided LayerCAM, adversarial",
    ]
    below = [axes.get_xlabel() for axes in figure.axes[:6]]
    assert below[0] == f"red {row.clean.confidence:.2f}"
    assert below[3] == f"green {row.adversarial.confidence:.2f}"
    assert below[1:3] == ["for red"] * 2
    assert below[4:] == ["for green"] * 2


def test_each_panel_shows_its_own_picture(
    figure: Figure, told: Explained, model: Classifier
) -> None:
    shown = [np.asarray(axes.images[-1].get_array()) for axes in figure.axes[:6]]
    result = told.result
    assert np.allclose(shown[0], result.images[0].permute(1, 2, 0))
    assert np.allclose(shown[3], result.adversarial[0].permute(1, 2, 0))
    assert told.true_maps is not None
    assert told.adversarial_maps is not None
    for panel, maps in ((shown[1], told.true_maps), (shown[4], told.adversarial_maps)):
        assert np.allclose(panel, maps.values[0], atol=1e-6)
    for panel, images, classes in (
        (shown[2], result.images, result.goal.labels),
        (shown[5], result.adversarial, rivals(result)),
    ):
        guided = guided_gradients(model, images, classes).values[0]
        heat = layercam(model, images, classes).values[0]
        assert np.allclose(panel, (guided * heat).sum(dim=0).abs(), atol=1e-6)


def drawn_lines(axes: Axes) -> list[np.ndarray]:
    """The coloured outline of each group, (segments, 2, 2), columns first."""
    coloured = [one for one in axes.collections if one.get_zorder() == 4]
    return [np.stack([path.vertices for path in one.get_paths()]) for one in coloured]


def test_outlines_lie_around_the_changed_pixels(figure: Figure, told: Explained) -> None:
    groups = told.explanations[0].groups
    assert not figure.axes[0].collections  # the clean picture is left alone
    for axes in figure.axes[1:6]:
        lines = drawn_lines(axes)
        assert len(lines) == len(groups)
        for group, segments in zip(groups, lines, strict=True):
            top, left, bottom, right = group.box
            assert segments[..., 0].min() == left - 0.5
            assert segments[..., 0].max() == right + 0.5
            assert segments[..., 1].min() == top - 0.5
            assert segments[..., 1].max() == bottom + 0.5
        assert axes.get_xlim() == (-0.5, 11.5)


def test_an_outline_is_the_edge_of_the_union_of_its_pixels(told: Explained) -> None:
    corner = some_group(told, 0, pixels=((0, 0), (0, 1), (1, 0)))
    edge = outline(corner, 0, 6, 6)
    assert len(edge) == 8  # three squares of four sides, two sides shared by two of them
    assert edge.min() == -0.5  # none is cut off at the border
    ends, times = np.unique(edge.reshape(-1, 2), axis=0, return_counts=True)
    assert set(times.tolist()) == {2}  # closed: each corner ends two sides
    assert len(ends) == 8
    wide = outline(corner, 2, 6, 6)
    assert (wide.min(), wide.max()) == (-0.5, 3.5)


@pytest.mark.parametrize(("count", "far"), [(1, 2), (151, 1), (1501, 0)])
def test_outlines_keep_away_from_pixels_that_are_small(
    told: Explained, count: int, far: int
) -> None:
    pixels = tuple((i // 100, 2 * (i % 100)) for i in range(count))
    assert reach([some_group(told, 0, pixels=pixels)], 224, 224) == far
    assert reach([some_group(told, 0, pixels=pixels)], 28, 28) == 0


def test_a_mark_leads_to_a_changed_pixel_where_the_centre_is_none(told: Explained) -> None:
    ring = tuple((r, c) for r in range(3, 6) for c in range(5, 8) if (r, c) != (4, 6))
    group = some_group(told, 0, pixels=ring, centre=(4.0, 6.0))
    assert anchor_of(group)[::-1] in ring


def many_groups(told: Explained, count: int, side: int) -> list[Group]:
    """Groups of a pixel each, crowded in one quarter and along a border."""
    one = told.explanations[0].groups[0]
    places = torch.randperm(side * side // 4, generator=torch.Generator().manual_seed(1))[:count]
    groups = []
    for number, place in enumerate(places.tolist()):
        row, column = divmod(place, side // 2)
        row = 0 if number % 7 == 0 else row
        effect = replace(one.shapley, obscuring=1.0 + number)
        groups.append(
            replace(
                one,
                number=number,
                pixels=((row, column),),
                centre=(float(row), float(column)),
                box=(row, column, row, column),
                shapley=effect,
            )
        )
    return groups


@pytest.mark.parametrize(("count", "side"), [(13, 28), (32, 28), (32, 224)])
def test_all_groups_are_numbered_and_no_number_covers_another(
    told: Explained, count: int, side: int
) -> None:
    figure = Figure(figsize=(205 / 72, 205 / 72), dpi=150)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.imshow(np.zeros((side, side)))
    assert number_marks(axes, many_groups(told, count, side), (side, side)) == []
    assert sorted(int(text.get_text()) for text in axes.texts) == list(range(count))
    figure.draw_without_rendering()
    marks = [line for line in axes.lines if line.get_marker() != "None"]
    assert len(marks) == count
    boxes = [
        (text.get_window_extent(), mark.get_window_extent())
        for text, mark in zip(axes.texts, marks, strict=True)
    ]
    for i, (words, _) in enumerate(boxes):
        assert axes.get_window_extent().expanded(1.02, 1.02).containsx(words.x1)
        for other, symbol in boxes[:i]:
            for box in (other, symbol):
                wide = min(words.x1, box.x1) - max(words.x0, box.x0)
                high = min(words.y1, box.y1) - max(words.y0, box.y0)
                assert wide < 2 or high < 4  # pixels of 150 per inch, without the air around words


@pytest.mark.slow
def test_numbers_that_find_no_room_are_listed(told: Explained, model: Classifier, row: Row) -> None:
    axes = Figure().subplots()
    axes.imshow(np.zeros((28, 28)))
    groups = many_groups(told, 190, 28)
    left_out = number_marks(axes, groups, (28, 28))
    numbered = {int(text.get_text()) for text in axes.texts}
    assert len(numbered) > 40
    assert sorted({*left_out, *numbered}) == list(range(190))
    assert 189 in numbered  # the largest effect comes first
    (views, *_) = make_views(told, model, [0])
    wide = [replace(view, picture=torch.zeros(3, 28, 28), heat=None, guided=None) for view in views]
    many = replace(told.explanations[0], groups=tuple(groups))
    figure = explain_figure(row, many, *wide, title="picture")
    assert f"No room for the numbers of: {left_out[0]}, " in legend_words(figure)


def test_labels_stay_near_and_cover_nothing_where_there_is_room() -> None:
    anchors, limits = [(5.0, 5.0), (6.0, 5.0)], Box(0.0, 0.0, 100.0, 100.0)
    avoided = [box_around(*anchor, 3.0, 3.0) for anchor in anchors]
    places = place_labels(anchors, [(8.0, 4.0)] * 2, avoided, limits)
    boxes = [box_around(*place, 8.0, 4.0) for place in places if place is not None]
    assert len(boxes) == 2
    assert not boxes[0].shared(boxes[1])
    for box, anchor in zip(boxes, anchors, strict=True):
        assert box.within(limits)
        assert not any(box.shared(other) for other in avoided)
        assert abs(box.left + 4 - anchor[0]) + abs(box.top + 2 - anchor[1]) < 16


def test_the_largest_groups_are_shown_from_near_before_and_after(
    figure: Figure, told: Explained
) -> None:
    groups = told.explanations[0].groups
    shown = shown_groups(groups)
    assert [group.number for group in shown] == [
        group.number for group in sorted(groups, key=effect_of, reverse=True)[:8]
    ]
    before, after = figure.axes[6:14], figure.axes[14:]
    result = told.result
    for panels, images in ((before, result.images), (after, result.adversarial)):
        for axes, group in zip(panels, shown, strict=False):
            assert np.allclose(np.asarray(axes.images[0].get_array()), images[0].permute(1, 2, 0))
            top, left, bottom, right = group.box
            assert axes.get_xlim()[0] < left <= right < axes.get_xlim()[1]
            assert axes.get_ylim()[1] < top <= bottom < axes.get_ylim()[0]
    assert before[0].get_title() == f"{shown[0].number} {shown[0].shapley.label}"
    assert f"leading {shown[0].shapley.leading:+.2f}" in after[0].get_xlabel()


def test_a_crop_is_a_square_within_the_image(told: Explained) -> None:
    corner = some_group(told, 0, pixels=((0, 223),), centre=(0.0, 223.0), box=(0, 223, 0, 223))
    assert crop_of(corner, 224, 224) == ((213, 224), (0, 11))
    pixels = ((2, 3), (200, 210))
    far = some_group(told, 0, pixels=pixels, centre=(101.0, 106.0), box=(2, 3, 200, 210))
    (left, right), (top, bottom) = crop_of(far, 224, 224)
    column, row = anchor_of(far)
    assert right - left == bottom - top == 41
    assert left <= column < right
    assert top <= row < bottom


@pytest.mark.parametrize("kind", LABELS)
def test_a_kind_has_its_colour_and_the_legend_is_as_drawn(told: Explained, kind: str) -> None:
    effect = replace(told.explanations[0].groups[0].shapley, label=kind)
    group = some_group(told, 0, shapley=effect, centre=(3.0, 8.0), pixels=((3, 8),))
    axes = Figure().subplots()
    axes.imshow(np.zeros((12, 12)))
    number_marks(axes, [group], (12, 12))
    coloured = [one for one in axes.collections if one.get_zorder() == 4]
    assert np.allclose(np.asarray(coloured[0].get_edgecolor())[0], to_rgba(LOOKS[kind].colour))
    (drawn,) = [line for line in axes.lines if line.get_marker() != "None"]
    (entry,), names = legend_marks({kind})
    assert names == [kind]
    for ask in ("get_marker", "get_markersize", "get_markerfacecolor", "get_markeredgecolor"):
        assert getattr(drawn, ask)() == getattr(entry, ask)() == getattr(mark(kind), ask)()


SIGHTS = {  # what is left of red, green and blue without one kind of cone, in linear light
    "protan": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deutan": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
}


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_can_be_told_apart_without_red_or_green(sight: str) -> None:
    colours = np.array([to_rgba(look.colour)[:3] for look in LOOKS.values()])
    seen = (colours**2.2 @ np.array(SIGHTS[sight]).T).clip(0, 1) ** (1 / 2.2)
    gaps = np.linalg.norm(seen[:, None] - seen[None], axis=2)
    assert gaps[np.triu_indices(len(colours), 1)].min() > 0.3


def test_red_is_obscuring_and_green_leading() -> None:
    red, green = (to_rgba(LOOKS[kind].colour) for kind in ("obscuring", "leading"))
    assert red[0] > 0.8 > 0.3 > red[1]
    assert green[1] > 0.6 > 0.3 > green[0]
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS) == len(LABELS)


def test_the_size_shows_the_larger_effect(told: Explained) -> None:
    effect = replace(told.explanations[0].groups[0].shapley, obscuring=-3.0, leading=1.0)
    assert effect_of(some_group(told, 0, shapley=effect)) == 3.0


def test_heat_is_clear_at_zero_opaque_at_its_largest_and_has_a_bar() -> None:
    axes = Figure().subplots()
    heat = torch.linspace(0, 0.8, 64).view(8, 8)
    draw_heat(axes, torch.rand(3, 8, 8), heat)
    colours = axes.images[-1].to_rgba(heat.numpy())
    opacity = colours[..., 3].flatten() / (255 if colours.dtype == np.uint8 else 1)
    assert opacity[0] == 0
    assert opacity[-1] > 0.8
    assert (np.diff(opacity) >= 0).all()
    (bar,) = axes.child_axes
    assert [label.get_text() for label in bar.get_yticklabels()] == ["0", "0.4", "0.8"]
    assert bar.images[0].get_cmap() is axes.images[-1].get_cmap()


def test_guided_maps_show_edges_and_not_what_alternates() -> None:
    """Strided convolutions give gradients that change their sign from one pixel to the next."""
    rows, columns = torch.meshgrid(torch.arange(224), torch.arange(224), indexing="ij")
    static = (1 - 2 * ((rows + columns) % 2)).float()
    static[:, 100:102] = 1.0
    ink = edges(static.expand(3, -1, -1) / 3)
    assert ink[:, 100:102].min() > 0.5
    assert ink[5:-5, 5:90].max() < 0.05
    small = torch.rand(3, 28, 28) - 0.5
    torch.testing.assert_close(edges(small), small.sum(dim=0).abs())


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
    (views, *_) = make_views(told, model, [0])
    failed = replace(row, success=False, remark="not found")
    explanation = replace(told.explanations[0], status="failed", groups=(), changed_pixels=0)
    figure = explain_figure(failed, explanation, *views, title="picture")
    assert "failed: not found; nothing changed" in figure.get_suptitle()
    assert figure.axes[3].get_title() == "after the attack"
    assert not any(part.legends for part in figure.subfigs)
    assert len(figure.axes) == 6


def test_an_image_that_needed_no_attack_is_not_called_adversarial(
    told: Explained, model: Classifier, row: Row
) -> None:
    (views, *_) = make_views(told, model, [0])
    wrong = replace(told.explanations[0], status="skipped", groups=(), changed_pixels=0)
    figure = explain_figure(row, wrong, *views, title="picture")
    assert [axes.get_title() for axes in figure.axes[3:]] == [
        "not attacked",
        "LayerCAM, not attacked",
        "Guided LayerCAM, not attacked",
    ]


@pytest.mark.parametrize(
    ("spare", "words"),
    [
        (0, "each needed"),
        (2, "2 not needed"),
        (None, "at most 2 not needed (not all were tried)"),
    ],
)
def test_the_headline_says_whether_pixels_can_be_spared(
    told: Explained, model: Classifier, row: Row, spare: int | None, words: str
) -> None:
    (views, *_) = make_views(told, model, [0])
    explanation = replace(told.explanations[0], spare_pixels=spare, most_spare_pixels=2)
    figure = explain_figure(row, explanation, *views, title="picture")
    assert figure.get_suptitle().endswith(f", {words}")


def test_a_network_without_relus_says_why_there_is_no_guided_map(told: Explained) -> None:
    gelus = Classifier(net(nn.GELU()), name="gelus")
    (pair, *_) = make_views(told, gelus, [0])
    assert pair[0].guided is None
    assert "gelu" in pair[0].why_not
    row = make_rows(told.result, gelus)[0]
    figure = explain_figure(row, told.explanations[0], *pair, title="picture")
    assert "defined for ReLUs only" in " ".join(figure.axes[2].texts[0].get_text().split())


def test_without_maps_the_panels_say_so(told: Explained, model: Classifier, row: Row) -> None:
    bare = replace(told, true_maps=None, adversarial_maps=None)
    (pair, *_) = make_views(bare, model, [0])
    figure = explain_figure(row, told.explanations[0], *pair, title="picture")
    assert "no map" in figure.axes[1].texts[0].get_text()
    assert "without a map" in " ".join(figure.axes[5].texts[0].get_text().split())


@pytest.mark.slow
def test_a_map_of_zeros_is_drawn_and_told(told: Explained, model: Classifier, row: Row) -> None:
    ((clean, adversarial), *_) = make_views(told, model, [0])
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
    assert np.allclose(second.images[-1].to_rgba(np.zeros((8, 8)))[..., :3], 1)  # white
    assert not first.child_axes + second.child_axes  # a bar from zero to zero says nothing


def legend_words(figure: Figure) -> str:
    (legend,) = [legend for part in figure.subfigs for legend in part.legends]
    return legend.get_title().get_text()


def words_of(figure: Figure) -> list[Tensor]:
    """The boxes of all words around panels, in pixels of the file."""
    figure.draw_without_rendering()
    words = [part for axes in figure.axes for part in (axes.title, axes.xaxis.label)]
    words += [text for part in (figure, *figure.subfigs) for text in part.texts if text.get_text()]
    legends = [legend for part in figure.subfigs for legend in part.legends]
    words += [part for legend in legends for part in (legend.get_title(), *legend.texts)]
    boxes = [part.get_window_extent() for part in words if part.get_text()]
    return [torch.tensor([box.x0, box.y0, box.x1, box.y1]) for box in boxes]


@pytest.mark.slow
def test_no_words_overlap(figure: Figure) -> None:
    boxes = words_of(figure)
    assert len(boxes) >= 20
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (one[:2] >= other[2:] - 1).any() or (other[:2] >= one[2:] - 1).any()
            assert apart


@pytest.mark.slow
def test_the_gallery_draws_so_many_and_names_its_files(
    told: Explained, model: Classifier, tmp_path: Path
) -> None:
    records = [PictureRecord(name, Path(name)) for name in ("one", "two")]
    first, second = save_explanations(told, records, model, tmp_path, title="t", figures=[0])
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
