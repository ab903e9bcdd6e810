"""What every attack keeps to, whatever its method: a new one is tested by its line in the table."""

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinprick import (
    ATTACKS,
    Attack,
    AttackResult,
    BadInput,
    Classifier,
    Goal,
    Problem,
    Streams,
    build,
    describe,
    least_likely,
    run_attack,
)
from pinprick.oracle import exact_images, exact_linear, sure_images
from pinprick.random import _Source
from pinprick.selftest import Counting
from pinprick.subnormal import is_flushing

QUICK: dict[str, dict[str, Any]] = {  # cheaper settings, only where the defaults take seconds
    "auto": {"budgets": [2, 4], "effort": "fast", "steps": 8, "queries": 20},
    "brusle": {"k": 3, "queries": 40},
    "cw_l0": {"steps": 10, "lr": 0.2, "weight": 1.0, "last_weight": 8.0, "max_passes": 60},
    "cw_l2": {"steps": 15, "searches": 3, "lr": 0.1, "weight": 1.0},
    "fmn": {"steps": 40},
    "corner_search": {"singles": 40, "tries": 10, "max_pixels": 4},
    "onepixel": {"population": 20, "generations": 5},
    "pgd0": {"k": 3, "steps": 10, "restarts": 2},
    "greedyfool": {"steps": 30, "trials": 6},
    "hopskipjump": {"queries": 150, "samples": 10, "tries": 20},
    "homotopy": {"rounds": 12, "steps": 6},
    "pinprick": {"max_forwards": 60},
    "sa_moo": {"k": 5, "queries": 60},
    "sapf": {
        "k": 12,
        "steps": 8,
        "gate_steps": 10,
        "tune_steps": 6,
        "searches": 2,
        "weight": 1.0,
        "decay_every": 2,
        "rho_growth": 1.2,
    },
    "sigma_zero": {"steps": 40},
    "sparse_evo": {"queries": 120, "tries": 20},
    "sparse_pgd": {"k": 3, "steps": 15},
    "sparse_rs": {"k": 3, "queries": 120},
    "strattack": {
        "steps": 10,
        "more_steps": 2,
        "searches": 2,
        "weight": 5.0,
        "refine_steps": 8,
        "refine_searches": 2,
    },
    "wifgsm": {"steps": 30},
}
VARIANTS: dict[str, dict[str, Any]] = {  # settings that lead another way through the code
    "auto in elements": {
        "name": "auto",
        "budgets": [6],
        "unit": "elements",
        "effort": "fast",
        "steps": 5,
        "queries": 30,
    },
    "brusle for the smallest k": {
        "name": "brusle",
        "k": "smallest",
        "queries": 30,
        "starts": 4,
        "loss": "cross_entropy",
        "rounds": 4,
    },
    "pgd with restarts": {"name": "pgd", "restarts": 3, "steps": 3},
    "cw_l0 in halves": {
        "name": "cw_l0",
        "steps": 5,
        "lr": 0.2,
        "weight": 1.0,
        "last_weight": 4.0,
        "unit": "elements",
        "ranking": "reference",
        "share": 0.3,
        "halve": True,
    },
    "cw_l2 with confidence": {
        "name": "cw_l2",
        "steps": 15,
        "searches": 3,
        "lr": 0.1,
        "weight": 1.0,
        "confidence": 0.1,
        "stop_early": False,
    },
    "deepfool linf": {"name": "deepfool", "norm": "linf"},
    "fmn l1": {"name": "fmn", "norm": "l1", "steps": 40},
    "fmn l2": {"name": "fmn", "norm": "l2", "steps": 40},
    "fmn linf": {"name": "fmn", "norm": "linf", "steps": 40},
    "corner_search by the sigma map": {
        "name": "corner_search",
        "tries": 10,
        "max_pixels": 10,
        "pixel_step": 3,
        "kappa": 5.0,
    },
    "jsma down by single elements": {
        "name": "jsma",
        "direction": "down",
        "pairs": False,
        "theta": 0.5,
        "rivals": 3,
    },
    "jsma by logits, both ways": {"name": "jsma", "output": "logits", "direction": "both"},
    "onepixel from the best": {
        "name": "onepixel",
        "k": 5,
        "population": 70,
        "generations": 2,
        "factor": 0.8,
        "strategy": "best1",
    },
    "onepixel for the smallest k": {
        "name": "onepixel",
        "k": "smallest",
        "population": 12,
        "generations": 3,
        "rounds": 4,
    },
    "pgd0 by the sigma map": {"name": "pgd0", "k": 8, "steps": 5, "restarts": 1, "kappa": 0.8},
    "pgd0 for the smallest k": {
        "name": "pgd0",
        "k": "smallest",
        "steps": 5,
        "restarts": 1,
        "rounds": 4,
        "unit": "elements",
    },
    "greedyfool by the hill cost": {
        "name": "greedyfool",
        "steps": 12,
        "trials": 3,
        "eps": 0.4,
        "distortion": "hill",
    },
    "greedyfool by the sigma map": {
        "name": "greedyfool",
        "steps": 20,
        "trials": 0,
        "distortion": "sigma",
    },
    "homotopy in a small ball": {
        "name": "homotopy",
        "rounds": 12,
        "steps": 4,
        "eps": 0.3,
        "growth": 40,
        "refine_steps": 3,
        "shrink_steps": 0,
    },
    "hopskipjump linf": {
        "name": "hopskipjump",
        "norm": "linf",
        "steps": 4,
        "queries": 400,
        "samples": 12,
        "most_samples": 20,
        "gamma": 4.0,
        "tries": 20,
    },
    "pinprick in pixels": {"name": "pinprick", "max_forwards": 60, "unit": "pixels"},
    "pinprick by scores in the end": {
        "name": "pinprick",
        "max_forwards": 90,
        "max_backwards": 30,
        "unit": "pixels",
    },
    "sa_moo with a real population": {
        "name": "sa_moo",
        "k": 12,
        "queries": 50,
        "population": 7,
        "parents": "uniform",
        "shrink": False,
        "unit": "elements",
    },
    "sa_moo for the smallest k": {
        "name": "sa_moo",
        "k": "smallest",
        "queries": 30,
        "population": 6,
        "rounds": 4,
    },
    "sapf for the smallest k": {
        "name": "sapf",
        "k": "smallest",
        "steps": 3,
        "gate_steps": 4,
        "turns": 2,
        "tune_steps": 4,
        "searches": 2,
        "weight": 1.0,
        "rho_growth": 1.5,
        "rounds": 4,
    },
    "sigma_zero with a stop": {"name": "sigma_zero", "steps": 40, "stop_at": 3},
    "sparse_evo in elements": {
        "name": "sparse_evo",
        "queries": 80,
        "tries": 10,
        "population": 3,
        "crossover": 0.9,
        "mutation": 0.2,
        "first": 0.1,
        "unit": "elements",
    },
    "sparsefool to the boundary": {"name": "sparsefool", "lam": 1.0, "eps": 0.5},
    "sparse_pgd unprojected": {"name": "sparse_pgd", "k": 3, "steps": 10, "projected": False},
    "sparse_pgd for the smallest k": {
        "name": "sparse_pgd",
        "k": "smallest",
        "steps": 5,
        "rounds": 4,
        "unit": "elements",
    },
    "sparse_rs at a constant share": {
        "name": "sparse_rs",
        "k": 12,
        "queries": 80,
        "alpha": 0.8,
        "schedule": "constant",
        "loss": "cross_entropy",
        "unit": "elements",
    },
    "sparse_rs for the smallest k": {
        "name": "sparse_rs",
        "k": "smallest",
        "queries": 60,
        "rounds": 4,
    },
    "strattack for few elements": {
        "name": "strattack",
        "preset": "quick",
        "steps": 10,
        "searches": 3,
        "weight": 5.0,
        "group": 3,
        "refine_steps": 5,
        "refine_searches": 4,
    },
    "tifgsm with all": {"name": "tifgsm", "steps": 3, "momentum": 1.0, "diversity": 0.7},
    "wifgsm from pgd": {"name": "wifgsm", "steps": 20, "start": {"name": "pgd", "eps": 0.3}},
    "wifgsm unbounded": {
        "name": "wifgsm",
        "steps": 20,
        "loss_scale": 1e5,
        "tau": 0.3,
        "lam": 0.0,
        "bounded": False,
    },
}
SPECS = {name: {"name": name, **QUICK.get(name, {})} for name in ATTACKS} | VARIANTS

KEPT_BY_L2 = ("sparse_evo",)  # which may pass by an image of fewer changes

SHAPE = (3, 4, 5)


@pytest.fixture(params=sorted(SPECS))
def attack(request: pytest.FixtureRequest) -> Attack:
    return build(SPECS[request.param])


class RowByRow(nn.Module):
    """A network that sees each image by itself, so that its rounding cannot depend on the batch."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([self.net(image.unsqueeze(0)) for image in images])


def row_by_row(classes: int = 4, shape: tuple[int, int, int] = SHAPE) -> Classifier:
    return Classifier(RowByRow(network(exact_linear(classes, shape))))


def network(model: Classifier) -> nn.Module:
    assert isinstance(model.net, nn.Module)
    return model.net


def some_images(model: Classifier, count: int = 6, shape: tuple[int, int, int] = SHAPE) -> Tensor:
    """Images of which the first half is easily fooled and the rest is not."""
    images = exact_images(count, shape)
    half = count // 2
    return torch.cat((images[:half], sure_images(model, images)[half:]))


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad(), model.frozen():
        return model(images).argmax(dim=1)


@pytest.fixture
def model() -> Classifier:
    return row_by_row()


@pytest.fixture
def images(model: Classifier) -> Tensor:
    return some_images(model)


@pytest.fixture
def labels(model: Classifier, images: Tensor) -> Tensor:
    return guesses(model, images)


def assert_sound(attack: Attack, result: AttackResult, images: Tensor) -> None:
    """What must hold of every result, however the attack went."""
    adv = result.adversarial
    assert (adv.shape, adv.dtype, adv.device) == (images.shape, images.dtype, images.device)
    assert ((adv >= 0) & (adv <= 1)).all()  # which is false of NaN, too
    assert torch.equal(result.images, images)
    if attack.facts().kind == "minimal":
        assert torch.equal(adv[~result.success], images[~result.success])
    if attack.facts().norm == "linf" and attack.facts().kind == "budget":
        assert (result.linf <= attack.eps + 2 * torch.finfo(adv.dtype).eps).all()  # type: ignore[attr-defined]
    assert (result.l2.isfinite() & result.l1.isfinite() & result.linf.isfinite()).all()
    assert torch.equal(result.needed_elements.isinf(), ~result.success)


def assert_same(first: AttackResult, second: AttackResult) -> None:
    for name in ("adversarial", "adversarial_logits", "forwards", "backwards", "out_of_budget"):
        assert torch.equal(getattr(first, name), getattr(second, name)), name
    assert first.remarks == second.remarks


# What an attack gives


def test_stays_in_the_box_also_at_its_edges(attack: Attack, model: Classifier) -> None:
    images = (some_images(model) * 2 - 0.5).clamp(0, 1)  # many values at 0 and at 1
    result = run_attack(attack, model, images, guesses(model, images))
    assert_sound(attack, result, images)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_keeps_the_precision_of_the_images(attack: Attack, dtype: torch.dtype) -> None:
    net, images = network(exact_linear(4, SHAPE)), exact_images(3, SHAPE).to(dtype)
    model = Classifier(net.to(dtype))
    result = run_attack(attack, model, images, guesses(model, images))
    assert_sound(attack, result, images)


def test_takes_logits_of_lower_precision_than_the_images(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    single = Classifier(lambda batch: model(batch).float())
    assert_sound(attack, run_attack(attack, single, images, labels), images)
    assert_sound(attack, run_attack(attack, single, images, labels, max_forwards=3), images)


def test_the_layout_in_memory_does_not_matter(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    plain = run_attack(attack, model, images, labels)
    last = images.to(memory_format=torch.channels_last)
    assert_same(run_attack(attack, model, last, labels), plain)


def test_brings_the_goal_nearer(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    goals = [Goal(labels)]
    if attack.facts().targeted:
        with torch.no_grad():
            goals.append(Goal(labels, least_likely(model(images), labels)))
    for goal in goals:
        result = run_attack(attack, model, images, labels, targets=goal.targets)
        before, after = result.clean_logits, result.adversarial_logits
        nearer = goal.margin(after) <= goal.margin(before)
        nearer |= goal.cross_entropy(after) <= goal.cross_entropy(before)
        assert (nearer | result.success).all()
        assert (result.l0_elements > 0).any()


def test_a_minimal_attack_hands_back_the_clean_image_where_it_failed(attack: Attack) -> None:
    for model in (stubborn(), indifferent()):
        images, labels = exact_images(3, SHAPE), torch.zeros(3, dtype=torch.long)
        result = run_attack(attack, model, images, labels)
        assert not result.success.any()
        assert_sound(attack, result, images)
        assert all(result.remarks)


def stubborn() -> Classifier:
    """A model that says 0 of everything, though it listens."""
    linear = exact_linear(4, SHAPE)
    for name, parameter in network(linear).named_parameters():
        if name.endswith("bias"):
            parameter.data[0] = 100
    return linear


def indifferent() -> Classifier:
    """A model whose logits are all tied, whatever it sees, and whose gradient is zero."""
    linear = exact_linear(4, SHAPE)
    for parameter in network(linear).parameters():
        parameter.data.zero_()
    return linear


# What an attack leaves alone


def busy_network() -> nn.Module:
    """Modules in either mode, parameters with and without gradients, a hook."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Flatten(),
            nn.Linear(4 * SHAPE[1] * SHAPE[2], 4),
        ).double()
    net.train()
    net[1].eval()
    first, *rest = net.parameters()
    first.requires_grad_(False)
    rest[0].grad = torch.full_like(rest[0], 7.0)
    net.register_forward_hook(lambda *_: None)
    return net


def state_of(net: nn.Module) -> dict[str, Any]:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "modes": [module.training for module in net.modules()],
        "hooks": [[list(getattr(module, name)) for name in hooks] for module in net.modules()],
        "flags": [p.requires_grad for p in net.parameters()],
        "grads": [None if p.grad is None else p.grad.tolist() for p in net.parameters()],
        "values": {name: value.tolist() for name, value in net.state_dict().items()},
    }


def state_of_the_process() -> dict[str, Any]:
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


def test_leaves_its_inputs_alone(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    given = images.clone(), labels.clone()
    result = run_attack(attack, model, images, labels)
    result.adversarial.fill_(0.5)  # what comes back is the caller's own
    assert torch.equal(images, given[0])
    assert torch.equal(labels, given[1])
    assert not images.requires_grad
    assert images.grad is None


def test_leaves_the_network_and_the_process_alone(attack: Attack) -> None:
    net, images = busy_network(), exact_images(3, SHAPE)
    labels = guesses(Classifier(net), images)
    before, around = state_of(net), state_of_the_process()
    run_attack(attack, net, images, labels)
    assert state_of(net) == before
    assert state_of_the_process() == around


class Refused(Exception):
    """Raised by a model in the middle of an attack."""


class Refusing(nn.Module):
    """A network that raises when it is called for the n-th time."""

    def __init__(self, net: nn.Module, call: int) -> None:
        super().__init__()
        self.net, self.left = net, call

    def forward(self, images: Tensor) -> Tensor:
        self.left -= 1
        if not self.left:
            raise Refused
        logits: Tensor = self.net(images)
        return logits


@pytest.mark.parametrize("call", [3, 5])  # the first two are the referee's
def test_leaves_all_alone_also_when_the_model_raises(attack: Attack, call: int) -> None:
    net, images = busy_network(), exact_images(3, SHAPE)
    labels = guesses(Classifier(net), images)
    refusing = Refusing(net, call)
    before, around = state_of(refusing), state_of_the_process()
    with pytest.raises(Refused):
        run_attack(attack, refusing, images, labels)
    assert state_of(refusing) == before
    assert state_of_the_process() == around


# Each image by itself


def test_same_seed_same_images(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    first, second = (run_attack(attack, model, images, labels, seed=7) for _ in range(2))
    assert_same(first, second)


def test_the_seed_matters_where_the_card_says_so(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    runs = [run_attack(attack, model, images, labels, seed=seed) for seed in range(4)]
    same = all(torch.equal(run.adversarial, runs[0].adversarial) for run in runs[1:])
    assert same != attack.facts().random


def test_a_batch_gives_what_one_by_one_gives(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    ids = torch.tensor([30, 7, 2**40, 0, 5, 31])
    together = run_attack(attack, model, images, labels, ids=ids)
    for row in range(len(images)):
        only = slice(row, row + 1)
        alone = run_attack(attack, model, images[only], labels[only], ids=ids[only])
        assert_same(alone, together[torch.tensor([row])])


def test_neither_order_nor_batch_size_matters(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    ids = torch.arange(len(images))
    together = run_attack(attack, model, images, labels)
    back = ids.flip(0)
    turned = run_attack(attack, model, images[back], labels[back], ids=back, batch_size=4)
    assert_same(turned[back], together)


def tied_linear(shape: tuple[int, int, int]) -> Classifier:
    """A linear model whose weights are all of one size, so that most gradients are tied."""
    model = row_by_row(shape=shape)
    weight = next(network(model).parameters())
    weight.data = weight.data.sign() / 4
    return model


def draw_coarsely(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """Give random numbers so few bits that many are tied."""
    fine, left_out = _Source.bits, 24 - bits

    def coarse(source: _Source, count: int, step: int, use: str, rows: Tensor | None) -> Tensor:
        return fine(source, count, step, use, rows) >> left_out << left_out

    monkeypatch.setattr(_Source, "bits", coarse)


def assert_no_company_matters(attack: Attack, model: Classifier, images: Tensor) -> None:
    labels = guesses(model, images)
    together = run_attack(attack, model, images, labels)
    for row in range(len(images)):
        only, ids = slice(row, row + 1), torch.tensor([row])
        alone = run_attack(attack, model, images[only], labels[only], ids=ids)
        assert_same(alone, together[ids])


def test_a_batch_gives_what_one_by_one_gives_where_much_is_tied(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random keys, gradients and pixel values are tied, and so is what is made of them."""
    draw_coarsely(monkeypatch, bits=3)
    shape = (3, 8, 8)
    model = tied_linear(shape)
    images = (some_images(model, 3, shape) * 2).round() / 4 + 1 / 4
    assert_no_company_matters(attack, model, images)


@pytest.mark.parametrize("name", ["sparse_rs", "sa_moo"])
def test_a_batch_gives_what_one_by_one_gives_at_224_pixels(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 50,176 keys of 24 bits few are tied, so they have 12 bits here."""
    draw_coarsely(monkeypatch, bits=12)
    shape = (3, 224, 224)
    model = exact_linear(4, shape)
    attack = build({"name": name, "k": "smallest", "queries": 6, "rounds": 3})
    assert_no_company_matters(attack, model, exact_images(2, shape))


def test_what_is_already_fooled_is_neither_touched_nor_asked_about(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    wrong = torch.tensor([True, False, False, True, True, False])
    alone = run_attack(attack, model, images, labels)
    mixed = run_attack(attack, model, images, torch.where(wrong, (labels + 1) % 4, labels))
    assert torch.equal(mixed.skipped, wrong)
    assert torch.equal(mixed.adversarial[wrong], images[wrong])
    assert (mixed.forwards[wrong] == 0).all()
    assert (mixed.backwards[wrong] == 0).all()
    assert_same(mixed[~wrong], alone[~wrong])


def test_nothing_happens_when_all_are_already_fooled(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(attack, model, images, (labels + 1) % 4)
    assert torch.equal(result.adversarial, images)
    assert result.success.all()
    assert (result.forwards == 0).all()
    assert (result.needed_pixels == 0).all()


# Odd models


class _Spoil(torch.autograd.Function):
    """The identity, with another gradient in some rows."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, rows: Tensor, value: float) -> Tensor:
        ctx.rows, ctx.value = rows, value
        return images.view_as(images)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad.masked_fill(ctx.rows.view(-1, 1, 1, 1), ctx.value), None, None


class Spoilt(nn.Module):
    """A network with something wrong with it, but for images with a bright corner alone."""

    def __init__(self, net: nn.Module, fault: str) -> None:
        super().__init__()
        self.net, self.fault = net, fault

    def forward(self, images: Tensor) -> Tensor:
        rows = images.detach()[:, 0, 0, 0] > 0.5
        if "gradient" in self.fault:
            value = float("nan") if "nan" in self.fault else 0.0
            return self.net(_Spoil.apply(images, rows, value))  # type: ignore[no-any-return]
        value = float("nan") if "nan" in self.fault else float("inf")
        logits: Tensor = self.net(images)
        return logits.where(~rows.unsqueeze(1), value)


@pytest.mark.parametrize("fault", ["nan logits", "inf logits", "nan gradient", "zero gradient"])
def test_what_is_wrong_with_one_image_does_not_reach_the_others(
    attack: Attack, model: Classifier, fault: str
) -> None:
    bad = torch.tensor([False, True, False, False, True, False])
    images = exact_images(6, SHAPE)
    images[:, 0, 0, 0] = 1 / 4 + bad / 2
    labels = guesses(model, images)
    corner = torch.ones(SHAPE, dtype=torch.bool)
    corner[0, 0, 0] = False  # lest an attack makes a good image a bad one
    allowed = corner if attack.facts().masked else None
    whole = run_attack(attack, model, images, labels, allowed=allowed)
    spoilt = Classifier(Spoilt(network(model), fault))
    result = run_attack(attack, spoilt, images, labels, allowed=allowed)
    assert_sound(attack, result, images)
    assert_same(result[~bad], whole[~bad])
    if "logits" in fault:
        assert not result.success[bad].any()
        assert result.remarks[1] == "the model's logits are not finite"


@pytest.mark.parametrize(
    ("classes", "shape", "count"),
    [
        (2, (3, 4, 5), 3),
        (4, (1, 5, 4), 3),
        (4, (3, 3, 7), 1),
        (4, (1, 1, 1), 2),
        (1000, (3, 4, 4), 2),
    ],
    ids=["two classes", "grey", "one image", "one pixel", "a thousand classes"],
)
def test_runs_on_every_kind_of_image(
    attack: Attack, classes: int, shape: tuple[int, int, int], count: int
) -> None:
    model = exact_linear(classes, shape)
    images = exact_images(count, shape)
    labels = guesses(model, images)
    assert_sound(attack, run_attack(attack, model, images, labels), images)
    if attack.facts().targeted:
        targets = (labels + 1) % classes
        result = run_attack(attack, model, images, labels, targets=targets)
        assert_sound(attack, result, images)


def test_no_images_give_an_empty_result(attack: Attack, model: Classifier) -> None:
    result = run_attack(attack, model, torch.zeros(0, *SHAPE), [])
    assert len(result) == 0
    assert result.needed_pixels.shape == (0,)


# Passes


def test_passes_are_those_that_a_counting_model_sees(
    attack: Attack, images: Tensor, labels: Tensor, model: Classifier
) -> None:
    for row in range(len(images)):
        net = Counting(network(model))
        only = slice(row, row + 1)
        result = run_attack(attack, net, images[only], labels[only])
        # the referee's own passes: 4, and 1 alone and 4 of copies to measure the noise
        assert result.forwards.tolist() == [net.forwards - 9]
        assert result.backwards.tolist() == [net.backwards]
    net = Counting(network(model))
    result = run_attack(attack, net, images, labels)
    assert result.forwards.sum() == net.forwards - 3 * len(images) - 1 - 4  # alone, for the noise
    assert result.backwards.sum() == net.backwards
    if attack.facts().access in ("labels", "scores"):
        assert net.backwards == 0


def test_keeps_its_own_budget(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    facts = attack.facts()
    zeros = torch.zeros_like(labels)
    problems = [(model, Goal(labels)), (stubborn(), Goal(zeros)), (indifferent(), Goal(zeros))]
    if facts.targeted:
        problems.append((model, Goal(labels, (labels + 1) % 4)))
        problems.append((stubborn(), Goal(zeros, zeros + 1)))
    for victim, goal in problems:
        with torch.no_grad():
            clean_logits = victim(images)
        problem = Problem(
            victim,
            images,
            goal,
            Streams(0, torch.arange(len(images))),
            gradients=facts.access in ("gradients", "network"),
            clean_logits=clean_logits,
            max_forwards=facts.max_forwards,
            max_backwards=facts.max_backwards,
            strict=True,  # raises where the budget is overrun
        )
        with victim.frozen():
            attack(problem)
        assert not problem.tally.out_of_budget.any()


@pytest.mark.parametrize("passes", ["forwards", "backwards"])
def test_keeps_to_the_referees_limit(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor, passes: str
) -> None:
    free = run_attack(attack, model, images, labels)
    spent = getattr(free, passes)
    for limit in {0, int(spent.median()), max(0, int(spent.max()) - 1)}:
        limits: dict[str, Any] = {f"max_{passes}": limit}
        held = run_attack(attack, model, images, labels, **limits)
        over = spent > limit
        assert (getattr(held, passes) <= limit).all()
        assert torch.equal(held.out_of_budget, over)
        assert_same(held[~over], free[~over])
        assert_sound(attack, held, images)
        for row in (over & ~held.success).nonzero().flatten().tolist():
            assert held.remarks[row] == "out of budget"


def test_keeps_to_the_referees_time(
    attack: Attack,
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []  # the clock shows how many there were
    monkeypatch.setattr(time, "perf_counter", lambda: float(len(calls)))

    def ticking(batch: Tensor) -> Tensor:
        calls.append(len(batch))
        return model(batch)

    victim = Classifier(ticking)
    free = run_attack(attack, victim, images, labels)
    for limit in {1, int(free.seconds) // 2, max(1, int(free.seconds) - 1)}:
        held = run_attack(attack, victim, images, labels, max_seconds=float(limit))
        assert held.seconds <= limit
        assert (held.forwards <= free.forwards).all()
        assert_sound(attack, held, images)
        assert_same(held[~held.out_of_time], free[~held.out_of_time])
        assert held.out_of_time.any() == (limit < free.seconds)
        for row in (held.out_of_time & ~held.success).nonzero().flatten().tolist():
            assert held.remarks[row] == "out of time"
    ample = run_attack(attack, victim, images, labels, max_seconds=free.seconds + 1)
    assert_same(ample, free)


def test_the_trace_goes_down_and_ends_at_the_result(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    free = run_attack(attack, model, images, labels)
    result = run_attack(attack, model, images, labels, trace=True)
    assert_same(result, free)
    facts, trace = attack.facts(), result.trace
    assert trace is not None
    owner = torch.arange(len(images)).repeat_interleave(trace.steps)
    same = owner[1:] == owner[:-1]
    assert (trace.forwards.diff()[same] >= 0).all()
    assert (trace.backwards.diff()[same] >= 0).all()
    for name in ("margin", "pixels", "elements"):
        values = getattr(trace, name)
        assert (values[1:] <= values[:-1])[same].all(), name
    assert (trace.forwards <= result.forwards[owner]).all()
    assert (trace.backwards <= result.backwards[owner]).all()
    last = int(result.forwards.max())
    margin = result.goal.margin(result.adversarial_logits).float()
    for unit, needed in (("pixels", result.needed_pixels), ("elements", result.needed_elements)):
        fewest = trace.fewest_after(last, unit)  # type: ignore[arg-type]
        assert (fewest <= needed).all()
        if facts.kind == "minimal" and facts.unit == unit and facts.name not in KEPT_BY_L2:
            assert torch.equal(fewest.double(), needed)
    assert (trace.margin_after(last) <= margin).all()


# What the card says


def test_the_card_is_in_order(attack: Attack) -> None:
    card, facts = attack.card, attack.facts()
    assert ATTACKS[card.name] is type(attack)
    assert (facts.name, facts.title, facts.access) == (card.name, card.title, card.access)
    assert (facts.norm == "l0") == (facts.unit is not None)
    assert is_dataclass(attack)
    assert not isinstance(attack, type)
    assert type(attack).__dataclass_params__.frozen
    assert hash(attack) == hash(replace(attack))
    assert attack == replace(attack)
    if facts.access in ("labels", "scores"):
        assert not facts.max_backwards


def test_survives_being_written_down(attack: Attack) -> None:
    for same in (attack, ATTACKS[attack.card.name]()):
        assert build(json.loads(json.dumps(describe(same)))) == same


def test_heads_for_targets_or_refuses_them(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    targets = (labels + torch.tensor([1, 2, 3, 1, 2, 3])) % 4  # one for each image
    if not attack.facts().targeted:
        with pytest.raises(BadInput, match=f"{attack.card.name} has no targeted form"):
            run_attack(attack, model, images, labels, targets=targets)
        return
    result = run_attack(attack, model, images, labels, targets=targets)
    assert_sound(attack, result, images)
    assert torch.equal(result.success, result.adversarial_logits.argmax(dim=1) == targets)


def test_keeps_to_the_mask_or_refuses_it(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    allowed = exact_images(len(images), SHAPE, seed=9) > 0.5
    allowed[2] = False
    if not attack.facts().masked:
        with pytest.raises(BadInput, match=f"{attack.card.name} cannot keep to a mask"):
            run_attack(attack, model, images, labels, allowed=allowed)
        return
    result = run_attack(attack, model, images, labels, allowed=allowed)
    assert_sound(attack, result, images)
    assert not ((result.adversarial != images) & ~allowed).any()
    assert (result.l0_elements > 0).any()
    assert result.forwards[2] == 0
    assert result.remarks[2] == "nothing may change: allowed is False everywhere"
    place = torch.zeros(SHAPE[1:], dtype=torch.bool)
    place[1, 2] = True
    result = run_attack(attack, model, images, labels, allowed=place)
    assert_sound(attack, result, images)
    assert (result.l0_pixels <= 1).all()


def test_a_mask_that_allows_everything_changes_nothing(
    attack: Attack, model: Classifier, images: Tensor, labels: Tensor
) -> None:
    if not attack.facts().masked:
        pytest.skip("refuses masks")
    everywhere = torch.ones_like(images, dtype=torch.bool)
    free = run_attack(attack, model, images, labels)
    assert_same(run_attack(attack, model, images, labels, allowed=everywhere), free)


def test_asks_no_more_of_the_model_than_its_card_says(
    attack: Attack, images: Tensor, labels: Tensor, model: Classifier
) -> None:
    scores = Classifier(model.net, access="scores", name="black box")
    facts = attack.facts()
    if facts.least_access == "scores":
        given = run_attack(attack, scores, images, labels)
        assert_sound(attack, given, images)
        assert (given.forwards > 0).any()
        assert (given.backwards == 0).all()
        return
    if facts.access in ("gradients", "network"):
        with pytest.raises(BadInput, match="but black box gives scores alone"):
            run_attack(attack, scores, images, labels)
        return
    given = run_attack(attack, scores, images, labels)
    assert_same(given, run_attack(attack, model, images, labels))
    top = Classifier(lambda batch: one_hot(model(batch)), access="labels", name="oracle")
    if attack.facts().access == "scores":
        with pytest.raises(BadInput, match="but oracle gives labels alone"):
            run_attack(attack, top, images, labels)
        return
    told = run_attack(attack, top, images, labels)
    assert torch.equal(told.adversarial, given.adversarial)
    assert torch.equal(told.forwards, given.forwards)


def one_hot(logits: Tensor) -> Tensor:
    """The class, and nothing else that the logits say."""
    return nn.functional.one_hot(logits.argmax(dim=1), logits.shape[1]).to(logits.dtype)


# All of the table at once


def digests() -> dict[str, str]:
    """What each attack makes of the same images, as a short text."""
    model = row_by_row()
    images = some_images(model, count=3)
    labels = guesses(model, images)
    found = {}
    for name, spec in SPECS.items():
        result = run_attack(build(spec), model, images, labels, seed=3)
        found[name] = hashlib.sha256(result.adversarial.numpy().tobytes()).hexdigest()
    return found


@pytest.mark.slow
def test_another_process_gives_the_same_images_and_keeps_its_random_numbers() -> None:
    """Python's own random numbers are looked at here, as shape checks draw some of them."""
    code = (
        "import json, random, sys; sys.path.insert(0, sys.argv[1]);"
        "import test_attack_contract as contract; before = random.getstate();"
        "print(json.dumps(contract.digests())); assert random.getstate() == before"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)],
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == digests()
