"""WI-FGSM as printed: equal to Algorithm 1 written out, for every reading of the paper."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick import Classifier, Goal, Problem, build, run_attack
from pinprick.attacks import IFGSM, WIFGSMPrinted
from pinprick.random import Streams

EPS, TAU, LAM, A, LR = 0.25, 0.05, 1e-2, 0.1, 0.1
SETTINGS: dict[str, Any] = {
    "start_eps": EPS,
    "start_step_size": 0.1,
    "start_steps": 3,
    "tau": TAU,
    "lam": LAM,
    "a": A,
    "lr": LR,
    "loss_scale": 30.0,
}


class Step(torch.autograd.Function):
    """H of Equation 9, with the derivative of Equation 18."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor) -> Tensor:
        ctx.save_for_backward(gates)
        return (gates > 0).to(gates.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        gates: Tensor = ctx.saved_tensors[0]
        slope: Tensor = torch.exp(-((gates / A) ** 2)) / (abs(A) * torch.pi**0.5)
        return grads[0] * slope


def reference(
    model: Classifier, x: Tensor, delta: Tensor, y_adv: Tensor, w: Tensor, attack: WIFGSMPrinted
) -> list[Tensor]:
    """The images of line 7 after each step, by autograd and torch's own SGD."""
    omega = torch.minimum(x / EPS, (1 - x) / EPS)
    w = w.clone().requires_grad_()
    sgd = torch.optim.SGD([w], lr=LR, momentum=attack.momentum)
    found = []
    with model.frozen():
        for _ in range(attack.steps):
            if attack.reading == "algorithm1":
                with torch.no_grad():
                    w.copy_(F.relu(w - TAU / EPS))
                gates = w
            else:
                gates = F.relu(w - TAU / EPS)
            loss = F.cross_entropy(model(x + gates * delta), y_adv, reduction="sum")
            loss = loss + LAM * Step.apply(gates).sum()
            sgd.zero_grad()
            (attack.loss_scale * loss).backward()
            sgd.step()
            opened = (F.relu(w.detach() - TAU / EPS) > 0).to(x.dtype)
            found.append(x + omega * opened * delta)
    return found


def first_gates(images: Tensor, reading: str) -> Tensor:
    streams = Streams(0, torch.arange(len(images)))
    drawn = streams.normal(*images.shape[1:], step=0, use="wifgsm gates").to(images.dtype)
    return drawn if reading == "algorithm1" else TAU / EPS + drawn.abs()


def start(
    model: Classifier, images: Tensor, labels: Tensor, targets: Tensor | None, start_label: str
) -> tuple[Tensor, Tensor]:
    """The change of I-FGSM, and the class that the gates head for."""
    ifgsm = IFGSM(eps=EPS, steps=3, step_size=0.1)
    away = run_attack(ifgsm, model, images, labels).adversarial
    with torch.no_grad(), model.frozen():
        logits = model(away)
    others = logits.scatter(1, labels.unsqueeze(1), -torch.inf)
    y_adv = others.argmax(dim=1) if targets is None else targets
    if start_label == "true":
        return away - images, y_adv
    return run_attack(ifgsm, model, images, labels, targets=y_adv).adversarial - images, y_adv


def expected(
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    targets: Tensor | None,
    attack: WIFGSMPrinted,
) -> Tensor:
    delta, y_adv = start(model, images, labels, targets, attack.start_label)
    w = first_gates(images, attack.reading)
    tries = reference(model, images, delta, y_adv, w, attack)
    tries = tries if attack.keep == "sparsest" else tries[-1:]
    best, fewest = images.clone(), torch.full((len(images),), torch.inf)
    for tried in tries:
        with torch.no_grad(), model.frozen():
            guess = model(tried).argmax(dim=1)
        met = guess != labels if targets is None else guess == targets
        count = (tried != images).flatten(1).sum(dim=1).float()
        better = met & (count < fewest)
        fewest = torch.where(better, count, fewest)
        best = torch.where(better.view(-1, 1, 1, 1), tried, best)
    return best


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.parametrize("reading", ["algorithm1", "eq20"])
@pytest.mark.parametrize("steps", range(1, 11))
def test_equals_the_algorithm_written_out(
    curved: Classifier,
    images: Tensor,
    curved_labels: Tensor,
    steps: int,
    reading: str,
    targeted: bool,
) -> None:
    attack = WIFGSMPrinted(**SETTINGS, steps=steps, reading=reading)  # type: ignore[arg-type]
    targets = (curved_labels + 1) % 4 if targeted else None
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    wanted = expected(curved, images, curved_labels, targets, attack)
    torch.testing.assert_close(result.adversarial, wanted)
    single = run_attack(
        attack,
        curved,
        images[2:3],
        curved_labels[2:3],
        targets=None if targets is None else targets[2:3],
        ids=[2],
    )
    torch.testing.assert_close(single.adversarial, wanted[2:3])


@pytest.mark.parametrize(
    "other", [{"keep": "sparsest"}, {"momentum": 0.0}, {"start_label": "true"}], ids=str
)
@pytest.mark.parametrize("targeted", [False, True])
def test_every_other_reading_equals_the_algorithm_written_out(
    curved: Classifier, images: Tensor, curved_labels: Tensor, other: Any, targeted: bool
) -> None:
    settings = {**SETTINGS, "steps": 6, "loss_scale": 30.0 if targeted else 5.0}
    attack = WIFGSMPrinted(**settings, **other)
    targets = (curved_labels + 1) % 4 if targeted else None
    result = run_attack(attack, curved, images, curved_labels, targets=targets)
    wanted = expected(curved, images, curved_labels, targets, attack)
    torch.testing.assert_close(result.adversarial, wanted)
    if not targeted:  # the readings differ here
        plain = expected(curved, images, curved_labels, targets, WIFGSMPrinted(**settings))
        assert not torch.equal(plain, wanted)


def test_one_step_is_enough_where_the_algorithm_has_one() -> None:
    """The gates of the last update are applied: Algorithm 1 at T = 1 on a linear model."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(192, 4))
        images = torch.rand(6, 3, 8, 8)
    model = Classifier(net)
    with torch.no_grad():
        logits = model(images)
    labels, targets = logits.argmax(dim=1), logits.argmin(dim=1)
    attack = WIFGSMPrinted(steps=1, loss_scale=1e7, lam=0.0)
    result = run_attack(attack, model, images, labels, targets=targets)
    assert result.success.all()


def test_the_text_taken_literally_opens_no_gate(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    literal = run_attack(WIFGSMPrinted(loss_scale=1.0, steps=20), curved, images, curved_labels)
    assert torch.equal(literal.adversarial, images)


def test_no_value_leaves_the_symmetric_room(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    images = images.clone()
    images[:, :, 0] = 0.0
    images[:, :, 1] = 1.0
    with torch.no_grad():
        labels = curved(images).argmax(dim=1)
    attack = WIFGSMPrinted(**SETTINGS, steps=10, keep="sparsest")
    result = run_attack(attack, curved, images, labels)
    assert result.success.any()
    assert torch.equal(result.adversarial[:, :, :2], images[:, :, :2])


@pytest.mark.parametrize(
    ("preset", "steps", "lam"),
    [("mnist", 100, 1e-2), ("cifar10", 100, 1e-2), ("imagenet", 200, 1e-3)],
)
def test_presets_hold_the_values_of_the_paper(preset: str, steps: int, lam: float) -> None:
    attack = build({"name": "wifgsm_printed", "preset": preset})
    assert isinstance(attack, WIFGSMPrinted)
    assert (attack.steps, attack.lam, attack.tau, attack.a) == (steps, lam, 0.30, 0.1)
    assert (attack.start_eps, attack.start_step_size, attack.start_steps) == (4 / 255, 1 / 255, 10)
    assert (attack.lr, attack.momentum, attack.loss_scale) == (1e-2, 0.9, 1e5)
    assert (attack.reading, attack.keep) == ("algorithm1", "last")


@pytest.mark.parametrize("reading", ["algorithm1", "eq20"])
def test_a_step_follows_the_slope_of_the_whole_smoothed_objective(
    curved: Classifier, images: Tensor, curved_labels: Tensor, reading: str
) -> None:
    """By finite differences of J + lambda * sum (1 + erf(w / a)) / 2, whose step is smooth."""
    one, label = images[:1], curved_labels[:1]
    target = (label + 1) % 4
    settings = SETTINGS | {"tau": 0.0, "lam": 0.3, "lr": 1e-3, "loss_scale": 1.0, "momentum": 0.0}
    attack = WIFGSMPrinted(**settings, steps=2, reading=reading)  # type: ignore[arg-type]
    shown: list[Tensor] = []

    def watched(batch: Tensor) -> Tensor:
        shown.append(batch.detach().clone())
        return curved(batch)

    with curved.frozen():
        attack(Problem(watched, one, Goal(label, target), Streams(0, torch.arange(1))))
    delta, _ = start(curved, one, label, target, "adversarial")
    before, after = (
        ((asked - one) / delta).flatten() for asked in shown[3:5]
    )  # the gates of the first and of the second step

    def objective(gates: Tensor) -> Tensor:
        with torch.no_grad(), curved.frozen():
            loss = F.cross_entropy(curved(one + gates.view_as(one) * delta), target)
        return loss + 0.3 * ((1 + torch.erf(gates / A)) / 2).sum()

    widths = 1e-5 * torch.eye(before.numel(), dtype=before.dtype)
    slope = torch.stack(
        [(objective(before + width) - objective(before - width)) / 2e-5 for width in widths]
    )
    still_open = (before > 0) & (after > 0)
    assert still_open.sum() > before.numel() / 4
    torch.testing.assert_close(
        ((before - after) / 1e-3)[still_open], slope[still_open], atol=1e-5, rtol=1e-4
    )
