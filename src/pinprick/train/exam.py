"""What is measured of a network at the end, for its card: in float32, on test images."""

from dataclasses import dataclass
from typing import Any

import torch

from pinprick.attacks.card import Attack
from pinprick.attacks.pgd import PGD
from pinprick.attacks.pinprick import Pinprick
from pinprick.data.dataset import Dataset
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.run import attack_batches
from pinprick.train.recipe import check_range

FEW = (10, 24)  # elements at which l0 accuracy is told


@dataclass(frozen=True, kw_only=True)
class Exam:
    """The attacks that a trained network has to stand.

    Attributes:
        exam_eps: Radius of PGD's ball, where pixel values run from 0 to 1.
        exam_steps: Steps of PGD, from one random start.
        exam_step_size: Length of one of them; None for ``exam_eps / 4``.
        exam_images: Test images, spread evenly over the set, for accuracy and PGD; None for all.
        l0_images: Test images, spread evenly, for Pinprick with effort "fast"; 0 to leave it out.
    """

    exam_eps: float = 8 / 255
    exam_steps: int = 20
    exam_step_size: float | None = None
    exam_images: int | None = None
    l0_images: int = 1000

    def __post_init__(self) -> None:
        check_range(
            "training", 0.0, 1.0, exam_eps=self.exam_eps, exam_step_size=self.exam_step_size
        )
        if self.exam_steps < 1:
            raise BadInput(f"training needs exam_steps >= 1, got {self.exam_steps}")
        if self.exam_images is not None and self.exam_images < 1:
            raise BadInput(f"training needs exam_images >= 1, got {self.exam_images}")
        if self.l0_images < 0:
            raise BadInput(f"training needs l0_images >= 0, got {self.l0_images}")


def take_exam(exam: Exam, model: Classifier, test: Dataset, *, seed: int = 0) -> dict[str, Any]:
    """Accuracy, accuracy under PGD and l0 accuracy, each with what it was measured on."""
    few = spread(test, exam.exam_images)
    step_size = exam.exam_eps / 4 if exam.exam_step_size is None else exam.exam_step_size
    pgd = PGD(eps=exam.exam_eps, steps=exam.exam_steps, step_size=step_size)
    right = stood = 0
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
        for clean, _, held in _attacked(pgd, model, few, seed):
            right, stood = right + clean, stood + held
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, allow_tf32=False):
        # images leave this attack, and each size of batch would be tried out anew
        facts: dict[str, Any] = {
            "accuracy": _share(right, len(few)),
            "test_images": len(few),
            "pgd": {
                "accuracy": _share(stood, len(few)),
                "images": len(few),
                "eps": exam.exam_eps,
                "steps": exam.exam_steps,
                "step_size": step_size,
            },
        }
        if exam.l0_images:
            fewer = spread(test, exam.l0_images)
            attack = Pinprick(effort="fast", stop_at=min(FEW))
            needed = torch.cat([needed for _, needed, _ in _attacked(attack, model, fewer, seed)])
            facts["l0_elements"] = {
                "accuracy": {str(k): _share(int((needed > k).sum()), len(fewer)) for k in FEW},
                "images": len(fewer),
                "attack": "pinprick, effort fast",
            }
    return facts


def spread(data: Dataset, count: int | None) -> Dataset:
    """``count`` images at even distances over the set, so that every class has its share."""
    if count is None or count >= len(data):
        return data
    return data[torch.arange(count) * len(data) // count]


def _attacked(
    attack: Attack, model: Classifier, data: Dataset, seed: int
) -> list[tuple[int, torch.Tensor, int]]:
    """Right ones, units needed and ones that were not fooled, batch for batch."""
    found = []
    on_gpu = model.device is not None and model.device.type == "cuda"
    for start in range(0, len(data), 1000):  # files are read as they are needed
        part = data[start : start + 1000]
        for result in attack_batches(
            attack,
            model,
            part.images(model),
            part.labels,
            ids=part.indices,
            seed=seed,
            batch_size=1000 if on_gpu and part.pixels is not None else None,
        ):
            held = int((~result.success).sum())
            found.append((int(result.correct.sum()), result.needed_elements, held))
    return found


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4)
