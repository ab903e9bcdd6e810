"""Passes as CUDA graphs: the same bits, any order of passes, and memory given back."""

import gc
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from pinprick import Classifier, build, run_attack
from pinprick import speed as speed_module
from pinprick.cuda_graph import CudaGraphs
from pinprick.replay import PATIENCE, ReplayedModel
from pinprick.speed import ModelPasses
from pinprick.zoo.nets import resnet20

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]


@pytest.fixture(autouse=True)
def same_sums() -> Iterator[None]:
    """Some of cuDNN's gradients differ from call to call unless it is told otherwise."""
    before = torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True
    yield
    torch.backends.cudnn.deterministic = before


@pytest.fixture(autouse=True)
def none_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """This small network is searched in bfloat16, too."""
    monkeypatch.setattr(speed_module, "_SMALL", -1)
    monkeypatch.setattr(speed_module, "_SMALL_ALONE", -1)


@pytest.fixture
def model() -> Classifier:
    torch.manual_seed(0)
    net = resnet20(10).cuda()
    net(torch.rand(64, 3, 32, 32, device="cuda"))  # so that batch norms have statistics
    return Classifier(net.eval().requires_grad_(False), mean=(0.5,) * 3, std=(0.2,) * 3)


@pytest.fixture
def images() -> Tensor:
    torch.manual_seed(1)
    return torch.rand(64, 3, 32, 32, device="cuda")


def labels_of(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad(), model.frozen():
        return model(images).argmax(dim=1)


def slope(model: Classifier | ReplayedModel, images: Tensor) -> tuple[Tensor, Tensor]:
    images = images.detach().requires_grad_()
    logits = model(images)
    return logits.detach(), torch.autograd.grad(logits.square().sum(), images)[0]


@pytest.mark.parametrize("count", [1, 32, 64])
def test_a_recorded_size_gives_the_same_bits(model: Classifier, images: Tensor, count: int) -> None:
    replayed = ReplayedModel(model, CudaGraphs())
    for turn in range(PATIENCE + 2):
        some = images.roll(turn, 0)[:count]
        with torch.no_grad():
            assert torch.equal(replayed(some), model(some))
        wanted, got = slope(model, some), slope(replayed, some)
        assert torch.equal(got[0], wanted[0])
        assert torch.equal(got[1], wanted[1])
    assert replayed.remark == ""
    assert len(replayed.recordings) == 2


def test_other_passes_in_between_do_no_harm(model: Classifier, images: Tensor) -> None:
    replayed = ReplayedModel(model, CudaGraphs())
    for some in (images, images[:32], images[:8]):
        for _ in range(PATIENCE + 1):
            slope(replayed, some)
            with torch.no_grad():
                replayed(some)
    one, two = (part.clone().requires_grad_() for part in images.split(32))
    first, second = replayed(one), replayed(two)
    slope(replayed, images[:8])
    for logits, inputs in ((first, one), (second, two)):
        wanted = slope(model, inputs)[1]
        for _ in range(2):
            (got,) = torch.autograd.grad(logits.square().sum(), inputs, retain_graph=True)
            assert torch.equal(got, wanted)


class _Waits(nn.Module):
    """A network that reads a value from the device, which a graph cannot."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images if images.mean().item() > 0 else -images)
        return logits


class _Synchronises(_Waits):
    """The same by a call that is noticed in a recording alone."""

    def forward(self, images: Tensor) -> Tensor:
        torch.cuda.synchronize()
        logits: Tensor = self.net(images)
        return logits


@pytest.mark.parametrize("kind", [_Waits, _Synchronises])
@pytest.mark.parametrize("speed", ["graphs", "fast"])
def test_a_network_that_waits_is_queried_directly(
    model: Classifier, images: Tensor, speed: str, kind: type[_Waits]
) -> None:
    assert isinstance(model.net, nn.Module)
    waits = Classifier(kind(model.net), mean=model.mean, std=model.std)
    labels = labels_of(waits, images)
    attack = build({"name": "fmn", "steps": 20})
    result = run_attack(attack, waits, images, labels, speed=speed)  # type: ignore[arg-type]
    assert result.speed is not None
    assert "cannot be recorded" in result.speed["remark"]
    assert result.speed["recordings"] == 0
    assert torch.equal(result.success, run_attack(attack, waits, images, labels).success)
    assert torch.rand(3, device="cuda").max() < 1
    graphs = run_attack(attack, model, images, labels, speed="graphs")
    assert graphs.speed is not None
    assert graphs.speed["recordings"] == 1


@pytest.mark.parametrize("name", ["fmn", "sigma_zero", "sparse_rs", "pgd"])
def test_graphs_give_the_images_of_exact(model: Classifier, images: Tensor, name: str) -> None:
    attack = build({"name": name} | ({"steps": 30} if name != "sparse_rs" else {"queries": 100}))
    labels = labels_of(model, images)
    exact = run_attack(attack, model, images, labels)
    graphs = run_attack(attack, model, images, labels, speed="graphs")
    assert graphs.speed is not None
    assert graphs.speed["remark"] == ""
    assert graphs.speed["recordings"] > 0
    if name != "sparse_rs":  # whose batches shrink
        assert torch.equal(graphs.adversarial, exact.adversarial)


@pytest.mark.parametrize("name", ["fmn", "sigma_zero", "pinprick"])
def test_fast_finds_images_that_fool_in_float32(
    model: Classifier, images: Tensor, name: str
) -> None:
    attack = build({"name": name} | ({"steps": 50} if name != "pinprick" else {"effort": "fast"}))
    labels = labels_of(model, images)
    exact = run_attack(attack, model, images, labels)
    fast = run_attack(attack, model, images, labels, speed="fast")
    assert fast.speed is not None
    assert fast.speed["remark"] == ""
    assert fast.speed["confirmations"] > 0
    changed = (fast.adversarial != images).flatten(1).any(dim=1)
    assert torch.equal(fast.success, changed)
    assert fast.success.sum() >= exact.success.sum()


class _Pins(nn.Module):
    """A network during whose pass another thread pins memory, as a DataLoader does."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        thread = threading.Thread(target=lambda: torch.empty(2**20).pin_memory())
        thread.start()
        logits: Tensor = self.net(images)
        thread.join()
        return logits


def test_another_thread_may_use_the_device_during_a_recording(
    model: Classifier, images: Tensor
) -> None:
    assert isinstance(model.net, nn.Module)
    pins = Classifier(_Pins(model.net), mean=model.mean, std=model.std)
    attack = build({"name": "fmn", "steps": 20})
    result = run_attack(attack, pins, images, labels_of(pins, images), speed="graphs")
    assert result.speed is not None
    assert result.speed["remark"] == ""
    assert result.speed["recordings"] > 0


def test_memory_is_given_back(model: Classifier, images: Tensor) -> None:
    labels = labels_of(model, images)
    attack = build({"name": "sigma_zero", "steps": 20})

    def reserved() -> int:
        gc.collect()
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved()

    run_attack(attack, model, images, labels, speed="fast")
    before = reserved()
    for _ in range(2):
        run_attack(attack, model, images, labels, speed="fast")
        assert reserved() == before
    with ModelPasses(model, "graphs") as passes:
        run_attack(attack, model, images, labels, speed=passes)
        assert passes.memory > 0
        assert reserved() > before
    assert reserved() == before


def test_pinprick_gives_back_the_memory_of_its_recorded_steps(
    model: Classifier, images: Tensor
) -> None:
    labels, attack = labels_of(model, images), build({"name": "pinprick", "effort": "fast"})
    run_attack(attack, model, images, labels)
    before = torch.cuda.memory_reserved()
    for _ in range(3):
        run_attack(attack, model, images, labels)
    assert torch.cuda.memory_reserved() <= before


def test_a_pass_never_waits_for_the_device(model: Classifier, images: Tensor) -> None:
    labels = labels_of(model, images)
    passes = ModelPasses(model, "fast")
    run_attack(build({"name": "sigma_zero", "steps": 20}), model, images, labels, speed=passes)
    goal = run_attack(build("fgsm"), model, images, labels).goal
    torch.cuda.set_sync_debug_mode("error")
    try:
        with model.frozen():
            inputs = images.clone().requires_grad_()
            torch.autograd.grad(passes(inputs, goal).sum(), inputs)
    finally:
        torch.cuda.set_sync_debug_mode("default")
