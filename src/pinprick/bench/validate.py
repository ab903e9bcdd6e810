"""What a plan would take, from a few measured passes, before anything runs.

Times are those of passes, where every image spends all that its attack may; what attacks do between
passes is not measured. Memory is a lower bound: what one batch needs for its passes.
"""

import math
import os
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from pinprick.attacks.build import build
from pinprick.bench.cache import Cache
from pinprick.bench.cell import Cell
from pinprick.errors import BadInput
from pinprick.model import Classifier, gives
from pinprick.threads import limited_threads
from pinprick.types import Images

_CGROUP = Path("/sys/fs/cgroup")
_PASSES = 3  # that are measured, after one to warm up
_MOST = 32  # images of a measured pass
_COPIES = 4  # of a batch that attacks hold besides: images, adversarial ones, gradient, best so far


@dataclass(frozen=True)
class PassCost:
    """What passes of one model cost.

    Attributes:
        forward: Seconds of a forward pass per image.
        backward: Seconds of a backward pass per image; 0 for a model without gradients.
        memory: Bytes that one batch needs at least.
        free: Bytes that are free on the device.
    """

    forward: float
    backward: float
    memory: int
    free: int


@dataclass(frozen=True)
class GroupEstimate:
    """What the cells of one model, attack and limit would take.

    Attributes:
        model: Name of the model.
        attack: Name of the attack.
        cells: Number of cells.
        images: Images of all cells together, seeds and goals counted each.
        forwards: Most forward passes per image; None if the attack does not say.
        backwards: Most backward passes per image; None if the attack does not say.
        seconds: Most seconds of passes on one worker; None if the passes are unknown.
        memory: Bytes that one batch needs at least.
    """

    model: str
    attack: str
    cells: int
    images: int
    forwards: int | None
    backwards: int | None
    seconds: float | None
    memory: int


def estimate(cells: Sequence[Cell], loaded: Cache | None = None) -> list[GroupEstimate]:
    """What cells would take; ``BadInput`` where a batch does not fit into memory.

    Args:
        cells: The cells of a plan.
        loaded: Models and images that are loaded already.
    """
    cache = loaded or Cache()
    costs: dict[tuple[object, ...], PassCost] = {}
    estimates = []
    for group in _groups(cells):
        one = group[0]
        setting = (one.model, one.data, one.device, one.threads, one.batch_size)
        if setting not in costs:
            costs[setting] = measure_passes(one, cache)
        cost, images = costs[setting], sum(map(len, group))
        facts = build(one.attack).facts()
        forwards = _least(facts.max_forwards, one.max_forwards)
        backwards = _least(facts.max_backwards, one.max_backwards)
        seconds = None
        if forwards is not None and backwards is not None:
            forwards, backwards = _cut(forwards, backwards, one.max_passes)
            seconds = images * (forwards * cost.forward + backwards * cost.backward)
        name = str(one.attack["name"])
        estimates.append(
            GroupEstimate(
                one.model, name, len(group), images, forwards, backwards, seconds, cost.memory
            )
        )
    return estimates


def measure_passes(cell: Cell, cache: Cache) -> PassCost:
    """Time and memory of a few passes of the cell's model, on its device and threads."""
    model = cache.model_of(cell)
    device = model.device or torch.device("cpu")
    count = min(cell.batch_size, len(cell))
    last = cell.first + min(count, _MOST)
    given = cache.images(cell.model, cell.data, cell.first, last, by_number=cell.labels_by_number)
    images = given.images.to(device)
    graded = gives(model.access, "gradients")
    with limited_threads(cell.threads), model.frozen():
        per_image = _COPIES * images[0].nbytes + _bytes_for_backward(model, images[:1])
        memory, free = count * per_image, _free_memory(device)
        if memory > free:
            raise BadInput(
                f"a batch of {count} images on {cell.model} needs at least {in_gb(memory)} of "
                f"memory, and {in_gb(free)} are free on {device}; set batch_size to at most "
                f"{max(1, free // per_image)}"
            )
        times = [_time_passes(model, images, graded=graded) for _ in range(1 + _PASSES)][1:]
    forward, backward = (statistics.median(column) for column in zip(*times, strict=True))
    return PassCost(forward / len(images), backward / len(images), memory, free)


def in_gb(count: int) -> str:
    """A number of bytes in words, as in "1.5 GB"."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that differ in range, goal and seed alone."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        limits = (cell.max_forwards, cell.max_backwards, cell.max_passes)
        what = (cell.model, cell.data, str(cell.attack), *limits)
        groups.setdefault((*what, cell.device, cell.threads, cell.batch_size), []).append(cell)
    return list(groups.values())


def _cut(forwards: int, backwards: int, most: int | None) -> tuple[int, int]:
    """Both numbers, in the same proportion, so that their sum is at most ``most``."""
    total = forwards + backwards
    if most is None or total <= most:
        return forwards, backwards
    return most - most * backwards // total, most * backwards // total


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _time_passes(model: Classifier, images: Images, *, graded: bool) -> tuple[float, float]:
    """Seconds of a forward and of a backward pass for all images."""
    inputs = images.clone().requires_grad_(graded)
    with torch.set_grad_enabled(graded):
        start = _now(images)
        logits = model(inputs)
        middle = _now(images)
        if not logits.requires_grad:
            return middle - start, 0.0
        torch.autograd.grad(logits.sum(), inputs)
        return middle - start, _now(images) - middle


def _now(images: Images) -> float:
    if images.device.type == "cuda":
        torch.cuda.synchronize(images.device)
    return time.perf_counter()


def _bytes_for_backward(model: Classifier, image: Images) -> int:
    """Bytes that a forward pass keeps for the backward pass of one image, weights left out."""
    parameters = model.net.parameters() if isinstance(model.net, nn.Module) else ()
    weights = {parameter.data_ptr() for parameter in parameters}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in weights:
            kept[tensor.data_ptr()] = tensor.nbytes
        return tensor

    with (
        torch.enable_grad(),
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
    ):
        model(image.clone().requires_grad_(gives(model.access, "gradients")))
    return sum(kept.values())


def _free_memory(device: torch.device) -> int:
    """Bytes that are free on a device; what the system and the container can give on a CPU."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable"))
        return int(min(int(found.split()[1]) * 1024, *_left_to_container()))
    except (OSError, StopIteration):  # not Linux
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_to_container() -> Iterator[float]:
    """Bytes below the limit of the control group, in versions 2 and 1; infinite without one.

    Cached files that are not in use do not count, since the system drops them first.
    """
    yield math.inf
    for folder, limit, used, cached in (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            most, now, stat = (
                (_CGROUP / folder / name).read_text() for name in (limit, used, "memory.stat")
            )
            unused = next(line for line in stat.splitlines() if line.startswith(f"{cached} "))
            yield int(most) - int(now) + int(unused.split()[1])
        except (OSError, StopIteration, ValueError):  # no such group, or no limit ("max")
            continue
