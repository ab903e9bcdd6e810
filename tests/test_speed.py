"""Speeds of a run: the same results where they are exact, and none kept that float32 refuses."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from contract.specifications import QUICK
from recorded import FakeRecorder
from torch import Tensor, nn

from pinprick import (
    ATTACKS,
    BadInput,
    Classifier,
    Failure,
    Goal,
    build,
    confirmed_search,
    load_result,
    replay,
    run_attack,
    save_result,
    score_model,
)
from pinprick import speed as speed_module
from pinprick.attacks.card import Attack
from pinprick.confirmed_search import ConfirmedSearch
from pinprick.model import as_classifier
from pinprick.oracle import exact_images
from pinprick.result import join
from pinprick.run import attack_batches
from pinprick.speed import ModelPasses
from pinprick.speed_names import check_speed
from pinprick.watch import Watch

SPARSE = [
    name
    for name in ATTACKS
    if build({"name": name, **QUICK.get(name, {})}).facts().kind == "minimal"
    and ATTACKS[name].card.norm == "l0"
    and ATTACKS[name].card.inputs is None
]


def phase(images: Tensor) -> Tensor:
    """A number per image in [-1, 1] that any change of it changes."""
    return (1e3 * images.detach().flatten(1).sum(dim=1, keepdim=True)).sin()


def noisy(model: Classifier, size: float) -> Callable[[Tensor], Tensor]:
    """The model with logits that are off by up to ``size``, the same for the same image."""
    return lambda images: model(images) + size * phase(images) ** torch.arange(1, 5)


def often_wrong(model: Classifier, clean: Tensor) -> Callable[[Tensor], Tensor]:
    """The model, but on a tenth of all images other than the clean ones it is far off."""

    def logits(images: Tensor) -> Tensor:
        known = (images.unsqueeze(1) == clean).flatten(2).all(dim=2).any(dim=1, keepdim=True)
        return torch.where(known | (phase(images) < 0.95), 1, -20) * model(images)

    return logits


def fast(model: Classifier, size: float) -> ModelPasses:
    return ModelPasses(model, "fast", recorder=FakeRecorder, coarse=noisy(model, size))


@pytest.fixture(autouse=True)
def soon_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PATIENCE", 2)


@pytest.fixture(autouse=True)
def none_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes of a few images are searched in bfloat16, too."""
    monkeypatch.setattr(speed_module, "_SMALL", -1)
    monkeypatch.setattr(speed_module, "_SMALL_ALONE", -1)


@pytest.fixture
def few_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eighth of a small batch is confirmed, too."""
    monkeypatch.setattr(confirmed_search, "_ALL", 1)


@pytest.mark.parametrize("name", ["sigma_zero", "sparse_rs", "ifgsm", "pinprick", "fmn"])
def test_graphs_give_what_exact_gives(
    name: str, linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    attack = build({"name": name, **QUICK.get(name, {})})
    passes = ModelPasses(linear, "graphs", recorder=FakeRecorder)
    exact = run_attack(attack, linear, images, labels)
    graphs = run_attack(attack, linear, images, labels, speed=passes)
    assert torch.equal(graphs.adversarial, exact.adversarial)
    assert torch.equal(graphs.forwards, exact.forwards)
    assert torch.equal(graphs.backwards, exact.backwards)
    assert exact.speed is None
    assert graphs.speed is not None
    assert graphs.speed["recordings"] > 0
    assert graphs.speed["remark"] == ""


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.usefixtures("few_confirmed")
def test_no_image_is_kept_that_float32_refuses(
    name: str, linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    attack = build({"name": name, **QUICK.get(name, {})})
    coarse = often_wrong(linear, images)
    passes = ModelPasses(linear, "fast", recorder=FakeRecorder, coarse=coarse)
    result = run_attack(attack, linear, images, labels, speed=passes)
    changed = (result.adversarial != images).flatten(1).any(dim=1)
    assert torch.equal(result.success, changed)
    assert result.speed is not None
    assert result.speed["confirmations"] > 0


def confirmed(passes: ModelPasses, images: Tensor, goal: Goal) -> Tensor:
    with torch.no_grad():
        passes.begin(images, passes.model(images))
        return passes(images, goal)


@pytest.mark.parametrize("targeted", [False, True])
@pytest.mark.usefixtures("few_confirmed")
def test_logits_within_the_noise_are_those_of_float32_or_meet_no_goal(
    linear: Classifier, targeted: bool
) -> None:
    images = exact_images(64, (3, 6, 5))
    passes, exact = fast(linear, 0.05), linear(images).detach()
    coarse = noisy(linear, 0.05)(images).detach()
    order = exact.argsort(dim=1)
    goal = Goal(order[:, -1], order[:, -2]) if targeted else Goal(order[:, -2])
    got = confirmed(passes, images, goal)
    same = (got == exact).all(dim=1)
    assert same.sum() == 8
    assert passes.confirmations == 8
    met = goal.met(got)
    believed = met & ~same
    assert believed.any() != targeted
    assert (goal.margin(coarse)[believed] <= -0.1).all()  # twice the noise of a logit
    assert not (believed & ~goal.met(exact)).any()
    waits = ~same & ~met & goal.met(coarse)
    assert (goal.margin(got)[waits] >= 0).all()


def test_all_candidates_of_a_small_batch_are_confirmed(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    got = confirmed(fast(linear, 0.5), images, Goal(labels))
    assert torch.equal(got, linear(images))


@pytest.mark.usefixtures("few_confirmed")
@pytest.mark.parametrize("gradient", [False, True])
def test_a_small_pass_is_in_float32(
    monkeypatch: pytest.MonkeyPatch,
    linear: Classifier,
    images: Tensor,
    labels: Tensor,
    gradient: bool,
) -> None:
    images, labels = torch.cat((images, images)), torch.cat((labels, labels))
    work = speed_module._multiplications(linear, images[:1])
    monkeypatch.setattr(speed_module, "_SMALL" if gradient else "_SMALL_ALONE", 6 * work)
    passes = fast(linear, 0.5)
    passes.begin(images, linear(images).detach())
    for count in (6, 7):
        some = images[:count].clone().requires_grad_(gradient)
        got = passes(some, Goal(labels[:count])).detach()
        assert torch.equal(got, linear(some)) == (count == 6)
    assert passes.confirmations == 1


def test_multiplications_of_convolutions_and_linear_layers_are_counted(images: Tensor) -> None:
    found = speed_module._multiplications(small_network(), images[:1].float())
    assert found == 6 * 4 * 3 * 27 + 4 * 72


def test_the_noise_follows_the_confirmations(linear: Classifier) -> None:
    images, size = exact_images(12, (3, 6, 5)), [0.05]
    logits = linear(images).detach()

    def coarse(inputs: Tensor) -> Tensor:
        return noisy(linear, size[0])(inputs)

    search, goal = ConfirmedSearch(coarse, linear, logits), Goal(logits.argmax(dim=1))
    classes = search.aim(goal)
    with torch.no_grad():
        change = (goal.margin(coarse(images)) - goal.margin(logits)).abs().max()
        search(images, classes)
        torch.testing.assert_close(search.noise, 1.4 * change)
        size[0] = 0.0
        for passes in (1, 2):
            search(images, classes)
            torch.testing.assert_close(search.noise, 0.9**passes * 1.4 * change)


def test_the_noise_of_a_batch_does_not_come_from_those_before_it(
    linear: Classifier, images: Tensor
) -> None:
    coarse, clean = often_wrong(linear, images[:3]), linear(images).detach()
    passes = ModelPasses(linear, "fast", recorder=FakeRecorder, coarse=coarse)
    noises = []
    for part in (slice(3, None), slice(3)):
        passes.begin(images[part], clean[part])
        assert passes._search is not None
        noises.append(passes._search.noise.item())
    assert noises[0] > noises[1] == 0


def test_confirmed_logits_have_the_gradient_of_the_search(
    curved: Classifier, images: Tensor, labels: Tensor
) -> None:
    passes, inputs = fast(curved, 0.5), images.clone().requires_grad_()
    passes.begin(inputs.detach(), curved(inputs).detach())
    grad = torch.autograd.grad(passes(inputs, Goal(labels))[:, 0].sum(), inputs)[0]
    assert torch.equal(grad, torch.autograd.grad(curved(inputs)[:, 0].sum(), inputs)[0])


class _LastTry(Attack):
    """Returns its second candidate wherever that seems to fool, and believes all logits."""

    card = ATTACKS["greedy"].card

    def __call__(self, problem: Any) -> Tensor:
        adv = problem.images.flip(1)
        met = problem.goal.met(problem.logits(adv))
        return torch.where(met.view(-1, 1, 1, 1), adv, problem.images)


@pytest.mark.usefixtures("few_confirmed")
def test_what_was_believed_in_error_is_attacked_again_in_float32(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    def liar(inputs: Tensor) -> Tensor:  # right on clean images, so the noise seems small
        clean = (inputs.unsqueeze(1) == images).flatten(2).all(dim=2).any(dim=1, keepdim=True)
        return torch.where(clean, 1, -100) * linear(inputs)

    passes = ModelPasses(linear, "fast", recorder=FakeRecorder, coarse=liar)
    result = run_attack(_LastTry(), linear, images, labels, speed=passes)
    changed = (result.adversarial != images).flatten(1).any(dim=1)
    assert torch.equal(result.success, changed)
    with torch.no_grad():
        adv = images.flip(1)
        believed = liar(adv).argmax(dim=1) != labels
        lost = believed & (linear(adv).argmax(dim=1) == labels)
    assert lost.any()
    assert result.forwards[lost].max() == 2
    assert (result.forwards[~lost] == 1).all()


@pytest.mark.usefixtures("few_confirmed")
def test_what_was_believed_in_error_says_so_where_a_limit_leaves_no_pass(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    attack, coarse = build("fmn"), often_wrong(linear, images)
    run = partial(run_attack, attack, linear, images, labels, max_forwards=20)
    passes = ModelPasses(linear, "fast", recorder=FakeRecorder, coarse=coarse)
    exact, found = run(), run(speed=passes)
    assert exact.success.all()
    assert 0 < found.success.sum() < len(images)
    assert set(found.failures) == {None, Failure.SPENT_IN_BFLOAT16}
    assert found.out_of_budget[~found.success].all()


class _Judge(Watch):
    """Notes the elements of each candidate that fools in float32, per image."""

    def __init__(self, model: Classifier, clean: Tensor) -> None:
        self._model, self._clean = model, clean
        self.counts: list[set[float]] = [{0.0, torch.inf} for _ in clean]

    def see(self, rows: Tensor, images: Tensor, goal: Goal, *_: Tensor) -> None:
        with torch.no_grad():
            fools = goal.plain.met(self._model(images))
        elements = (images != self._clean[rows]).flatten(1).sum(dim=1)
        for row, count in zip(rows[fools].tolist(), elements[fools].tolist(), strict=True):
            self.counts[row].add(count)


@pytest.mark.parametrize("name", ["sigma_zero", "pinprick", "fmn"])
@pytest.mark.usefixtures("few_confirmed")
def test_a_trace_has_only_what_was_judged_in_float32(
    name: str, linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    attack = build({"name": name, **QUICK.get(name, {})})
    coarse, judge = often_wrong(linear, images), _Judge(linear, images)
    passes = ModelPasses(linear, "fast", recorder=FakeRecorder, coarse=coarse)
    (result,) = attack_batches(
        attack, linear, images, labels, trace=True, speed=passes, watch=judge
    )
    assert result.trace is not None
    owners = torch.arange(len(images)).repeat_interleave(result.trace.steps)
    steps = list(zip(owners.tolist(), result.trace.elements.tolist(), strict=True))
    assert all(count in judge.counts[row] for row, count in steps)
    fewest = result.trace.fewest_after(10**6, "elements")
    assert torch.equal(fewest.isfinite(), result.success)
    assert len({count for _, count in steps}) > 3  # of confirmed candidates, too


@pytest.mark.parametrize("speed", ["graphs", "fast", "compiled"])
def test_on_a_cpu_the_model_is_queried_directly_with_a_remark(
    linear: Classifier, images: Tensor, labels: Tensor, speed: Any
) -> None:
    attack = build("greedy")
    result = run_attack(attack, linear, images, labels, batch_size=4, speed=speed)
    exact = run_attack(attack, linear, images, labels, batch_size=4)
    assert torch.equal(result.adversarial, exact.adversarial)
    assert result.speed is not None
    assert result.speed.pop("recording_seconds") < 1
    assert result.speed == {
        "speed": speed,
        "remark": "passes are recorded on a GPU only, not on cpu",
        "recordings": 0,
        "confirmations": 0,
    }


def small_network(groups: int = 1) -> Classifier:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, groups=groups), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 4 * 3, 4)
    )
    return Classifier(net)


def test_a_search_in_bfloat16_fools_in_float32(images: Tensor) -> None:
    model, images = small_network(), images.float()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build({"name": "sigma_zero", "steps": 40})
    with ModelPasses(model, "fast", recorder=FakeRecorder) as passes:
        result = run_attack(attack, model, images, labels, speed=passes)
    assert result.success.all()
    assert result.speed is not None
    assert result.speed["remark"] == ""
    assert result.speed["confirmations"] > 0


@pytest.mark.parametrize("groups", [1, 3])
def test_a_compiled_search_fools_in_float32(images: Tensor, groups: int) -> None:
    model, images = small_network(groups), images.float()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build({"name": "sigma_zero", "steps": 40})
    compiled, counts = [], []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(graph)
        return graph

    with ModelPasses(model, "compiled", recorder=FakeRecorder, backend=backend) as passes:
        for _ in range(2):
            result = run_attack(attack, model, images, labels, speed=passes)
            assert result.success.all()
            assert result.speed is not None
            assert result.speed["remark"] == ""
            assert result.speed["confirmations"] > 0
            counts.append(len(compiled))
    assert 0 < counts[0] == counts[1]  # the first run compiles for both


def no_compiler(graph: Any, inputs: Any) -> Any:
    raise RuntimeError("there is no C compiler")


def test_a_search_that_cannot_be_compiled_is_in_bfloat16(images: Tensor) -> None:
    model, images = small_network(), images.float()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build({"name": "sigma_zero", "steps": 40})
    results = []
    for speed in ("fast", "compiled"):
        with ModelPasses(model, speed, recorder=FakeRecorder, backend=no_compiler) as passes:
            results.append(run_attack(attack, model, images, labels, speed=passes))
    fast, compiled = results
    assert torch.equal(compiled.adversarial, fast.adversarial)
    assert compiled.speed is not None
    assert compiled.speed["remark"].startswith("passes of this network cannot be compiled: ")


def test_a_depthwise_search_that_cannot_be_compiled_is_in_float32(images: Tensor) -> None:
    model, images = small_network(groups=3), images.float()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build({"name": "fmn", "steps": 9})
    with ModelPasses(model, "compiled", recorder=FakeRecorder, backend=no_compiler) as passes:
        first, second = (
            run_attack(attack, model, images, labels, speed=passes).speed for _ in range(2)
        )
    assert first is not None
    assert second is not None
    assert first["confirmations"] == len(images)  # of the pass that could not be compiled
    assert second["confirmations"] == 0
    assert "cannot be compiled" in second["remark"]


@pytest.mark.parametrize(
    ("model", "dtype", "reason"),
    [
        (
            small_network(groups=3),
            torch.float32,
            "networks with depthwise convolutions are not searched in bfloat16, "
            "unless it is compiled (speed=compiled)",
        ),
        (
            small_network().net.double(),  # type: ignore[attr-defined]
            torch.float64,
            "images of torch.float64 are not searched in bfloat16",
        ),
    ],
)
def test_some_searches_stay_in_float32(
    model: Any, dtype: torch.dtype, reason: str, images: Tensor
) -> None:
    classifier, images = as_classifier(model), images.to(dtype)
    with torch.no_grad():
        labels = classifier(images).argmax(dim=1)
    passes = ModelPasses(classifier, "fast", recorder=FakeRecorder)
    result = run_attack(
        build({"name": "fmn", "steps": 9}), classifier, images, labels, speed=passes
    )
    assert result.speed is not None
    assert result.speed["remark"] == reason
    assert result.speed["confirmations"] == 0
    assert result.speed["recordings"] > 0


def test_a_function_is_no_network(images: Tensor, labels: Tensor) -> None:
    model = score_model(lambda images: images.flatten(1)[:, :4], name="mine", classes=list("abcd"))
    result = run_attack(build("sparse_rs"), model, images, labels, max_forwards=3, speed="fast")
    assert result.speed is not None
    assert "is no network" in result.speed["remark"]


def test_another_speed_is_refused() -> None:
    with pytest.raises(
        BadInput, match="speed must be exact, graphs, fast or compiled, got 'faster'"
    ):
        check_speed("faster")


def test_passes_of_another_model_are_refused(
    linear: Classifier, curved: Classifier, images: Tensor, labels: Tensor
) -> None:
    with pytest.raises(BadInput, match="speed holds passes of"):
        run_attack(build("greedy"), linear, images, labels, speed=ModelPasses(curved))


def test_recordings_serve_all_batches_until_a_weight_changes(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    record = FakeRecorder()
    passes = ModelPasses(linear, "graphs", recorder=lambda: record)
    attack = build("ifgsm")

    def run() -> int:
        result = run_attack(attack, linear, images, labels, batch_size=3, speed=passes)
        assert result.speed is not None
        return int(result.speed["recordings"])

    assert run() == len(record.made) == 1
    assert run() == 0
    assert isinstance(linear.net, nn.Module)
    with torch.no_grad():
        next(linear.net.parameters()).mul_(2)
    assert run() == 1
    passes.release()
    assert run() == 1


def test_numbers_of_batches_are_added_up_and_saved(
    linear: Classifier, images: Tensor, labels: Tensor, tmp_path: Any
) -> None:
    attack = build("ifgsm")
    parts = [run_attack(attack, linear, images, labels, speed=fast(linear, 0.1)) for _ in range(2)]
    both = join(parts)
    assert both.speed is not None
    for name in ("recordings", "recording_seconds", "confirmations"):
        assert both.speed[name] == sum(part.speed[name] for part in parts if part.speed) > 0
    save_result(both, tmp_path / "both.safetensors")
    assert load_result(tmp_path / "both.safetensors").speed == both.speed


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("groups", [1, 3])
def test_a_compiled_search_is_recorded_on_a_gpu(images: Tensor, groups: int) -> None:
    model, images = small_network(groups), images.float().cuda()
    assert isinstance(model.net, nn.Module)
    model.net.cuda()
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    attack = build({"name": "sigma_zero", "steps": 40})
    result = run_attack(attack, model, images, labels, speed="compiled")
    assert result.success.all()
    assert result.speed is not None
    assert result.speed["remark"] == ""
    assert result.speed["recordings"] > 0
