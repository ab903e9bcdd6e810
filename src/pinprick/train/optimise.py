"""The parts of a training step: optimiser, loss, averaged weights, and settings of the GPU."""

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
    """SGD or Adam, with weight decay only on matrices and filters."""
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


def optimiser_tensors(optimiser: Optimizer) -> dict[str, Tensor]:
    """Momentum and the like by name, as ``optimiser/3/momentum_buffer``."""
    return {
        f"{_PREFIX}{number}/{key}": value
        for number, values in optimiser.state_dict()["state"].items()
        for key, value in values.items()
        if isinstance(value, Tensor)
    }


def load_optimiser(optimiser: Optimizer, tensors: dict[str, Tensor]) -> None:
    """Load the state that ``optimiser_tensors`` gave; it is empty before the first step."""
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(_PREFIX):
            number, key = name.removeprefix(_PREFIX).split("/")
            state.setdefault(int(number), {})[key] = _with_layout(tensor, weights[int(number)])
    groups = optimiser.state_dict()["param_groups"]
    with torch.no_grad():
        optimiser.load_state_dict({"state": state, "param_groups": groups})


def _with_layout(tensor: Tensor, weight: Tensor) -> Tensor:
    """The tensor with the weight's memory layout, which the fused kernels require."""
    if tensor.shape != weight.shape:
        return tensor
    return torch.empty_like(weight, dtype=tensor.dtype, requires_grad=False).copy_(tensor)


def step_loss(logits: Tensor, labels: Labels, schedule: Schedule) -> Tensor:
    """Cross-entropy on the perturbed images, or with ``trades`` the trade-off of TRADES.

    Zhang, Yu, Jiao, Xing, El Ghaoui, Jordan: Theoretically Principled Trade-off between Robustness
    and Accuracy. ICML 2019.

        CE(f(x), y) + trades * KL(f(x) || f(x'))

    Theirs seeks the x' of the largest divergence; here x' is what the recipe gives. Statistics of
    batch norm are of clean and perturbed images together.

    Args:
        logits: Of the perturbed images; with ``trades``, those of the clean images after them.
        labels: Of the images.
        schedule: The settings.
    """
    perturbed, clean = logits[: len(labels)], logits[-len(labels) :]
    loss = F.cross_entropy(clean, labels, label_smoothing=schedule.label_smoothing)
    if schedule.trades is None:
        return loss
    divergence = F.kl_div(
        perturbed.log_softmax(dim=1),
        clean.log_softmax(dim=1),
        log_target=True,
        reduction="batchmean",
    )
    return loss + schedule.trades * divergence


class Average:
    """A running mean of a network's weights, which is often better than the last ones.

    Attributes:
        net: A network with the mean; buffers such as statistics of batch norm are averaged too.
    """

    def __init__(self, net: nn.Module, decay: float) -> None:
        self.net = deepcopy(net).requires_grad_(False)
        self.decay = decay
        pairs = list(zip(_tensors(self.net), _tensors(net), strict=True))  # once, not per step
        self._averaged = [pair for pair in pairs if pair[0].is_floating_point()]
        self._copied = [pair for pair in pairs if not pair[0].is_floating_point()]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Include the weights after step ``step``; early on the mean is over fewer steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        ours, theirs = ([*each] for each in zip(*self._averaged, strict=True))
        torch._foreach_lerp_(ours, theirs, 1 - decay)
        for our, their in self._copied:
            our.copy_(their, non_blocking=True)


def _tensors(net: nn.Module) -> list[Tensor]:
    return [*(parameter.detach() for parameter in net.parameters()), *net.buffers()]


@contextmanager
def tuned(device: torch.device) -> Iterator[None]:
    """Use the fastest convolutions that a GPU has for their sizes; does nothing on a CPU."""
    with ExitStack() as stack:
        if device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, benchmark=True))
        yield


def half_precision(device: torch.device) -> torch.autocast:
    """Use bfloat16 on a GPU; does nothing on a CPU."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
