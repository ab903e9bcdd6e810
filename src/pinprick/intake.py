"""Input is checked here and nowhere deeper: what was expected, what came, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pinprick.attacks.card import Attack, Card, Inputs
from pinprick.batch_rows import BatchRows
from pinprick.conversion_line import channels_last, conversion_line
from pinprick.errors import BadInput, first_sentence
from pinprick.goal import Goal
from pinprick.model import Classifier, gives
from pinprick.result import AttackResult
from pinprick.trace import Passes
from pinprick.types import Allowed, Images, Labels, Logits

_ROOM = 64 * 3 * 224 * 224  # elements of a batch, unless its size is given


@dataclass(frozen=True)
class Task(BatchRows):
    """Checked input: images, their goal, and the limits of the attack."""

    images: Images
    goal: Goal
    ids: Labels
    allowed: Allowed | None
    batch_size: int
    max_forwards: int | None
    max_backwards: int | None
    max_seconds: float | None = None
    max_passes: int | None = None
    start: "Start | None" = None
    trace: bool = False

    def __len__(self) -> int:
        return len(self.images)

    def limits(self) -> dict[str, Any]:
        """The given limits under one name; empty if there are none."""
        names = ("max_forwards", "max_backwards", "max_passes", "max_seconds")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {"limits": given} if given else {}

    def batches(self) -> Iterator["Task"]:
        """The task in batches; one empty batch if there are no images."""
        for start in range(0, max(1, len(self)), self.batch_size):
            yield self[start : start + self.batch_size]

    def halves(self) -> "tuple[Task, Task]":
        middle = len(self) // 2
        return self[:middle], self[middle:]

    def first_image(self, device: torch.device | None) -> Images:
        return self.images[:1].to(device or self.images.device)


@dataclass(frozen=True)
class Start(BatchRows):
    """The images to begin at, and the passes and name of the attack that made them.

    Images of the caller's own took no passes.
    """

    images: Images
    passes: Passes
    made_by: dict[str, Any]


@torch.inference_mode(False)  # so that gradients can flow, in whatever mode the caller is
def take_in(
    images: Any,
    labels: Any,
    targets: Any,
    allowed: Any,
    ids: Any,
    batch_size: Any,
    max_forwards: Any,
    max_backwards: Any,
    max_seconds: Any = None,
    max_passes: Any = None,
) -> Task:
    """The arguments of ``run_attack`` as a task; raises ``BadInput`` where they do not fit."""
    check_images(images)
    if labels is None:
        raise BadInput(
            "labels are missing: give one class per image, or batches of (images, labels)"
        )
    labels = per_image("labels", labels, images)
    targets = None if targets is None else per_image("targets", targets, images)
    if targets is not None and (targets == labels).any():
        row = int((targets == labels).nonzero()[0])
        raise BadInput(
            f"target and label are both {int(labels[row])} for image {row}; "
            "a target must be another class"
        )
    numbers = torch.arange(len(images)) if ids is None else ids
    batch_size = batch_size_for(images, batch_size)
    limits = {
        "max_forwards": max_forwards,
        "max_backwards": max_backwards,
        "max_passes": max_passes,
    }
    for name, value in limits.items():
        if value is not None:
            check_whole(name, value, least=0)
    if max_seconds is not None:
        max_seconds = _check_seconds(max_seconds)
    return Task(
        images=_own(images.detach()),
        goal=Goal(labels, targets),
        ids=per_image("ids", numbers, images),
        allowed=None if allowed is None else full_mask(allowed, images),
        batch_size=batch_size,
        max_forwards=max_forwards,
        max_backwards=max_backwards,
        max_seconds=max_seconds,
        max_passes=max_passes,
    )


def batch_size_for(images: Images, given: Any = None) -> int:
    """The batch size: as given, or as large as memory allows."""
    if given is None:
        return max(1, min(256, _ROOM // max(1, images[:1].numel())))
    return check_whole("batch_size", given, least=1)


def check_whole(name: str, value: Any, least: int) -> int:
    """The whole number; raises ``BadInput`` where it is none, or below ``least``."""
    if not isinstance(value, int) or value < least:
        raise BadInput(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def _check_seconds(value: Any) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not value >= 0:  # so that NaN is refused
        raise BadInput(f"max_seconds must be a number of seconds of at least 0, got {value!r}")
    return float(value)


def take_start(task: Task, start: Any) -> Task:
    """The task with its start; raises ``BadInput`` where the start does not fit."""
    if isinstance(start, Tensor):
        return replace(task, start=_given_start(task, start))
    if not isinstance(start, AttackResult):
        raise BadInput(
            f"start must be the result of an attack, or a tensor like images, got {_brief(start)}"
        )
    _check_start_shape(task, start.images)
    start = start.to(task.images.device)
    other = (start.images != task.images).flatten(1).any(dim=1).nonzero()
    if len(other):
        raise BadInput(f"start must be of the same images, in order; image {int(other[0])} differs")
    passes = Passes(start.forwards, start.backwards)
    made_by = {**start.attack, "model": start.model}
    return replace(task, start=Start(_where_allowed(task, start.adversarial), passes, made_by))


def _given_start(task: Task, images: Tensor) -> Start:
    """Images of the caller's own to begin at, such as some of the target classes."""
    _check_start_shape(task, images)
    if not ((images >= 0) & (images <= 1)).all():  # which is false of NaN, too
        raise BadInput(
            "start must hold images in [0, 1], "
            f"these run from {shown(images.min().item())} to {shown(images.max().item())}"
        )
    none = torch.zeros_like(task.ids)
    images = _own(images.detach()).to(task.images.device)
    return Start(_where_allowed(task, images), Passes(none, none), {"name": "given images"})


def _where_allowed(task: Task, adv: Images) -> Images:
    adv = adv.to(task.images.dtype)
    return adv if task.allowed is None else torch.where(task.allowed, adv, task.images)


def _check_start_shape(task: Task, images: Tensor) -> None:
    if images.shape != task.images.shape:
        raise BadInput(
            f"start must be of the same images: it has the shape {tuple(images.shape)}, "
            f"the images have {tuple(task.images.shape)}"
        )


def check_parties(attack: Any, model: Any) -> None:
    """Raise ``BadInput`` unless this is an attack with its settings, and a model."""
    if isinstance(attack, type):
        raise BadInput(f"attack must come with its settings, as in {attack.__name__}(...)")
    if not isinstance(attack, Attack):
        raise BadInput(
            f"attack must be such as IFGSM(), got {_brief(attack)}; build(name) makes one by name"
        )
    if not callable(model):
        raise BadInput(
            "model must be a Classifier, a network or a function of images, "
            f"got {_brief(model)}; load_model(name) gives one by name"
        )


def check_images(images: Any) -> None:
    """Raise ``BadInput`` unless these are images in [0, 1]."""
    check_pictures(images)
    if not len(images):
        return
    low, high = images.min().item(), images.max().item()
    if low < 0 or high > 1:
        raise BadInput(
            f"images must lie in [0, 1], these run from {shown(low)} to {shown(high)}; "
            f"{way_back(low, high)}"
        )


def check_pictures(images: Any) -> None:
    """Raise ``BadInput`` unless these are images, of any range."""
    if isinstance(images, np.ndarray):
        raise BadInput(
            f"images must be a torch tensor, got a numpy array of {images.dtype} {images.shape}; "
            f"use {conversion_line(images)}"
        )
    if not isinstance(images, Tensor):
        raise BadInput(f"images must be a torch tensor, got {type(images).__name__}")
    if not images.is_floating_point():
        raise BadInput(
            f"images must be floating-point numbers in [0, 1], got {images.dtype}; "
            f"use {conversion_line(images)}"
        )
    if channels_last(tuple(images.shape)):
        raise BadInput(
            "images must have the shape (batch, channel, height, width), "
            f"got {tuple(images.shape)}, where channels come last; use {conversion_line(images)}"
        )
    if images.ndim != 4:
        raise BadInput(
            "images must have the shape (batch, channel, height, width), "
            f"got {tuple(images.shape)}; a single image needs images[None]"
        )
    if not len(images):
        return
    if not images.numel():
        raise BadInput(f"images of shape {tuple(images.shape)} hold no values")
    if images.min().isnan():  # it is, if any value is
        row = int(images.isnan().flatten(1).any(dim=1).nonzero()[0])
        raise BadInput(f"images must lie in [0, 1], image {row} holds NaN")


def shown(value: float) -> str:
    """The number in as few digits as show on which side of 0 and 1 it lies."""
    for digits in (3, 6, 9):
        text = f"{value:.{digits}g}"
        if (float(text) < 0, float(text) > 1) == (value < 0, value > 1):
            return text
    return repr(value)


def way_back(low: float, high: float) -> str:
    """Advice for images of this range."""
    if low >= -0.01 and high <= 1.01:
        return "images.clamp(0, 1) takes off what rounding or resizing left"
    if low >= 0 and 16 < high <= 255:
        return "divide 8-bit images by 255"
    return "leave normalisation to Classifier(mean=..., std=...)"


def check_access(facts: Card, model: Classifier, task: Task) -> None:
    """Raise ``BadInput`` where attack, model and task do not fit together."""
    if task.goal.targets is not None and not facts.targeted:
        if facts.inputs is not None:
            raise BadInput(
                f"{facts.name} with these weights has no targeted form; leave targets out, or "
                "train a generator for the target"
            )
        raise BadInput(f"{facts.name} has no targeted form; leave targets out")
    if task.allowed is not None and not facts.masked:
        raise BadInput(f"{facts.name} cannot keep to a mask; leave it out")
    if task.start is not None and not facts.starts:
        raise BadInput(
            f"{facts.name} cannot begin at the result of another attack; leave start out"
        )
    if facts.eight_bit:
        _check_grid(facts, task.images)
    least = facts.least_access or facts.access
    if not gives(model.access, least):
        raise BadInput(
            f"{facts.name} needs {least}, but {model.name} gives {model.access} alone; "
            "`pinprick attacks` says what each attack needs"
        )
    if facts.inputs is not None:
        _check_inputs(facts.name, facts.inputs, model, task)


def _check_inputs(name: str, inputs: Inputs, model: Classifier, task: Task) -> None:
    """Raise ``BadInput`` unless weights were trained for this model, these images and the goal."""
    own, given = inputs.shape, tuple(task.images.shape[1:])
    if given != own:
        raise BadInput(
            f"{name} with these weights takes images of {_sides(own)}, got {_sides(given)}; "
            "train a generator for such images"
        )
    if model.digest != inputs.network:
        raise BadInput(
            f"{name} with these weights attacks {inputs.model}, and {model.name} is another "
            "network; attack that model and test the adversarial images on this one, or train a "
            "generator for it"
        )
    targets = task.goal.targets
    if inputs.target is not None and (targets is None or (targets != inputs.target).any()):
        raise BadInput(
            f"{name} with these weights aims at class {inputs.target} alone; "
            "give it as the target of each image, or train a generator for another"
        )


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _check_grid(facts: Card, images: Images) -> None:
    off = (images * 255 - (images * 255).round()).abs().flatten(1)
    rows = (off > 1e-3).any(dim=1).nonzero()
    if len(rows):
        row = int(rows[0])
        raise BadInput(
            f"{facts.name} was asked for 8-bit values, but image {row} has values off the 8-bit "
            f"grid (by up to {off[row].max().item():.2g} of a step); round it or use free values"
        )


def check_answers(logits: Any, images: Images) -> Logits:
    """The logits, once they are known to have one row per image."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(images):
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise BadInput(
            f"the model must give logits of shape (batch, classes) for {len(images)} images, "
            f"got {shape}"
        )
    if logits.shape[1] < 2:
        raise BadInput(
            "the model gives one score per image; a classifier needs at least two classes"
        )
    return logits


@contextmanager
def explain_size(model: Classifier, images: Images) -> Iterator[None]:
    """Raise ``BadInput`` where a network fails on images of another size than the model's.

    Other sizes alone are no error: many networks take any.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        if model.size is None or tuple(images.shape[-2:]) == tuple(model.size):
            raise
        own, given = (" x ".join(map(str, size)) for size in (model.size, images.shape[-2:]))
        raise BadInput(
            f"{model.name} takes images of {own}, got {given}; resize them "
            f"({first_sentence(error)})"
        ) from error


def check_class_names(model: Classifier, logits: Logits) -> None:
    """Raise ``BadInput`` unless the model names none of its classes, or each."""
    names, outputs = len(model.classes), logits.shape[1]
    if names not in (0, outputs):
        raise BadInput(
            f"{model.name} has {outputs} outputs but {names} names of classes; "
            "give Classifier(classes=...) one name per output"
        )


def check_classes(task: Task, logits: Logits) -> None:
    """Raise ``BadInput`` unless labels and targets are classes of the model."""
    check_range("labels", task.goal.labels, logits.shape[1])
    if task.goal.targets is not None:
        check_range("targets", task.goal.targets, logits.shape[1])


def check_range(name: str, values: Labels, classes: int) -> None:
    """Raise ``BadInput`` unless all values are classes of the model."""
    if values.min() < 0 or values.max() >= classes:
        raise BadInput(
            f"{name} must lie in 0 to {classes - 1}, the model's {classes} classes; "
            f"these run from {int(values.min())} to {int(values.max())}"
        )


def per_image(name: str, given: Any, images: Images) -> Labels:
    """One whole number per image, from a tensor or any sequence."""
    try:
        values: Tensor = torch.as_tensor(given, device=images.device)
    except (TypeError, ValueError, RuntimeError):
        raise BadInput(f"{name} must be whole numbers, got {_brief(given)}") from None
    if values.numel() and not _is_whole(values):
        raise BadInput(f"{name} must be whole numbers, got {values.dtype}")
    if values.shape != (len(images),):
        raise BadInput(
            f"{name} must have one entry for each of the {len(images)} images, "
            f"got the shape {tuple(values.shape)}"
        )
    return _own(values.long())


def _own(tensor: Tensor) -> Tensor:
    """The tensor, or a copy if it was made in inference mode, which allows no gradients."""
    return tensor.clone() if tensor.is_inference() else tensor


def _is_whole(values: Tensor) -> bool:
    return not (values.is_floating_point() or values.is_complex() or values.dtype == torch.bool)


def _brief(given: Any) -> str:
    """What came, shortened to fit a line."""
    text = " ".join(repr(given).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def full_mask(given: Any, images: Images) -> Allowed:
    """The mask expanded to all images and channels, without a copy."""
    try:
        allowed: Tensor = torch.as_tensor(given, device=images.device)
    except (TypeError, ValueError, RuntimeError):
        raise BadInput(f"allowed must hold True and False, got {_brief(given)}") from None
    if allowed.dtype != torch.bool:
        raise BadInput(f"allowed must hold True and False, got {allowed.dtype}")
    fits = allowed.ndim == 4 and all(
        given in (1, wanted)
        for given, wanted in zip(allowed.shape[:2], images.shape[:2], strict=True)
    )
    if (allowed.ndim != 2 and not fits) or allowed.shape[-2:] != images.shape[2:]:
        raise BadInput(
            "allowed must have the shape (height, width) for all images, (batch, 1, height, width) "
            f"or (batch, channel, height, width); images are {tuple(images.shape)}, "
            f"got {tuple(allowed.shape)}{_three_sides(allowed)}"
        )
    return _own(allowed).expand(images.shape)


def _three_sides(allowed: Tensor) -> str:
    """The way out for a mask whose first side may mean images or channels."""
    if allowed.ndim != 3:
        return ""
    return "; allowed[:, None] is one mask per image, allowed[None] one per channel"
