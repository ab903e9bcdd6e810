"""One run of an attack with everything watched, which the clauses then ask about."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pinprick.attacks.card import Attack
from pinprick.contract.ground import Ground, ground_of
from pinprick.contract.networks import Watched, guesses
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.run import run_attack
from pinprick.subnormal import is_flushing

IDS = (30, 7, 2**40, 0, 5, 31)  # what the random streams of the images belong to


@dataclass(frozen=True)
class State:
    """What an attack must leave alone: the network, the process, and what it was given."""

    network: dict[str, Any]
    process: dict[str, Any]
    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class WatchedRun:
    """An attack on six images, and what was seen meanwhile.

    Attributes:
        attack, net, images, labels: What was run.
        ground: What it was run on.
        result: The result, with a trace.
        before, after: What must be left alone.
    """

    attack: Attack
    net: Watched
    images: Tensor
    labels: Tensor
    ground: Ground
    result: AttackResult
    before: State
    after: State

    def rerun(self, **changes: Any) -> AttackResult:
        """The same run with other arguments of ``run_attack``, without a trace."""
        arguments = {"images": self.images, "labels": self.labels, "ids": torch.tensor(IDS)}
        return run_attack(self.attack, **{"model": self.ground.victim(), **arguments, **changes})


def watch(attack: Attack, net: Watched | None = None) -> WatchedRun:
    """Run the attack on six images; of the exact network, three of these are easily fooled."""
    ground = ground_of(attack)
    net, images = net or ground.watched(), ground.images
    labels = guesses(Classifier(net), images)
    net.forwards = net.checksum = 0
    before = state_of(net, images, labels)
    result = run_attack(attack, net, images, labels, ids=IDS, trace=True)
    return WatchedRun(
        attack, net, images, labels, ground, result, before, after=state_of(net, images, labels)
    )


def referees_passes(images: int) -> int:
    """Forward passes of the referee over a batch: three per image, and some to measure noise."""
    copies = 4 if images < 4 else 0
    return 3 * images + min(4, images) + copies


def state_of(net: nn.Module, images: Tensor, labels: Tensor) -> State:
    """Everything that an attack must leave alone, as it is now."""
    return State(state_of_network(net), state_of_process(), images.clone(), labels.clone())


def state_of_network(net: nn.Module) -> dict[str, Any]:
    """Modes, hooks, gradients and values of a network."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "modes": [module.training for module in net.modules()],
        "hooks": [[list(getattr(module, name)) for name in hooks] for module in net.modules()],
        "flags": [p.requires_grad for p in net.parameters()],
        "grads": [None if p.grad is None else p.grad.tolist() for p in net.parameters()],
        "values": {name: value.tolist() for name, value in net.state_dict().items()},
    }


def state_of_process() -> dict[str, Any]:
    """Global random states and settings of torch and numpy."""
    numpy_state = np.random.get_state(legacy=False)
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": str(numpy_state),
        "numpy keys": numpy_state["state"]["key"].tolist(),
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "flushing": is_flushing(),
    }
