"""Obscuring and leading noise: the effect of each group of changed pixels on two classes.

A few pixels can mislead in two ways. They hide evidence for the true class (obscuring), or they add
evidence for another class (leading). Both are measured per group as changes of the two classes'
scores. Shapley values are what is reported. Ablation and the path integral check them. With maps of
the two classes, a spatial test compares the groups with where the evidence is.

All passes are counted per image.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pinprick.errors import BadInput, NoAnswer
from pinprick.explain.class_scores import rivals
from pinprick.explain.maps.maps import SMALL, PixelMaps
from pinprick.explain.noise.assemble import Measured, assemble
from pinprick.explain.noise.coalitions import Coalitions
from pinprick.explain.noise.cross_checks import ablate, path_effects
from pinprick.explain.noise.explanation import Explanation
from pinprick.explain.noise.groups import Groups, connected_groups, join_groups, single_pixels
from pinprick.explain.noise.labels import label_effects, undecided_labels
from pinprick.explain.noise.settings import NoiseSettings
from pinprick.explain.noise.shapley import shapley_values
from pinprick.explain.noise.spatial import spatial_test
from pinprick.explain.noise.structure import measure_structure
from pinprick.explain.noise.sufficiency import add_one_by_one, measure_families, spare_pixels
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.numerical_noise import confirm, guarded, largest_noise
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.result import AttackResult


def explain_noise(
    result: AttackResult,
    model: Classifier | Model,
    settings: NoiseSettings | None = None,
    *,
    true_maps: Tensor | None = None,
    adversarial_maps: Tensor | None = None,
    control_maps: Tensor | None = None,
) -> tuple[Explanation, ...]:
    """Measure the effect of each group of changed pixels, for every image of a result.

    Failed images are explained too, with the status "failed". Images without a change have no
    groups.

    Args:
        result: The result of an attack, best polished: ``polish(result, model, unit="pixels")``.
        model: The model that was attacked.
        settings: How pixels are grouped, evaluated and labelled; the defaults if None.
        true_maps: Maps of the clean images for their labels, (batch, height, width), not negative.
        adversarial_maps: Maps of the adversarial images for ``rivals(result)``.
        control_maps: Maps of the clean images for ``rivals(result)``.
    """
    settings = settings or NoiseSettings()
    classifier = as_classifier(model)
    check_scores(classifier)
    result = confirm(result, classifier)
    maps = _check_maps(result, true_maps, adversarial_maps, control_maps)
    device = classifier.device or result.images.device
    indices = torch.arange(len(result), device=result.images.device)
    size = int(result.batch_size.max()) if len(result) else 1
    explanations: list[Explanation] = []
    with classifier.frozen(), torch.inference_mode(False):
        for rows in indices.split(size) if len(result) else ():
            some = None if maps is None else maps.rows(rows, device)
            explanations += _explain(result[rows].to(device), classifier, settings, some)
    return tuple(explanations)


def _explain(
    result: AttackResult,
    model: Classifier,
    settings: NoiseSettings,
    maps: "_Maps | None",
) -> list[Explanation]:
    """The explanations of one batch; images without a change cost no passes."""
    changed = (result.adversarial != result.images).flatten(1).any(dim=1)
    if not changed.any():
        return assemble(result, settings, None)
    part = result[changed]
    some = None if maps is None else maps.rows(changed, changed.device)
    measured = iter(assemble(part, settings, _measure(part, model, settings, some)))
    unchanged = iter(assemble(result[~changed], settings, None))
    return [next(measured if one else unchanged) for one in changed.tolist()]


def _measure(
    result: AttackResult,
    model: Classifier,
    settings: NoiseSettings,
    maps: "_Maps | None",
) -> Measured:
    size = result.delta.abs().sum(dim=1)
    groups = group_pixels(result, settings)
    with_gradients = gives(model.access, "gradients")
    problem = Problem(
        model,
        result.images,
        guarded(result.goal, largest_noise(result), looks=3),  # one look more than in polishing
        Streams(settings.seed, result.ids),
        gradients=with_gradients,
        clean_logits=result.clean_logits,
    )
    coalitions = Coalitions(
        problem,
        result.adversarial,
        groups,
        rivals(result),
        gauge=settings.gauge,
        block=settings.block,
    )
    totals = coalitions.totals
    tolerance = settings.tolerance * totals.sum(dim=1).abs() / groups.count
    shapley = shapley_values(
        coalitions,
        exact=settings.exact,
        error=settings.error,
        least_pairs=settings.least_pairs,
        max_pairs=settings.max_pairs,
        is_undecided=lambda rows, effects, covariance: undecided_labels(
            effects, tolerance[rows], settings.ratio, covariance
        ),
    )
    kinds = label_effects(shapley.effects, tolerance, settings.ratio, shapley.covariance)
    ablation = ablate(coalitions)
    path = None
    if with_gradients and settings.path_steps > 0:
        steps, max_steps = settings.path_steps, settings.max_path_steps
        path = path_effects(coalitions, steps=steps, max_steps=max_steps)
    spatial = None
    if maps is not None:
        three = (maps.true, maps.adversarial, maps.control)
        spatial = spatial_test(groups, size, *three, top=settings.top)
    measured = Measured(
        groups=groups,
        size=size,
        totals=totals,
        tolerance=tolerance,
        shapley=shapley,
        shapley_kinds=kinds,
        ablation=ablation,
        ablation_kinds=label_effects(ablation.both, tolerance, settings.ratio),
        path=path,
        path_kinds=None if path is None else label_effects(path.parts, tolerance, settings.ratio),
        stages=add_one_by_one(coalitions, shapley.effects),
        sufficiency=measure_families(coalitions, kinds),
        spatial=spatial,
        structure=measure_structure(
            problem,
            result.adversarial,
            rivals(result),
            saliency=with_gradients,
            block=coalitions.block,
        ),
        spare=spare_pixels(coalitions, result.success, settings.max_spare),
        forwards=problem.tally.forwards,
        backwards=problem.tally.backwards,
    )
    if problem.may_refuse and problem.refused.any():
        raise NoAnswer(
            f"{model.name} did not answer all queries about {int(problem.refused.sum())} of "
            f"{len(problem)} images, so they cannot be explained; retry when it answers"
        )
    return measured


def check_scores(model: Classifier) -> None:
    """Raise ``BadInput`` if the model gives labels only: effects are changes of scores."""
    if not gives(model.access, "scores"):
        raise BadInput(
            f"an explanation needs scores, but {model.name} gives {model.access} alone; "
            "attack it with pinprick attack instead"
        )


def group_pixels(result: AttackResult, settings: NoiseSettings) -> Groups:
    """The groups of changed pixels of each image."""
    changed = (result.adversarial != result.images).any(dim=1)
    if settings.grouping == "pixels":
        groups = single_pixels(changed)
    else:
        radius = settings.radius
        if radius is None:
            radius = 1 if max(changed.shape[1:]) <= SMALL else 3
        groups = connected_groups(changed, radius)
    return join_groups(groups, result.delta.abs().sum(dim=1), settings.max_groups)


@dataclass(frozen=True)
class _Maps:
    """The maps of a batch: clean for the label, adversarial and clean for the rival."""

    true: PixelMaps
    adversarial: PixelMaps
    control: PixelMaps | None

    def rows(self, rows: Tensor, device: torch.device) -> "_Maps":
        def some(maps: Tensor) -> Tensor:  # of another batch size
            return maps[rows.to(maps.device)].to(device)

        control = None if self.control is None else some(self.control)
        return _Maps(some(self.true), some(self.adversarial), control)


def _check_maps(
    result: AttackResult, true: Tensor | None, adversarial: Tensor | None, control: Tensor | None
) -> _Maps | None:
    """The maps, checked; None without maps."""
    given = {"true_maps": true, "adversarial_maps": adversarial, "control_maps": control}
    given = {name: maps for name, maps in given.items() if maps is not None}
    if not given:
        return None
    if true is None or adversarial is None:
        raise BadInput(
            f"pass true_maps and adversarial_maps together; got {' and '.join(given)} only"
        )
    expected = (len(result), *result.images.shape[2:])
    for name, maps in given.items():
        if not isinstance(maps, Tensor) or tuple(maps.shape) != expected:
            shape = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
            raise BadInput(f"{name} must be a tensor of shape {expected}, got {shape}")
        if not maps.isfinite().all() or (maps < 0).any():
            raise BadInput(f"{name} must be finite and not negative")
    return _Maps(true, adversarial, control)
