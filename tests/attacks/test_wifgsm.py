"""WI-FGSM: the printed recursion, the scale that fits every size, and what it costs."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick import BadInput, Classifier, Goal, Problem, Streams, build, least_likely, run_attack
from pinprick.attacks import IFGSM, PGD, WIFGSM, DeepFool
from pinprick.attacks.wifgsm.learning import Learning
from pinprick.oracle import exact_images, exact_linear, fewest_elements, sure_images
from pinprick.parts.heaviside import room


class Recording:
    """A model that keeps what it was shown."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.shown = model, list[Tensor]()

    def __call__(self, images: Tensor) -> Tensor:
        self.shown.append(images.detach().clone())
        return self.model(images)


def shown(attack: WIFGSM, model: Classifier, images: Tensor, goal: Goal) -> list[Tensor]:
    """What an attack asks about: the start's steps, its result if untargeted, then two a step."""
    recording = Recording(model)
    with model.frozen():
        attack(Problem(recording, images, goal, Streams(0, torch.arange(len(images)))))
    return recording.shown


def test_follows_the_printed_recursion(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    """With autograd and torch's own SGD, from the printed loss; the step's derivative by hand."""
    eps, tau, lam, a, scale, steps = 0.25, 0.05, 1e-2, 0.1, 30.0, 6
    start = IFGSM(eps=eps, steps=3, step_size=None)
    attack = WIFGSM.printed(
        penalise="all",
        start=start,
        tau=tau,
        lam=lam,
        a=a,
        loss_scale=scale,
        steps=steps,
        gates="zeros",
        lr=0.1,
    )
    targets = (curved_labels + 1) % 4
    goal = Goal(curved_labels, targets)
    started = run_attack(start, curved, images, curved_labels, targets=targets).adversarial
    seen = shown(attack, curved, images, goal)[3:]

    delta = started - images
    omega = torch.minimum(images, 1 - images) / eps
    w = torch.zeros_like(images).requires_grad_()
    sgd = torch.optim.SGD([w], lr=0.1, momentum=0.9)
    opened = 0
    with curved.frozen():
        for step in range(steps):
            with torch.no_grad():
                w.copy_(F.relu(w - tau / eps))
            torch.testing.assert_close(seen[2 * step], images + w.detach() * delta)
            gated = images + omega * (w.detach() > 0) * delta
            torch.testing.assert_close(seen[1 + 2 * step], gated)
            opened += int((w > 0).sum())
            loss = F.cross_entropy(curved(images + w * delta), targets, reduction="sum")
            sgd.zero_grad()
            (scale * loss).backward()
            w.grad += scale * lam * torch.exp(-((w.detach() / a) ** 2)) / (a * torch.pi**0.5)
            sgd.step()
    assert opened > 0


def test_the_text_taken_literally_opens_no_gate(
    curved: Classifier, images: Tensor, curved_labels: Tensor
) -> None:
    literal = WIFGSM.printed(loss_scale=1.0, steps=20)
    seen = shown(literal, curved, images, Goal(curved_labels))
    for asked in seen[-2 * literal.steps :]:
        assert torch.equal(asked, images)


@pytest.mark.parametrize("gain", [1 / 16, 1.0, 16.0])
def test_eps_does_not_matter_and_the_size_of_the_logits_little(gain: float) -> None:
    """Small logits blur the classes in the softmax, which costs up to a quarter more elements."""
    linear = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(linear, exact_images(8, (3, 8, 8), seed=6))
    model = Classifier(lambda batch: gain * linear(batch))
    with torch.no_grad():
        labels = linear(images).argmax(dim=1)
    fewest = fewest_elements(linear, images, Goal(labels))
    ratios = []
    for eps in (2 / 255, 4 / 255, 6 / 255, 8 / 255, 0.3):
        attack = WIFGSM(start=IFGSM(eps=eps, step_size=eps / 4))
        result = run_attack(attack, model, images, labels)
        assert result.success.all()
        ratios.append((result.needed_elements / fewest).mean().item())
    assert max(ratios) <= 1.3
    assert max(ratios) <= 1.1 * min(ratios)


@pytest.mark.parametrize("tau", [None, 0.30])
def test_every_image_of_a_linear_model_is_fooled(tau: float | None) -> None:
    model = exact_linear(10, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(10, (3, 8, 8)))
    with torch.no_grad():
        logits = model(images)
    labels = logits.argmax(dim=1)
    for targets in (None, least_likely(logits, labels)):
        result = run_attack(WIFGSM(tau=tau), model, images, labels, targets=targets)
        assert result.success.all()
        assert (result.l0_elements < images[0].numel() / 2).all()


def test_a_start_that_fails_is_run_again_towards_the_class_to_reach(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    weak = IFGSM(eps=1 / 1024, steps=1, step_size=None)
    first = run_attack(weak, linear, images, labels)
    failed = ~first.success
    assert failed.any()
    others = first.adversarial_logits.scatter(1, labels.unsqueeze(1), -torch.inf)
    again = run_attack(weak, linear, images, labels, targets=others.argmax(dim=1))
    seen = shown(WIFGSM(start=weak, steps=1, tau=0.3), linear, images, Goal(labels))
    assert len(seen) == 1 + 1 + 1 + 2  # start, its result, start of those that failed, one step
    assert len(seen[2]) == int(failed.sum())
    assert not torch.equal(again.adversarial[failed], first.adversarial[failed])


def test_where_the_start_fails_it_heads_for_the_strongest_other_class(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    weak = IFGSM(eps=1 / 1024, steps=1, step_size=None)
    assert not run_attack(weak, linear, images, labels).success.all()
    assert run_attack(WIFGSM(start=weak), linear, images, labels).success.all()


def test_where_no_gates_have_fooled_they_are_all_opened() -> None:
    """In one step from the first gates, which tau shuts, nothing can be found."""
    model = exact_linear(10, (3, 8, 8), seed=1)
    images = sure_images(model, exact_images(10, (3, 8, 8)))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    once = run_attack(WIFGSM(steps=1, tau=0.3), model, images, labels)
    again = run_attack(WIFGSM(steps=1), model, images, labels)
    assert not once.success.any()
    assert again.success.all()
    assert (again.l0_elements > images[0].numel() / 2).all()
    assert (again.forwards <= 2 * 10 + 1 + 4).all()


def test_the_symmetric_box_has_no_room_at_the_ends() -> None:
    model = exact_linear(3, (1, 6, 6), seed=2)
    images = (exact_images(4, (1, 6, 6)) > 0.5).double()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    symmetric = run_attack(WIFGSM(box="symmetric", steps=20), model, images, labels)
    directed = run_attack(WIFGSM(steps=20), model, images, labels)
    assert not symmetric.success.any()
    assert directed.success.all()


def test_costs_two_forward_passes_and_one_backward_pass_a_step(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(WIFGSM(steps=7, start=IFGSM(steps=3)), linear, images, labels)
    once = run_attack(IFGSM(steps=3), linear, images, labels).success
    assert once.any()
    assert (~once).any()
    starts = torch.where(once, 1, 2)  # a start that did not fool is run again, towards y_adv
    assert torch.equal(result.forwards, 3 * starts + 1 + 2 * 7)
    assert torch.equal(result.backwards, 3 * starts + 7)


@pytest.mark.parametrize(
    ("settings", "turns"), [({}, 2), ({"tau": 0.3}, 1), ({"bounded": False}, 1)]
)
def test_its_limits_count_the_second_turn_where_there_may_be_one(
    settings: dict[str, Any], turns: int
) -> None:
    facts = WIFGSM(steps=7, start=IFGSM(steps=3), **settings).facts()
    assert facts.max_forwards == 2 * 3 + 1 + 2 * 7 * turns
    assert facts.max_backwards == 2 * 3 + 7 * turns


def test_the_room_of_a_value_is_on_one_side_or_the_smaller_of_both() -> None:
    images = torch.tensor([0.25, 0.25, 0.25, 1.0]).view(1, 1, 2, 2)
    delta = torch.tensor([0.1, -0.1, 0.0, 0.1]).view(1, 1, 2, 2)
    assert room(images, delta, "directed").flatten().tolist() == [0.75, 0.25, 0.25, 0]
    assert room(images, delta, "symmetric").flatten().tolist() == [0.25, 0.25, 0.25, 0]


def learning(**changed: Any) -> Learning:
    numbers = {"steps": 7, "lam": 0.5, "a": 0.1, "tau": 0.3, "tau_rate": None, "eps": 0.25}
    step = {"lr": 0.5, "momentum": 0.75, "loss_scale": None}
    rest = {"open_only": False, "box": "directed", "bounded": True}
    return Learning(**{**numbers, **step, **rest, **changed})


def test_the_gradient_of_the_gates_is_scaled_by_its_own_largest_value() -> None:
    slope = torch.tensor([1.0, -4.0, 0.0, 0.0]).view(2, 1, 1, 2)
    penalty = torch.tensor([0.5, 0.0, 0.0, 0.25]).view(2, 1, 1, 2)
    scaled = learning()._scaled(slope, penalty)  # times (1 - 0.75) / (0.5 * 0.25), which is 2
    assert scaled.flatten().tolist() == [1.5, -2, 0, 0.5]
    scaled = learning(loss_scale=10.0)._scaled(slope, penalty)
    assert scaled.flatten().tolist() == [15, -40, 0, 2.5]
    with pytest.raises(
        TypeError, match=r"takes 1 positional argument but 2 were given|too many positional"
    ):
        Learning(7)  # type: ignore[call-arg]


def test_shut_gates_pay_or_not() -> None:
    """A penalty above any force keeps all gates shut, unless only open ones pay it."""
    model = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(4, (3, 8, 8), seed=6))
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    heavy: dict[str, Any] = {"lam": 1.0, "tau": 0.3}
    assert not run_attack(WIFGSM(**heavy), model, images, labels).success.any()
    assert run_attack(WIFGSM(penalise="open", **heavy), model, images, labels).success.all()


def test_the_seed_matters_where_first_gates_survive_or_the_start_draws() -> None:
    assert not WIFGSM().facts().random  # tau / eps is 19, more than any normal draw
    wide = IFGSM(eps=0.3, step_size=None)
    assert WIFGSM(start=wide).facts().random
    assert not WIFGSM(start=wide, gates="zeros").facts().random
    assert WIFGSM(start=PGD()).facts().random


def test_presets_hold_the_values_of_the_paper() -> None:
    for preset, steps, lam in (
        (WIFGSM.mnist(), 100, 1e-2),
        (WIFGSM.cifar10(), 100, 1e-2),
        (WIFGSM.imagenet(), 200, 1e-3),
    ):
        assert (preset.steps, preset.lam) == (steps, lam)
        assert (preset.a, preset.lr, preset.momentum) == (0.1, 1e-2, 0.9)
        assert preset.start == IFGSM(eps=4 / 255, step_size=1 / 255, steps=10)
    assert WIFGSM.imagenet(steps=50) == WIFGSM(lam=1e-3, steps=50)
    printed = WIFGSM.printed()
    assert (printed.tau, printed.box) == (0.30, "symmetric")


def test_the_start_nests_in_plain_data() -> None:
    spec = {"name": "wifgsm", "start": {"name": "pgd", "eps": "8/255"}, "tau": "none"}
    assert build(spec) == WIFGSM(start=PGD(eps=8 / 255))


def test_refuses_a_start_without_a_radius() -> None:
    with pytest.raises(BadInput, match=r"wifgsm needs a start with a radius eps, .* got deepfool"):
        WIFGSM(start=DeepFool())


@pytest.mark.parametrize("a", [0.0, float("nan"), float("inf")])
def test_refuses_a_width_of_nothing(a: float) -> None:
    with pytest.raises(BadInput, match=r"wifgsm needs a other than 0, 0.1 as a rule, got"):
        WIFGSM(a=a)


@pytest.mark.parametrize("setting", ["gates", "penalise", "box"])
def test_refuses_words_it_does_not_know(setting: str) -> None:
    with pytest.raises(BadInput, match=f"{setting} of wifgsm must be one of '.*', got 'round'"):
        build({"name": "wifgsm", setting: "round"})
