"""Figures of results in one call: as the commands draw them, of any image of a result.

Each function returns a matplotlib ``Figure``; ``figure.savefig("name.png")`` writes it.
"""

from collections.abc import Mapping

import torch
from matplotlib.figure import Figure

from pinprick.errors import BadInput
from pinprick.explain.explain_result import Explained, title_of
from pinprick.jobs.explain_files import make_views
from pinprick.model import Classifier, Model, as_classifier
from pinprick.report.attack_figure import attack_figure
from pinprick.report.compare_figure import Column, compare_figure
from pinprick.report.effects_figure import effects_figure
from pinprick.report.explain_figure import explain_figure
from pinprick.report.row import make_rows
from pinprick.result import AttackResult


def draw_attack(
    result: AttackResult, model: Classifier | Model, row: int = 0, *, title: str | None = None
) -> Figure:
    """One attacked image: before, the changed pixels enlarged, after.

    Args:
        result: The result of an attack.
        model: The attacked model, for the names of classes; it is not queried.
        row: Index of the image in the result.
        title: Stands before the outcome; the attack and the model by default.
    """
    _check_row(result, row)
    measured = make_rows(result, as_classifier(model))[row]
    return attack_figure(
        measured, result.images[row], result.adversarial[row], title=title or title_of(result)
    )


def draw_comparison(
    results: Mapping[str, AttackResult],
    model: Classifier | Model,
    row: int = 0,
    *,
    title: str | None = None,
) -> Figure:
    """One image under several attacks: a column per attack, its image above, its change below.

    Args:
        results: Results of attacks on the same images, by the name to show.
        model: The attacked model, for the names of classes; it is not queried.
        row: Index of the image in the results.
        title: Title of the figure; the model by default.
    """
    if not results:
        raise BadInput("draw_comparison needs at least one result")
    classifier, columns = as_classifier(model), []
    first = next(iter(results.values()))
    for name, result in results.items():
        _check_row(result, row)
        if not torch.equal(result.images[row].cpu(), first.images[row].cpu()):
            raise BadInput(
                f"the results must be of the same images in the same order; image {row} of {name} "
                "is another"
            )
        measured = make_rows(result, classifier)[row]
        columns.append(Column(name, name, measured, result.adversarial[row]))
    return compare_figure(
        first.images[row],
        columns,
        title=title or f"attacks on {first.model}",
        clean_prediction=columns[0].row.clean,
    )


def draw_explanation(
    explained: Explained, model: Classifier | Model, row: int = 0, *, title: str | None = None
) -> Figure:
    """One explained image: both images with maps of their classes, and the largest groups enlarged.

    Args:
        explained: What ``explain_result`` returned.
        model: The attacked model, which is queried for guided gradients.
        row: Index of the image.
        title: Stands over the outcome; the attack and the model by default.
    """
    _check_row(explained.result, row)
    classifier = as_classifier(model)
    ((clean, adversarial),) = make_views(explained, classifier, [row])
    return explain_figure(
        make_rows(explained.result, classifier)[row],
        explained.explanations[row],
        clean,
        adversarial,
        title=title or title_of(explained.result),
    )


def draw_effects(
    explained: Explained, model: Classifier | Model, row: int = 0, *, title: str | None = None
) -> Figure:
    """The effects of each group of changed pixels, and the margin as groups are added one by one.

    Args:
        explained: What ``explain_result`` returned.
        model: The attacked model, for the names of classes; it is not queried.
        row: Index of the image.
        title: Stands over the totals; the attack and the model by default.
    """
    _check_row(explained.result, row)
    explanation, classifier = explained.explanations[row], as_classifier(model)
    if not explanation.groups:
        raise BadInput(f"no pixel of image {row} changed, so there are no effects to draw")
    return effects_figure(
        explanation,
        title=title or title_of(explained.result),
        true_name=classifier.class_name(explanation.label),
        rival_name=classifier.class_name(explanation.rival),
    )


def _check_row(result: AttackResult, row: int) -> None:
    if not 0 <= row < len(result):
        raise BadInput(f"row must be an index from 0 to {len(result) - 1}, got {row}")
