"""The optimiser: made from a schedule, and its state as named tensors and back."""

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from pinprick.train.schedule import Schedule

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
