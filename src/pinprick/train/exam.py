"""The final measurements of a trained network for its card: in float32, on test images."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pinprick.arithmetic import arithmetic
from pinprick.attacks.pinprick import Pinprick
from pinprick.attacks.sparse_rs import SparseRS
from pinprick.data.dataset import Dataset
from pinprick.model import Classifier
from pinprick.robust import plain_pgd, stay_correct, strong_pgd
from pinprick.run import attack_batches
from pinprick.settings import Settings, pixel_distance, setting
from pinprick.types import Mask

FEW = (10, 24)  # elements at which l0 accuracy is measured
_BLOCK = 1000  # images read at a time


@dataclass(frozen=True, kw_only=True)
class Exam(Settings):
    """The attacks that a trained network is measured with.

    Attributes:
        exam_eps: Radius of the l-infinity ball, where pixel values run from 0 to 1.
        exam_steps: Steps of PGD on the cross-entropy, from one random start.
        exam_step_size: Length of one of them; None for ``exam_eps / 4``.
        exam_images: Test images, spread evenly over the set, for accuracy and PGD; None for all.
        strong_images: How many of these are measured with the stronger PGD too, which attacks those
            that PGD did not fool; 0 to leave it out.
        strong_steps: Steps of the stronger PGD, which are ``exam_eps / 8`` long, on the margin.
        strong_restarts: Its random starts.
        l0_images: Test images, spread evenly, for Pinprick with effort "fast"; 0 to leave it out.
        l0_queries: Queries of Sparse-RS per number of elements, on images that Pinprick did not
            fool; 0 to leave it out.
    """

    exam_eps: float = pixel_distance(8 / 255)
    exam_steps: int = setting(20, least=1)
    exam_step_size: float | None = pixel_distance(None)
    exam_images: int | None = setting(None, least=1)
    strong_images: int = setting(1000, least=0)
    strong_steps: int = setting(50, least=1)
    strong_restarts: int = setting(5, least=1)
    l0_images: int = setting(1000, least=0)
    l0_queries: int = setting(1000, least=0)

    @classmethod
    def owner(cls) -> str:
        return "training"


def evaluate(exam: Exam, model: Classifier, test: Dataset, *, seed: int = 0) -> dict[str, Any]:
    """Accuracy, l-infinity accuracy and l0 accuracy, each with what it was measured on."""
    few = evenly_spaced(test, exam.exam_images)
    with arithmetic("float32", benchmark=True):
        facts, left = _plain_pgd(exam, model, few, seed)
    with arithmetic("float32", benchmark=False):
        # batches shrink during these attacks, and each new size would be benchmarked again
        if exam.strong_images:
            facts["strong_pgd"] = _strong_pgd(exam, model, few, left, seed)
        if exam.l0_images:
            facts["l0_elements"] = _few_elements(
                exam, model, evenly_spaced(test, exam.l0_images), seed
            )
    return facts


def evenly_spaced(data: Dataset, count: int | None) -> Dataset:
    """``count`` images at even distances over the set, so that all classes are represented."""
    if count is None or count >= len(data):
        return data
    return data[_evenly_spaced_rows(len(data), count)]


def _evenly_spaced_rows(total: int, count: int) -> Tensor:
    return torch.arange(count) * total // count if count < total else torch.arange(total)


def _plain_pgd(
    exam: Exam, model: Classifier, few: Dataset, seed: int
) -> tuple[dict[str, Any], Mask]:
    """Accuracy without an attack and under PGD, and which images PGD left correct."""
    pgd = plain_pgd(exam.exam_eps, exam.exam_steps, exam.exam_step_size)
    right, left = 0, []
    for start in range(0, len(few), _BLOCK):  # files are read as they are needed
        part = few[start : start + _BLOCK]
        for result in attack_batches(
            pgd,
            model,
            part.images(model),
            part.labels,
            **_shared_arguments(model, part, seed),
        ):
            right += int(result.correct.sum())
            left.append(~result.success)
    stood = torch.cat(left)
    facts = {
        "accuracy": _share(right, len(few)),
        "test_images": len(few),
        "pgd": {
            "accuracy": _mean(stood),
            "images": len(few),
            "eps": pgd.eps,
            "steps": pgd.steps,
            "step_size": pgd.step_size,
        },
    }
    return facts, stood


def _strong_pgd(
    exam: Exam, model: Classifier, few: Dataset, left: Mask, seed: int
) -> dict[str, Any]:
    """Accuracy under the worst case of PGD and the stronger one, and under PGD on the same images.

    Args:
        exam: The settings.
        model: The network.
        few: The images that PGD was run on.
        left: Which of them it left correct.
        seed: Of the random streams.
    """
    rows = _evenly_spaced_rows(len(few), exam.strong_images)
    pgd = strong_pgd(exam.exam_eps, exam.strong_steps, exam.strong_restarts)
    part = few[rows]
    stood = stay_correct(
        pgd,
        model,
        part.images(model),
        part.labels,
        among=left[rows],
        **_shared_arguments(model, part, seed),
    )
    return {
        "accuracy": _mean(stood),
        "pgd_accuracy": _mean(left[rows]),
        "images": len(rows),
        "eps": pgd.eps,
        "steps": pgd.steps,
        "step_size": pgd.step_size,
        "restarts": pgd.restarts,
        "loss": pgd.loss,
    }


def _few_elements(exam: Exam, model: Classifier, few: Dataset, seed: int) -> dict[str, Any]:
    """Accuracy with few elements changed: by Pinprick, and by the worst case with Sparse-RS."""
    images, labels = few.images(model), few.labels
    how = _shared_arguments(model, few, seed)
    needed = torch.cat(
        [
            result.needed_elements
            for result in attack_batches(
                Pinprick(effort="fast", stop_at=min(FEW)), model, images, labels, **how
            )
        ]
    )
    gradients = {k: needed > k for k in FEW}
    worst: dict[int, Mask] = {}
    left = torch.ones(len(few), dtype=torch.bool)
    for k in sorted(FEW):  # an image that k elements fool is fooled by more
        left = left & gradients[k]
        if exam.l0_queries:
            search = SparseRS(k=k, unit="elements", queries=exam.l0_queries)
            left = stay_correct(search, model, images, labels, among=left, k=k, **how)
        worst[k] = left
    attacks = ["Pinprick, effort fast"]
    if exam.l0_queries:
        attacks.append(f"Sparse-RS, {exam.l0_queries} queries per k")
    return {
        "accuracy": {str(k): _mean(worst[k]) for k in FEW},
        "pinprick_accuracy": {str(k): _mean(gradients[k]) for k in FEW},
        "images": len(few),
        "attacks": attacks,
    }


def _shared_arguments(model: Classifier, data: Dataset, seed: int) -> dict[str, Any]:
    """The arguments that every attack of the exam shares."""
    on_gpu = model.device is not None and model.device.type == "cuda"
    batch_size = _BLOCK if on_gpu and data.pixels is not None else None
    return {"ids": data.indices, "seed": seed, "batch_size": batch_size}


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4)


def _mean(mask: Mask) -> float:
    return _share(int(mask.sum()), len(mask))
