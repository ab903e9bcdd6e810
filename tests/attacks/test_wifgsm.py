"""WI-FGSM, our form: its recursion, its departures from the paper, and what it costs."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from pinprick import BadInput, Classifier, Goal, Problem, Streams, build, least_likely, run_attack
from pinprick.attacks import FMN, IFGSM, PGD, WIFGSM
from pinprick.oracle import exact_images, exact_linear, fewest_elements, sure_images
from pinprick.parts.heaviside import room
from pinprick.result import Failure


class Recording:
    """A model that keeps the images it was queried with."""

    def __init__(self, model: Classifier) -> None:
        self.model, self.shown = model, list[Tensor]()

    def __call__(self, images: Tensor) -> Tensor:
        self.shown.append(images.detach().clone())
        return self.model(images)


def shown(attack: WIFGSM, model: Classifier, images: Tensor, goal: Goal) -> list[Tensor]:
    """The images of every query: x* and x_w of each step, and of the last gates."""
    recording = Recording(model)
    with model.frozen():
        attack(Problem(recording, images, goal, Streams(0, torch.arange(len(images)))))
    return recording.shown


def linear_case(seed: int = 1) -> tuple[Classifier, Tensor, Tensor]:
    model = exact_linear(10, (3, 8, 8), seed=seed)
    images = sure_images(model, exact_images(10, (3, 8, 8)))
    with torch.no_grad():
        return model, images, model(images).argmax(dim=1)


@pytest.mark.parametrize("steps", [1, 2, 6])
@pytest.mark.parametrize("turn", [True, False])
def test_follows_its_recursion_written_out(
    curved: Classifier, images: Tensor, curved_labels: Tensor, turn: bool, steps: int
) -> None:
    """By autograd, gate by gate as the docstring has it; the gates after the last step count."""
    tau, lam, a, momentum, size = 0.05, 0.1, 0.1, 0.75, 0.5
    targets = (curved_labels + 1) % 4
    start = IFGSM(steps=2, step_size=None)
    attack = WIFGSM(
        start=start,
        steps=steps,
        lam=lam,
        a=a,
        tau=tau,
        momentum=momentum,
        step_size=size,
        turn=turn,
    )
    seen = shown(attack, curved, images, Goal(curved_labels, targets))
    started = run_attack(start, curved, images, curved_labels, targets=targets).adversarial
    sides = torch.ones_like(images) if turn else (started - images).sign()
    seen = seen if turn else seen[2:]

    w, v = torch.zeros_like(images), torch.zeros_like(images)
    for step in range(steps + 1):
        w = torch.where(w > tau, w - tau, torch.where(w < -tau, w + tau, 0))
        w = w if turn else w.clamp(min=0)
        x_w = (images + w * sides).clamp(0, 1)
        up, down = (x_w > images), (x_w < images)
        torch.testing.assert_close(seen[2 * step], torch.where(up, 1, torch.where(down, 0, images)))
        torch.testing.assert_close(seen[2 * step + 1], x_w)
        w = ((x_w - images) * sides).requires_grad_()
        with curved.frozen():
            loss = F.cross_entropy(curved(images + w * sides), targets, reduction="sum")
        (g,) = torch.autograd.grad(loss, w)
        w = w.detach()
        g = g / g.abs().amax(dim=(1, 2, 3), keepdim=True)
        pull = lam * tau / 0.30 * torch.exp(-((w / a) ** 2)) / (a * torch.pi**0.5)
        if turn:
            held = torch.where(g.abs() > pull, g - pull * g.sign(), 0)
            g = torch.where(w == 0, held, g + pull * w.sign())
        else:
            g = g + pull
        v = momentum * v + (1 - momentum) * g
        w = w - size * v
    assert not torch.equal(seen[-1], images)


def test_the_gates_after_the_last_step_are_judged() -> None:
    """With one step, only they can fool."""
    model, images, labels = linear_case()
    attack = WIFGSM(steps=1, tau=0.01, start=IFGSM(eps=1e-9, steps=1, step_size=None))
    result = run_attack(attack, model, images, labels)
    assert result.success.all()
    assert (result.backwards <= 1 + 2).all()


@pytest.mark.parametrize("gain", [1 / 16, 1.0, 16.0])
@pytest.mark.parametrize("turn", [True, False])
def test_neither_eps_nor_the_size_of_the_logits_matters_much(gain: float, turn: bool) -> None:
    """Small logits blur the classes in the softmax, which costs some elements."""
    linear = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(linear, exact_images(8, (3, 8, 8), seed=6))
    model = Classifier(lambda batch: gain * linear(batch))
    with torch.no_grad():
        labels = linear(images).argmax(dim=1)
    fewest = fewest_elements(linear, images, Goal(labels))
    ratios = []
    for eps in (1 / 255, 4 / 255, 0.3):
        attack = WIFGSM(start=IFGSM(eps=eps, step_size=eps / 4), turn=turn)
        result = run_attack(attack, model, images, labels)
        assert result.success.all()
        ratios.append((result.needed_elements / fewest).mean().item())
    assert max(ratios) <= (1.3 if gain >= 1 else 1.5)
    assert max(ratios) <= 1.1 * min(ratios)


@pytest.mark.parametrize("tau", [None, 0.30])
def test_every_image_of_a_linear_model_is_fooled(tau: float | None) -> None:
    model, images, labels = linear_case()
    with torch.no_grad():
        logits = model(images)
    for targets in (None, least_likely(logits, labels)):
        result = run_attack(WIFGSM(tau=tau, lam=0.01), model, images, labels, targets=targets)
        assert result.success.all()
        assert (result.l0_elements < images[0].numel() / 2).all()


def test_a_gate_may_turn_from_the_side_of_the_start() -> None:
    """The start points the wrong way on this model, whose gradient turns round half way."""

    def hill(batch: Tensor) -> Tensor:
        total = batch.flatten(1).mean(dim=1) - 0.5
        return torch.stack([torch.zeros_like(total) + 0.2, 4 * total * (total + 0.06)], dim=1)

    images = torch.full((2, 1, 4, 4), 0.46, dtype=torch.double)
    labels = torch.zeros(2, dtype=torch.long)
    start = IFGSM(eps=0.01, step_size=None, steps=3)
    fixed, turning = (WIFGSM(start=start, turn=turn, steps=60) for turn in (False, True))
    few = run_attack(turning, Classifier(hill), images, labels)
    assert few.success.all()
    side = (few.adversarial - images).sum(dim=(1, 2, 3))
    other = run_attack(fixed, Classifier(hill), images, labels)
    assert (side < 0).all()
    assert ((other.adversarial - images).sum(dim=(1, 2, 3)) < 0).all()


def test_where_the_start_fails_it_is_run_again_towards_the_strongest_other_class(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    weak = IFGSM(eps=1 / 1024, steps=1, step_size=None)
    first = run_attack(weak, linear, images, labels)
    failed = ~first.success
    assert failed.any()
    others = first.adversarial_logits.scatter(1, labels.unsqueeze(1), -torch.inf).argmax(dim=1)
    again = run_attack(weak, linear, images, labels, targets=others)
    assert not torch.equal(again.adversarial[failed], first.adversarial[failed])
    started = torch.where(failed.view(-1, 1, 1, 1), again.adversarial, first.adversarial)
    problem = Problem(linear, images, Goal(labels), Streams(0, torch.arange(len(images))))
    with linear.frozen():
        sides, reached = WIFGSM(start=weak)._dense(problem)
    assert torch.equal(sides, (started - images).sign())
    assert torch.equal(reached, others)


def test_lost_images_begin_again_with_all_gates_open_to_the_sides_of_the_start() -> None:
    """The gradient at these images is zero, so that no gate opens the first time."""

    def flat_near_half(batch: Tensor) -> Tensor:
        far = (batch - 0.5).flatten(1).abs().sum(dim=1)
        side = (batch - 0.5).flatten(1).sum(dim=1)
        gain = torch.where(far > 0.03, side, torch.zeros_like(side))
        return torch.stack([torch.full_like(gain, 0.5), gain], dim=1)

    images = torch.full((2, 1, 4, 4), 0.5, dtype=torch.double)
    labels = torch.zeros(2, dtype=torch.long)
    model = Classifier(flat_near_half)
    once = run_attack(IFGSM(), model, images, labels)
    assert not once.success.any()
    random_start = PGD(eps=0.1, steps=5)
    result = run_attack(WIFGSM(start=random_start, steps=20), model, images, labels)
    assert result.success.all()
    assert (result.forwards > 2 * 21).all()


def test_the_symmetric_box_has_no_room_at_the_ends() -> None:
    model = exact_linear(3, (1, 6, 6), seed=2)
    images = (exact_images(4, (1, 6, 6)) > 0.5).double()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    symmetric = run_attack(WIFGSM(box="symmetric", steps=20), model, images, labels)
    assert not symmetric.success.any()
    assert run_attack(WIFGSM(steps=20), model, images, labels).success.all()


def test_the_room_of_a_value_is_on_one_side_or_the_smaller_of_both() -> None:
    images = torch.tensor([0.25, 0.25, 0.25, 1.0]).view(1, 1, 2, 2)
    delta = torch.tensor([0.1, -0.1, 0.0, 0.1]).view(1, 1, 2, 2)
    assert room(images, delta, "directed").flatten().tolist() == [0.75, 0.25, 0.25, 0]
    assert room(images, delta, "symmetric").flatten().tolist() == [0.25, 0.25, 0.25, 0]


def test_costs_two_forward_passes_and_one_backward_pass_per_step() -> None:
    model, images, labels = linear_case()
    result = run_attack(WIFGSM(steps=7, tau=0.01), model, images, labels)
    assert result.success.all()  # so the start was never run
    assert result.forwards.tolist() == [2 * 7 + 2] * len(images)
    assert result.backwards.tolist() == [7] * len(images)


@pytest.mark.parametrize("settings", [{"turn": False}, {"aim": "reached"}])
def test_the_start_is_run_first_where_its_change_or_class_is_needed(
    settings: dict[str, Any],
) -> None:
    model, images, labels = linear_case()
    start = IFGSM(eps=0.3, steps=3, step_size=None)
    assert run_attack(start, model, images, labels).success.all()
    result = run_attack(WIFGSM(steps=7, start=start, tau=0.01, **settings), model, images, labels)
    assert result.forwards.tolist() == [3 + 1 + 2 * 7 + 2] * len(images)
    facts = WIFGSM(steps=7, start=start, **settings).facts()
    assert (facts.max_forwards, facts.max_backwards) == (2 * 3 + 1 + 4 * 8, 2 * 3 + 2 * 7)


def test_the_weight_of_the_count_goes_up_and_down_with_tau() -> None:
    force = torch.tensor([1.0, -4.0, 0.0, 0.0]).view(1, 1, 2, 2)
    gates = torch.tensor([0.0, 0.0, 0.0, 9.0]).view(1, 1, 2, 2)
    flat = 1 / (0.1 * torch.pi**0.5)
    for tau in (0.15, 0.30):
        at = torch.full((1, 1, 1, 1), tau)
        slope = WIFGSM(turn=False, lam=0.01)._slope(force, gates, at).flatten()
        pull = 0.01 * flat * tau / 0.30
        torch.testing.assert_close(slope, torch.tensor([0.25 + pull, -1 + pull, pull, 0.0]))
        slope = WIFGSM(lam=0.01)._slope(force, gates, at).flatten()
        torch.testing.assert_close(slope, torch.tensor([0.25 - pull, -1 + pull, 0.0, 0.0]))


def test_a_count_that_outweighs_every_force_keeps_all_gates_shut() -> None:
    model, images, labels = linear_case()
    result = run_attack(WIFGSM(lam=1.0, tau=0.3, steps=5), model, images, labels)
    assert (result.forwards > 2 * 6).all()  # nothing fooled the first time
    assert (result.l0_elements > images[0].numel() / 2).all()


@pytest.mark.parametrize("name", ["wifgsm", "wifgsm_printed"])
def test_says_so_where_no_gate_ever_opened(name: str) -> None:
    model, images, labels = linear_case()
    result = run_attack(build({"name": name, "tau": 50.0, "steps": 3}), model, images, labels)
    assert set(result.failures) == {Failure.NOTHING_TRIED}


def test_presets_and_the_start_are_plain_data() -> None:
    assert build({"name": "wifgsm", "preset": "imagenet"}) == WIFGSM(
        steps=200, lam=0.3, momentum=0.9
    )
    spec = {"name": "wifgsm", "start": {"name": "pgd", "eps": "8/255"}, "tau": "none"}
    assert build(spec) == WIFGSM(start=PGD(eps=8 / 255))


def test_the_seed_matters_where_the_start_draws() -> None:
    assert not WIFGSM().facts().random
    assert WIFGSM(start=PGD()).facts().random


def test_refuses_a_sparse_start() -> None:
    with pytest.raises(BadInput, match=r"wifgsm needs a dense start, .* fmn is sparse"):
        WIFGSM(start=FMN())


@pytest.mark.parametrize("a", [0.0, float("nan"), float("inf")])
def test_refuses_a_width_of_nothing(a: float) -> None:
    with pytest.raises(BadInput, match=r"wifgsm needs a other than 0, 0.1 as a rule, got"):
        WIFGSM(a=a)


@pytest.mark.parametrize("setting", ["aim", "box"])
def test_refuses_words_it_does_not_know(setting: str) -> None:
    with pytest.raises(BadInput, match=f"{setting} of wifgsm must be one of '.*', got 'round'"):
        build({"name": "wifgsm", setting: "round"})
