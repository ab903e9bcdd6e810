"""Models whose optimal attacks are known, to test attacks against.

On a linear model the fewest changes are found by sorting. To lift class j over the label y,
element i can be pushed to either end of its box, and the better end gains

    gain_i = max over v in {low_i, high_i} of (w_j - w_y)_i * (v - x_i)  >=  0.

The gap closes by the sum of the gains, so the fewest elements against j are the largest gains that
together close it, and the fewest of all is the minimum over j. A pixel gains what its channels
gain. Reaching one of many classes closes several gaps at once, which sorting cannot do:
``fewest_for_target`` leaves that to an integer program, on a few dozen elements.

Ties go to the lower class, as in ``argmax``. The models here compute in multiples of 1/65536
without rounding, so ties are exact and every batch size gives the same sums.
"""

from typing import Any

import torch
from torch import Tensor, nn

from pinprick.errors import BadInput, MissingExtra
from pinprick.goal import Goal
from pinprick.metrics.unit import Unit, check_unit
from pinprick.model import Classifier
from pinprick.types import Allowed, Images, PerImage

MOST_ELEMENTS = 48  # most elements of an image for the integer program
_MARGIN = 1e-4  # by which the target must win there, well above the solver's own tolerance


def exact_linear(
    classes: int,
    shape: tuple[int, int, int],
    seed: int = 0,
    *,
    dtype: torch.dtype = torch.float64,
) -> Classifier:
    """A linear classifier of (channel, height, width) images; weights are multiples of 1/256."""
    generator = torch.Generator().manual_seed(seed)
    layer = nn.Linear(torch.Size(shape).numel(), classes).to(dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.randint(-64, 65, layer.weight.shape, generator=generator) / 256)
        layer.bias.zero_()
    return Classifier(nn.Sequential(nn.Flatten(), layer), name="exact linear")


def exact_images(
    count: int,
    shape: tuple[int, int, int],
    seed: int = 1,
    *,
    dtype: torch.dtype = torch.float64,
) -> Images:
    """Random images whose values are multiples of 1/256, none of them near an end of the box."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(32, 225, (count, *shape), generator=generator).to(dtype) / 256


def sure_images(model: Classifier, images: Images) -> Images:
    """The images, moved towards one class after another, so that fooling the model takes more.

    Their values stay multiples of 1/256 that keep away from the ends of the box.
    """
    weight, _ = _read_linear(model, images)
    classes = torch.arange(len(images), device=images.device) % len(weight)
    drawn = images + 2 * weight[classes].view_as(images)
    return (drawn.clamp(1 / 16, 15 / 16) * 256).round() / 256


def fewest_elements(
    model: Classifier,
    images: Images,
    goal: Goal,
    *,
    allowed: Allowed | None = None,
    eps: float | None = None,
) -> PerImage:
    """Fewest elements whose change meets the goal; infinite where no change is enough.

    Args:
        model: Linear in its images; with targets, of two classes.
        images: The clean images.
        goal: The goal.
        allowed: Where values may change; None for everywhere.
        eps: Most that a value may change; None for all of [0, 1].
    """
    _, gap, gains = _gaps_and_gains(model, images, goal, allowed, eps)
    return _fewest(gap, gains, goal)


def fewest_pixels(
    model: Classifier,
    images: Images,
    goal: Goal,
    *,
    allowed: Allowed | None = None,
    eps: float | None = None,
) -> PerImage:
    """Fewest pixels whose change meets the goal; arguments as for ``fewest_elements``."""
    _, gap, gains = _gaps_and_gains(model, images, goal, allowed, eps)
    return _fewest(gap, gains.unflatten(2, (images.shape[1], -1)).sum(dim=2), goal)


def nearest_l2(model: Classifier, images: Images, goal: Goal) -> PerImage:
    """Euclidean distance to the nearest boundary without the box, which DeepFool finds."""
    steer, gap, _ = _gaps_and_gains(model, images, goal, None, None)
    distance: PerImage = (gap / steer.norm(dim=2)).amin(dim=1).clamp(min=0)
    return distance


def fewest_for_target(
    model: Classifier,
    images: Images,
    goal: Goal,
    *,
    unit: Unit = "elements",
    allowed: Allowed | None = None,
    eps: float | None = None,
) -> PerImage:
    """Fewest changes that make the target win over every class, by an integer program.

    Needs SciPy and images of at most 48 elements. The target has to win by 0.0001, so that the
    solver's tolerance does not decide.
    """
    check_unit(unit)
    if goal.targets is None:
        raise BadInput("fewest_for_target needs a goal with targets")
    if images[:1].numel() > MOST_ELEMENTS:
        raise BadInput(
            f"the integer program takes images of at most {MOST_ELEMENTS} elements, "
            f"these have {images[:1].numel()}"
        )
    weight, logits = _read_linear(model, images)
    low, high = _box(images, allowed, eps)
    counts = []
    for row, target in enumerate(goal.targets.tolist()):
        rivals = torch.arange(len(weight), device=weight.device) != target
        steer = (weight[target] - weight[rivals]).cpu().double()
        gap = (logits[row, rivals] - logits[row, target]).cpu().double()
        ends = torch.stack((low[row], high[row])).cpu().double()
        shared = images.shape[1] if unit == "pixels" else 1
        counts.append(_solve(steer, gap + _MARGIN, ends, shared))
    return torch.tensor(counts, dtype=torch.float64, device=images.device)


def _solve(steer: Tensor, gap: Tensor, ends: Tensor, shared: int) -> float:
    """Fewest switches that allow enough change to close all gaps; each frees ``shared`` values."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError:
        raise MissingExtra("the integer program", "scipy", "bounds") from None
    elements = steer.shape[1]
    switches = elements // shared
    switch = torch.eye(switches, dtype=torch.float64).repeat(shared, 1)  # channels of one place
    change = torch.eye(elements, dtype=torch.float64)
    idle = torch.zeros(len(steer), switches, dtype=torch.float64)
    rules: list[Any] = [
        LinearConstraint(torch.cat((steer, idle), dim=1).numpy(), lb=gap.numpy()),
        LinearConstraint(torch.cat((change, -ends[0, :, None] * switch), dim=1).numpy(), lb=0),
        LinearConstraint(torch.cat((change, -ends[1, :, None] * switch), dim=1).numpy(), ub=0),
    ]
    off, on = torch.zeros(switches).double(), torch.ones(switches).double()
    found = milp(
        torch.cat((torch.zeros(elements).double(), on)).numpy(),
        integrality=torch.cat((torch.zeros(elements).double(), on)).numpy(),
        bounds=Bounds(torch.cat((ends[0], off)).numpy(), torch.cat((ends[1], on)).numpy()),
        constraints=rules,
    )
    if found.status == 2:  # no change is enough
        return float("inf")
    if not found.success:
        raise RuntimeError(f"the integer program was not solved: {found.message}")
    return float(round(found.fun))


def _gaps_and_gains(
    model: Classifier, images: Images, goal: Goal, allowed: Allowed | None, eps: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Against each rival class: direction, gap to close, and most that each element closes of it.

    The shapes are (batch, classes, elements), (batch, classes) and (batch, classes, elements).
    """
    weight, logits = _read_linear(model, images)
    own = _own_class(goal, len(weight)).unsqueeze(1)
    steer = weight - weight[own]
    gap = logits.gather(1, own) - logits
    gap = gap.scatter(1, own, torch.inf)  # a class is no rival of itself
    low, high = (end.unsqueeze(1) for end in _box(images, allowed, eps))
    return steer, gap, torch.maximum(steer * low, steer * high)


def _fewest(gap: Tensor, gains: Tensor, goal: Goal) -> PerImage:
    closed = gains.sort(dim=2, descending=True).values.cumsum(dim=2)
    left = gap.unsqueeze(2) - nn.functional.pad(closed, (1, 0))
    own = _own_class(goal, gap.shape[1]).unsqueeze(1)
    wins_ties = torch.arange(gap.shape[1], device=gap.device) < own
    open_still = (left > 0) | ((left == 0) & ~wins_ties.unsqueeze(2))
    count = open_still.sum(dim=2).double()
    return count.masked_fill(open_still.all(dim=2), torch.inf).amin(dim=1)


def _own_class(goal: Goal, classes: int) -> Tensor:
    """The class that a single rival has to overtake."""
    if goal.targets is None:
        return goal.labels
    if classes != 2:
        raise BadInput(
            f"sorting knows the optimum for a target of two classes, the model has {classes}; "
            "use fewest_for_target"
        )
    return 1 - goal.targets


def _box(images: Images, allowed: Allowed | None, eps: float | None) -> tuple[Tensor, Tensor]:
    """How far each element may fall and rise, as (batch, elements)."""
    reach = 1.0 if eps is None else eps
    low, high = (-images).clamp(min=-reach), (1 - images).clamp(max=reach)
    if allowed is not None:
        low, high = low.where(allowed, 0), high.where(allowed, 0)
    return low.flatten(1), high.flatten(1)


def _read_linear(model: Classifier, images: Images) -> tuple[Tensor, Tensor]:
    """The weights of a linear model, computed from its logits, and the logits of ``images``."""
    shape = images.shape[1:]
    elements = shape.numel()
    with torch.no_grad(), model.frozen():
        bias = model(images.new_zeros((1, *shape)))
        units = torch.eye(elements, dtype=images.dtype, device=images.device)
        weight = (model(units.view(elements, *shape)) - bias).T
        logits = model(images)
    if not torch.allclose(images.flatten(1) @ weight.T + bias, logits, rtol=1e-4, atol=1e-4):
        raise BadInput(f"the optimum is known for linear models only; {model.name} is not linear")
    return weight, logits
