"""The optimiser: made from a schedule, and its state as named tensors and back."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, Optimizer

from pinprick.train.schedule import Schedule
from pinprick.types import Labels

_PREFIX = "optimiser/"


def make_optimiser(net: nn.Module, schedule: Schedule) -> Optimizer:
    """SGD or Adam, with weight decay on matrices and filters alone."""
    decayed = [parameter for parameter in net.parameters() if parameter.ndim > 1]
    plain = [parameter for parameter in net.parameters() if parameter.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": schedule.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    fused = all(parameter.is_cuda for parameter in net.parameters())  # one kernel for all weights
    if schedule.optimiser == "adam":
        return Adam(groups, lr=schedule.lr, fused=fused)
    nesterov = schedule.momentum > 0
    return SGD(groups, schedule.lr, schedule.momentum, nesterov=nesterov, fused=fused)


def set_lr(optimiser: Optimizer, lr: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = lr


def write_state(optimiser: Optimizer) -> dict[str, Tensor]:
    """Momentum and the like by name, as ``optimiser/3/momentum_buffer``."""
    return {
        f"{_PREFIX}{number}/{key}": value
        for number, values in optimiser.state_dict()["state"].items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }


def read_state(optimiser: Optimizer, tensors: dict[str, Tensor]) -> None:
    """Take up the state that ``write_state`` gave; none for an optimiser that has made no step."""
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(_PREFIX):
            number, key = name.removeprefix(_PREFIX).split("/")
            state.setdefault(int(number), {})[key] = _laid_out(tensor, weights[int(number)])
    groups = optimiser.state_dict()["param_groups"]
    with torch.no_grad():
        optimiser.load_state_dict({"state": state, "param_groups": groups})


def _laid_out(tensor: Tensor, weight: Tensor) -> Tensor:
    """In memory as the weight is, channels last for one; the fused kernels insist on it."""
    if tensor.shape != weight.shape:
        return tensor
    return torch.empty_like(weight, dtype=tensor.dtype, requires_grad=False).copy_(tensor)


# The loss of a step: cross-entropy where the attack left the images, or the trade-off of TRADES.
#
# Zhang, Yu, Jiao, Xing, El Ghaoui, Jordan: Theoretically Principled Trade-off between Robustness
# and Accuracy. ICML 2019.
#
#     CE(f(x), y) + trades * KL(f(x) || f(x'))
#
# Theirs seeks the x' of the largest divergence; here it is whatever the recipe gives.


def step_loss(logits: Tensor, labels: Labels, schedule: Schedule) -> Tensor:
    """Mean over the batch; ``logits`` are of the perturbed images, with ``trades`` then the clean.

    Statistics of batch norm, where there are any, are then of both together.
    """
    perturbed, clean = logits[: len(labels)], logits[-len(labels) :]
    loss = F.cross_entropy(clean, labels, label_smoothing=schedule.label_smoothing)
    if schedule.trades is None:
        return loss
    said, asked = clean.log_softmax(dim=1), perturbed.log_softmax(dim=1)
    return loss + schedule.trades * F.kl_div(asked, said, log_target=True, reduction="batchmean")


# A running mean of a network's weights, which is often better than the last ones.


class Average:
    """A copy of a network that follows it at a distance.

    Attributes:
        net: The copy; buffers such as the statistics of batch norm are averaged like weights.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.net = deepcopy(net).requires_grad_(False)
        self.decay = decay
        pairs = list(zip(_tensors(self.net), _tensors(net), strict=True))  # once, not each step
        self._averaged = [pair for pair in pairs if pair[0].is_floating_point()]
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Take in the network after step number ``step``; early on the mean is shorter."""
        decay = min(self.decay, (1 + step) / (10 + step))
        ours, theirs = ([*each] for each in zip(*self._averaged, strict=True))
        torch._foreach_lerp_(ours, theirs, 1 - decay)
        for our, their in self._copied:
            our.copy_(their, non_blocking=True)


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*(parameter.detach() for parameter in net.parameters()), *net.buffers()]


# How a GPU is made to work at its best; on a CPU none of this changes anything.


@contextmanager
def tuned(device: torch.device) -> Iterator[None]:
    """While convolutions on a GPU are the fastest that are found for their sizes."""
    with ExitStack() as stack:
        if device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, benchmark=True))
        yield


def half_precision(device: torch.device) -> torch.autocast:
    """While a GPU works with 16-bit numbers that have the range of 32-bit ones."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
