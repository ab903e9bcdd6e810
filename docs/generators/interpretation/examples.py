"""Eight random images of Fashion-MNIST, attacked and explained, in one picture.

The images are drawn by seed from those that the network classifies correctly. None is chosen by
hand.
"""

from collections import Counter

import torch
from matplotlib.figure import Figure, SubFigure

from generators.interpretation.figures import IMAGES
from pinprick import explain_result, load_data, load_model, run_attack
from pinprick.attacks import WIFGSM
from pinprick.explain.explain_result import Explained
from pinprick.explain.noise.labels import LABELS
from pinprick.model import Classifier
from pinprick.report.drawing import draw_picture, write_around
from pinprick.report.group_numbers import draw_marks
from pinprick.report.group_outlines import legend_marks
from pinprick.report.map_drawing import draw_heat

_COUNT, _SEED = 8, 0
_ACROSS = 2  # examples side by side


def explain_examples() -> tuple[Classifier, Explained]:
    """The model, and eight of its correctly classified images under ``wifgsm``, explained."""
    model = load_model("pinprick:fashion_cnn")
    data = load_data("fashion_sample").for_model(model)
    images, labels = data.images(), data.labels
    correct = (model(images).argmax(dim=1) == labels).nonzero().squeeze(1)
    draw = torch.randperm(len(correct), generator=torch.Generator().manual_seed(_SEED))
    rows = correct[draw[:_COUNT]].sort().values
    result = run_attack(WIFGSM(), model, images[rows], labels[rows], ids=rows)
    return model, explain_result(result, model)


def examples(model: Classifier, explained: Explained) -> Figure:
    """Per image: both maps and the adversarial image, with the groups outlined."""
    down = -(-len(explained) // _ACROSS)
    figure = Figure(figsize=(10.8, 2.5 * down + 0.4), dpi=110, layout="constrained")
    parts = figure.subfigures(down, _ACROSS, squeeze=False, wspace=0.05, hspace=0.04)
    for number in range(len(explained)):
        _draw_example(parts[number // _ACROSS, number % _ACROSS], model, explained, number)
    found = {group.shapley.label for one in explained.explanations for group in one.groups}
    marks, names = legend_marks(found)
    figure.legend(
        marks, names, loc="outside lower center", ncols=len(names), fontsize=10, frameon=False
    )
    return figure


def _draw_example(part: SubFigure, model: Classifier, explained: Explained, number: int) -> None:
    result, one = explained.result, explained.explanations[number]
    assert explained.true_maps is not None
    assert explained.adversarial_maps is not None
    before, after = model.class_name(one.label), model.class_name(one.rival)
    kinds = Counter(group.shapley.label for group in one.groups)
    counts = ", ".join(f"{kinds[name]} {name}" for name in LABELS if kinds[name])
    changed = f"image {one.id}: {one.changed_pixels} changed pixels in {len(one.groups)} groups"
    part.suptitle(f"{changed}\n{counts}", fontsize=9)
    panels = part.subplots(1, 3)
    draw_heat(panels[0], result.images[number], explained.true_maps.values[number])
    write_around(panels[0], "clean, LayerCAM", f"for {before}")
    draw_picture(panels[1], result.adversarial[number])
    write_around(panels[1], "adversarial", f"{before} to {after}")
    draw_heat(panels[2], result.adversarial[number], explained.adversarial_maps.values[number])
    write_around(panels[2], "adversarial, LayerCAM", f"for {after}")
    for axes in panels:
        draw_marks(axes, one.groups, (result.images.shape[2], result.images.shape[3]))


def save() -> None:
    """Draw docs/images/interpretation_examples.png again."""
    examples(*explain_examples()).savefig(IMAGES / "interpretation_examples.png")
