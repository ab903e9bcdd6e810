"""One run per specification with everything watched, which many tests then ask about."""

import time
import zlib
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from contract.specifications import SPECS
from contract.victims import Faulty, busy_network, guesses, some_images
from pinprick import Attack, AttackResult, Classifier, build, run_attack
from pinprick.selftest import Counting
from pinprick.subnormal import is_flushing

IDS = (30, 7, 2**40, 0, 5, 31)  # what the random streams of the images belong to


class Watched(Counting):
    """A network that also counts its calls, and has a checksum of all images that it saw."""

    def __init__(self) -> None:
        super().__init__(Faulty(busy_network()))
        self.calls = self.checksum = 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        self.checksum = zlib.crc32(images.detach().numpy().tobytes(), self.checksum)
        return super().forward(images)


@dataclass(frozen=True)
class State:
    """What an attack must leave alone: the network, the process, and what it was given."""

    network: dict[str, Any]
    process: dict[str, Any]
    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Baseline:
    """An attack on six images, and what was seen meanwhile.

    Attributes:
        attack, net, images, labels: What was run.
        result: What came of it, with a trace; its seconds are calls of the network.
        before, after: What must be left alone.
    """

    attack: Attack
    net: Watched
    images: Tensor
    labels: Tensor
    result: AttackResult
    before: State
    after: State

    def rerun(self, **changes: Any) -> AttackResult:
        """The same run with other arguments of ``run_attack``, without a trace."""
        arguments = {"images": self.images, "labels": self.labels, "ids": torch.tensor(IDS)}
        return run_attack(self.attack, **{"model": victim(), **arguments, **changes})


@cache
def baseline(name: str) -> Baseline:
    """The run of this specification; one per process."""
    attack, net, images = build(SPECS[name]), Watched(), some_images()
    labels = guesses(Classifier(net), images)
    net.forwards = net.checksum = 0
    before = state_of(net, images, labels)
    with patch.object(time, "perf_counter", lambda: float(net.calls)):
        result = run_attack(attack, net, images, labels, ids=IDS, trace=True)
    return Baseline(
        attack, net, images, labels, result, before, after=state_of(net, images, labels)
    )


def victim() -> Classifier:
    """The network of the baseline, without counters."""
    return Classifier(Faulty(busy_network()), name="victim")


def referees_passes(images: int) -> int:
    """Forward passes of the referee over a batch: three per image, and some to measure noise."""
    copies = 4 if images < 4 else 0
    return 3 * images + min(4, images) + copies


def state_of(net: nn.Module, images: Tensor, labels: Tensor) -> State:
    return State(state_of_network(net), state_of_process(), images.clone(), labels.clone())


def state_of_network(net: nn.Module) -> dict[str, Any]:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "modes": [module.training for module in net.modules()],
        "hooks": [[list(getattr(module, name)) for name in hooks] for module in net.modules()],
        "flags": [p.requires_grad for p in net.parameters()],
        "grads": [None if p.grad is None else p.grad.tolist() for p in net.parameters()],
        "values": {name: value.tolist() for name, value in net.state_dict().items()},
    }


def state_of_process() -> dict[str, Any]:
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


def assert_sound(attack: Attack, result: AttackResult, images: Tensor) -> None:
    """What must hold of every result, however the attack went."""
    adv, facts = result.adversarial, attack.facts()
    assert (adv.shape, adv.dtype, adv.device) == (images.shape, images.dtype, images.device)
    assert ((adv >= 0) & (adv <= 1)).all()  # which is false of NaN, too
    assert torch.equal(result.images, images)
    if facts.kind == "minimal":
        assert torch.equal(adv[~result.success], images[~result.success])
    if facts.norm == "linf" and facts.kind == "budget":
        assert (result.linf <= attack.eps + 2 * torch.finfo(adv.dtype).eps).all()  # type: ignore[attr-defined]
    assert (result.l2.isfinite() & result.l1.isfinite() & result.linf.isfinite()).all()
    assert torch.equal(result.needed_elements.isinf(), ~result.success)
    for row, remark in enumerate(result.remarks):
        assert bool(remark) != bool(result.success[row]), remark
    for passes in ("forwards", "backwards"):
        most = getattr(facts, f"max_{passes}")
        assert most is None or (getattr(result, passes) <= most).all(), passes


def assert_same(first: AttackResult, second: AttackResult) -> None:
    for name in ("adversarial", "adversarial_logits", "forwards", "backwards", "out_of_budget"):
        assert torch.equal(getattr(first, name), getattr(second, name)), name
    assert first.remarks == second.remarks
