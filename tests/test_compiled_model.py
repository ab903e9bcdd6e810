"""A compiled model gives what the model gives, and leaves nothing behind."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from functorch.compile import make_boxed_func, nop  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd

from pinprick import Classifier
from pinprick.compiled_model import CompiledModel


def network() -> Classifier:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 4)
    )
    return Classifier(net.eval().requires_grad_(False), mean=(0.5,) * 3, std=(0.2,) * 3)


class Counted:
    """A backend of ``torch.compile`` that counts the forward passes that it compiles."""

    def __init__(self, change: Callable[[Any], Any] = lambda made: made) -> None:
        self.count = 0
        self._change = change

    def __call__(self, graph: Any, inputs: Any) -> Any:
        return aot_autograd(fw_compiler=self._forward, bw_compiler=nop)(graph, inputs)

    def _forward(self, graph: Any, _: Any) -> Any:
        self.count += 1
        return make_boxed_func(lambda *given: self._change(graph(*given)))


def logits_and_gradient(model: Callable[[Tensor], Tensor], images: Tensor) -> tuple[Tensor, Tensor]:
    inputs = images.clone().requires_grad_()
    logits = model(inputs)
    return logits.detach(), torch.autograd.grad(logits.square().sum(), inputs)[0]


def test_logits_and_gradients_are_those_of_the_model_for_any_number_of_images() -> None:
    model, backend = network(), Counted()
    compiled = CompiledModel(model, model, backend)
    for count in (5, 2, 7):
        images = torch.rand(count, 3, 6, 6)
        pairs = zip(
            logits_and_gradient(compiled, images), logits_and_gradient(model, images), strict=True
        )
        for one, other in pairs:
            torch.testing.assert_close(one, other)
        with torch.no_grad():
            torch.testing.assert_close(compiled(images), model(images))
    assert compiled.remark == ""
    assert compiled.seconds > 0
    assert backend.count == 2  # with a gradient, and without


def test_several_backward_passes_may_follow_a_forward_pass() -> None:
    model = network()
    compiled = CompiledModel(model, model, "aot_eager")
    images = torch.rand(3, 3, 6, 6).requires_grad_()
    found, wanted = compiled(images), model(images)
    for column in (0, 1, 0):
        one, other = (
            torch.autograd.grad(logits[:, column].sum(), images, retain_graph=True)[0]
            for logits in (found, wanted)
        )
        torch.testing.assert_close(one, other)


def test_a_pass_that_gives_other_logits_is_not_used() -> None:
    model = network()
    compiled = CompiledModel(model, model, Counted(lambda made: (2 * made[0], *made[1:])))
    images = torch.rand(3, 3, 6, 6)
    with torch.no_grad():
        assert torch.equal(compiled(images), model(images))
        assert torch.equal(compiled(images), model(images))
    assert compiled.remark == "a compiled pass differs from the network's own"


def test_a_coarse_model_may_be_as_far_off_as_it_is() -> None:
    exact = network()
    coarse = Classifier(exact.net, mean=(0.4,) * 3, std=exact.std)
    compiled = CompiledModel(coarse, exact, "aot_eager")
    with torch.no_grad():
        images = torch.rand(3, 3, 6, 6)
        torch.testing.assert_close(compiled(images), coarse(images))
    assert compiled.remark == ""


def test_where_compiling_fails_the_model_is_queried() -> None:
    model, images = network(), torch.rand(3, 3, 6, 6)
    compiled = CompiledModel(model, model, Counted(lambda made: 1 / 0))
    for one, other in zip(
        logits_and_gradient(compiled, images), logits_and_gradient(model, images), strict=True
    ):
        assert torch.equal(one, other)
    assert compiled.remark.startswith("passes of this network cannot be compiled: ")


def test_many_models_are_compiled_and_none_stays() -> None:
    backend, left = Counted(), []
    for _ in range(10):  # torch compiles one function at most eight times
        model = network()
        compiled = CompiledModel(model, model, backend)
        with torch.no_grad():
            compiled(torch.rand(2, 3, 6, 6))
        assert compiled.remark == ""
        left.append(weakref.ref(model.net))
        del model, compiled
    gc.collect()
    assert backend.count == 10
    assert [one() for one in left] == [None] * 10


@pytest.mark.slow
def test_the_usual_compiler_gives_the_same() -> None:
    model, images = network(), torch.rand(4, 3, 6, 6)
    compiled = CompiledModel(model, model)
    for one, other in zip(
        logits_and_gradient(compiled, images), logits_and_gradient(model, images), strict=True
    ):
        torch.testing.assert_close(one, other)
    assert compiled.remark == ""
