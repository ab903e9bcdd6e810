"""Flags for models and images that make measured numbers meaningless, before any attack.

The model is used as in an attack: in evaluation mode, on images in [0, 1]. Neither the model nor
the global random state changes. docs/reference/checks.md explains each flag under its name.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pinprick.errors import BadInput
from pinprick.goal import Goal
from pinprick.intake import check_answers, check_pictures, check_range, per_image, shown, way_back
from pinprick.model import Classifier, Model, as_classifier, gives
from pinprick.numerical_noise import largest_noise
from pinprick.result import AttackResult
from pinprick.robust import plain_pgd, stay_correct, strong_pgd
from pinprick.types import Images, Labels, Logits, Mask
from pinprick.zoo.facts import TOLERATED, linf_attack, overstatement

ADVICE = {
    "training_mode": "call net.eval() before you measure anything yourself; attacks do so anyway",
    "softmax_outputs": "give the scores before the softmax, whose gradients vanish where it is "
    "sure, or probabilities=True to score_model",
    "random_logits": "switch the randomness off, or average over it inside the model",
    "nonfinite_logits": "find the image and the layer; such an answer never counts as fooled",
    "zero_gradients": "use attacks on the margin, or ones that need scores alone",
    "low_accuracy": "see whether the labels, the classes and the preprocessing belong together",
    "normalised_inputs": "give images in [0, 1], and mean and std to Classifier(mean=..., std=...)",
    "other_normalisation": "build the model with the mean and std it was trained with",
    "pgd_overstates": "report the stronger attack's accuracy, and scores alone where both stall",
    "within_noise": "judge these images alone; in full precision there is less noise",
    "scores_beat_gradients": "trust no number of gradient attacks alone: gradients may be masked, "
    "or the search too weak; raise its effort, and report attacks by scores beside it",
}

_ENOUGH, _TELLING = 3, 10  # least images, and least one in so many, for a flag
_SEVERAL = 8  # images of the slower checks
_REPEATS = 3
_ATTACKED = 100  # most images for PGD, and fewer where they are large
_ELEMENTS = 2_000_000  # most elements of all of them, so that a CPU is done soon
_FEWEST = 7  # heads in a row that a fair coin shows in less than 1 % of trials


@dataclass(frozen=True)
class Flag:
    """A property of a model or of the images that makes numbers doubtful.

    Attributes:
        name: What to look up in docs/reference/checks.md.
        sentence: What was found, with the numbers.
        advice: What to do, in one line.
    """

    name: str
    sentence: str
    advice: str


@torch.inference_mode(False)  # gradients are needed, also where the caller is in inference mode
def check_model(
    model: Classifier | Model,
    images: Tensor,
    labels: Tensor | Sequence[int] | None = None,
    *,
    eps: float = 8 / 255,
) -> list[Flag]:
    """The flags of ``model`` on ``images``; empty if there are none.

    Args:
        model: A ``Classifier``, or any network or function from images in [0, 1] to logits.
        images: Some images of the kind that the model is meant for; a few dozen are enough.
        labels: The true class of each; without them, accuracy is not checked.
        eps: Radius of the l-infinity ball of PGD, where pixel values run from 0 to 1.
    """
    classifier = as_classifier(model)
    check_pictures(images)
    if not len(images):
        raise BadInput("a model is checked on images, and there are none")
    images = images.detach().clone().to(classifier.device or images.device)
    truth = None if labels is None else per_image("labels", labels, images)
    seen = {
        "training_mode": _training_mode(classifier),
        "normalised_inputs": _normalised_inputs(images),
    }
    with _undisturbed(images.device), classifier.frozen():
        logits = _answers(classifier, images)
        finite = logits.isfinite().all(dim=1)
        seen["nonfinite_logits"] = _nonfinite(finite)
        seen["softmax_outputs"] = softmax_outputs(classifier, logits[finite])
        seen["random_logits"] = _random_logits(classifier, images[finite], logits[finite])
        seen["zero_gradients"] = _zero_gradients(classifier, images[finite])
        if truth is not None:
            check_range("labels", truth, logits.shape[1])
            right = finite & (logits.argmax(dim=1) == truth)
            seen["low_accuracy"] = _low_accuracy(right)
            seen["other_normalisation"] = _other_normalisation(classifier, images, truth, right)
            if not seen["normalised_inputs"]:
                seen["pgd_overstates"] = _pgd_overstates(classifier, images, truth, right, eps)
    return [Flag(name, seen[name], advice) for name, advice in ADVICE.items() if seen.get(name)]


def check_card(facts: Mapping[str, Any]) -> list[Flag]:
    """The flags of a model card; empty if there are none."""
    name, sentence = "pgd_overstates", overstatement(facts)
    return [Flag(name, f"its card: {sentence}", ADVICE[name])] if sentence else []


def check_result(result: AttackResult) -> list[Flag]:
    """The flags of the result of an attack; empty if there are none."""
    searched = int((result.backwards > 0).sum())
    beaten = flag_beaten(int(result.beaten_by_scores.sum()), searched)
    noise = largest_noise(result)
    return flag_noise(int(result.within_noise.sum()), len(result), noise) + beaten


def flag_noise(doubtful: int, images: int, noise: float) -> list[Flag]:
    """The flag of results within the numerical noise, if there are any.

    Args:
        doubtful: How many images have a margin within it.
        images: How many images there are.
        noise: How far margins may change with the batch, in logits.
    """
    if not doubtful:
        return []
    name = "within_noise"
    sentence = (
        f"another batch size may decide otherwise on {doubtful} of {images} images, whose margin "
        f"is within the noise of {noise:.2g} logits"
    )
    return [Flag(name, sentence, ADVICE[name])]


def flag_beaten(beaten: int, searched: int) -> list[Flag]:
    """The flag of a score search that found fewer changes than gradient search on enough images.

    On one or two images that may be chance.

    Args:
        beaten: Images where it found fewer.
        searched: Images that were searched with gradients.
    """
    if beaten < _ENOUGH or beaten * _TELLING < searched:
        return []
    name = "scores_beat_gradients"
    sentence = f"score search found fewer than gradient search on {beaten} of {searched} images"
    return [Flag(name, sentence, ADVICE[name])]


def _training_mode(model: Classifier) -> str:
    if not isinstance(model.net, nn.Module):
        return ""
    modules = [type(module).__name__ for module in model.net.modules() if module.training]
    if not modules:
        return ""
    telling = sorted(set(modules), key=lambda k: ("Dropout" not in k, "Norm" not in k, k))
    return f"{len(modules)} of its modules are in training mode, such as {', '.join(telling[:3])}"


def _normalised_inputs(images: Images) -> str:
    low, high = images.min().item(), images.max().item()
    if low < 0 or high > 1:
        return f"the images run from {shown(low)} to {shown(high)}; {way_back(low, high)}"
    if 0 < high <= 1 / 255:
        return f"no value of the images is above {shown(high)}, as if divided by 255 twice"
    return ""


def _nonfinite(finite: Mask) -> str:
    bad = int((~finite).sum())
    return f"the logits of {bad} of {len(finite)} images are NaN or infinite" if bad else ""


def softmax_outputs(model: Classifier, logits: Logits) -> str:
    """A sentence if the outputs are probabilities, which add up to 1; otherwise empty text.

    The one-hot scores of a model that gives labels alone may add up to 1, too.
    """
    if model.access == "labels" or not len(logits):
        return ""
    shares = (logits >= 0).all() and ((logits.sum(dim=1) - 1).abs() < 1e-3).all()
    return "the outputs of every image lie in [0, 1] and add up to 1" if shares else ""


def _random_logits(model: Classifier, images: Images, logits: Logits) -> str:
    """Rounding may differ from call to call, by far less than a thousandth of the logits' range."""
    images, first = images[:_SEVERAL], logits[:_SEVERAL]
    if not len(images):
        return ""
    spread = (first.amax(dim=1) - first.amin(dim=1)).clamp(min=1e-12)
    furthest = torch.zeros_like(spread)
    for _ in range(_REPEATS):
        apart = (_answers(model, images) - first).abs().amax(dim=1) / spread
        furthest = torch.maximum(furthest, apart.nan_to_num(torch.inf))
    differing = int((furthest > 1e-3).sum())
    if not differing:
        return ""
    return f"asked again, the model gives other logits for {differing} of {len(images)} images"


def _zero_gradients(model: Classifier, images: Images) -> str:
    if not gives(model.access, "gradients") or not len(images):
        return ""
    images = images[:_SEVERAL].requires_grad_()
    with torch.enable_grad():
        logits = model(images)
        if not logits.requires_grad:
            return "the model passes no gradient back to its images"
        goal = Goal(logits.argmax(dim=1))
        for name, loss in (("margin", goal.margin), ("cross-entropy", goal.cross_entropy)):
            total = loss(logits).sum()
            (grad,) = torch.autograd.grad(total, images, retain_graph=True, materialize_grads=True)
            dead = (~grad.isfinite() | (grad == 0)).flatten(1).all(dim=1)
            if dead.any():
                some = f"{int(dead.sum())} of {len(images)} images"
                return f"the gradient of the {name} is zero or not finite for {some}"
    return ""


def _low_accuracy(right: Mask) -> str:
    """Below one half, a fooling rate over correct images describes a minority."""
    count = int(right.sum())
    return (
        f"{count} of {len(right)} images are classified as labelled"
        if 2 * count < len(right)
        else ""
    )


_Statistics = tuple[tuple[float, ...] | None, tuple[float, ...] | None]
_STATISTICS: dict[
    int, list[_Statistics]
] = {  # what networks of three channels, and of one, are commonly trained with
    3: [((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.5,) * 3, (0.5,) * 3)],
    1: [((0.1307,), (0.3081,)), ((0.5,), (0.5,))],
}


def _other_normalisation(model: Classifier, images: Images, labels: Labels, right: Mask) -> str:
    """Whether a common mean and std, or none, classify better than the model's own.

    A sign test over the images on which the two differ, at a level of 1 %.
    """
    if images.min() < 0 or images.max() > 1 or (~right).sum() < _FEWEST:
        return ""
    plain: list[_Statistics] = [(None, None)]
    for mean, std in plain + _STATISTICS.get(images.shape[1], []):
        other = Classifier(model.net, mean=mean, std=std)
        logits = _answers(other, images)
        better = (logits.argmax(dim=1) == labels) & logits.isfinite().all(dim=1)
        if _by_chance(int((better & ~right).sum()), int((right & ~better).sum())) < 0.01:
            return (
                f"with mean={mean} and std={std} {int(better.sum())} of {len(images)} images "
                f"are classified as labelled, as given {int(right.sum())}"
            )
    return ""


def _pgd_overstates(
    model: Classifier, images: Images, labels: Labels, right: Mask, eps: float
) -> str:
    """Whether a stronger PGD fools clearly more images than the usual one with 20 steps."""
    if not gives(model.access, "gradients"):
        return ""
    most = max(2 * _SEVERAL, min(_ATTACKED, _ELEMENTS // images[:1].numel()))
    rows = right.nonzero().squeeze(1)[:most]
    if len(rows) < _SEVERAL:
        return ""
    images, labels = images[rows], labels[rows]
    plain, strong = plain_pgd(eps), strong_pgd(eps)
    left = stay_correct(plain, model, images, labels)
    worst = stay_correct(strong, model, images, labels, among=left)
    before, after = int(left.sum()), int(worst.sum())
    if before - after < _ENOUGH or before - after <= TOLERATED * len(rows):
        return ""
    return (
        f"{linf_attack(asdict(plain))} leaves {before} of {len(rows)} images correct, "
        f"{linf_attack(asdict(strong))} only {after}"
    )


def _by_chance(wins: int, losses: int) -> float:
    """The probability of at least so many wins of a fair coin."""
    tosses = wins + losses
    return math.fsum(math.comb(tosses, k) / 2**tosses for k in range(wins, tosses + 1))


def _answers(model: Classifier, images: Images) -> Logits:
    with torch.no_grad():
        return torch.cat([check_answers(model(part), part) for part in images.split(32)])


@contextmanager
def _undisturbed(device: torch.device) -> Iterator[None]:
    """Restore the global random state at the end, also of NumPy and Python."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
