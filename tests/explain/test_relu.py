"""The guided backward pass, against the rule written out by hand."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from explain.nets import RELUS
from pinprick.explain.maps.guided import OTHERS, GuidedReLUs

GIVEN = [-2.0, -0.0, 0.0, 0.5, 3.0, 6.0, 7.0, 3.0]
COMING = [1.0, 1.0, 1.0, 1.0, -1.0, 2.0, 2.0, 2.0]  # the gradient that comes back
PASSED = [0.0, 0.0, 0.0, 1.0, 0.0, 2.0, 2.0, 2.0]
PASSED_6 = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0]

SIXES: dict[str, Callable[[Tensor], Tensor]] = {
    "module": nn.ReLU6(),
    "module in place": nn.ReLU6(inplace=True),
    "function": F.relu6,
    "function in place": lambda x: F.relu6(x, inplace=True),
    "hardtanh": lambda x: F.hardtanh(x, min_val=0.0, max_val=6.0),
    "hardtanh in place": lambda x: F.hardtanh_(x, 0.0, 6.0),
}


def back(bend: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, int]:
    """What a ReLU gives, the gradient it passes back, and how many were caught."""
    given = torch.tensor([GIVEN], requires_grad=True)
    with GuidedReLUs() as relus:
        given_on = given * 1.0  # what works in place may not work on a leaf
        out = bend(given_on)
    (grad,) = torch.autograd.grad(out, given, torch.tensor([COMING]))
    return out.detach(), grad, relus.count


@pytest.mark.parametrize("make", RELUS)
def test_a_relu_of_any_make_passes_positive_gradients_where_it_is_open(make: str) -> None:
    out, grad, count = back(RELUS[make])
    assert out.tolist() == [[max(value, 0.0) for value in GIVEN]]
    assert grad.tolist() == [PASSED]
    assert count == 1


@pytest.mark.parametrize("make", SIXES)
def test_relu6_is_open_between_zero_and_six(make: str) -> None:
    out, grad, count = back(SIXES[make])
    assert out.tolist() == [[min(max(value, 0.0), 6.0) for value in GIVEN]]
    assert grad.tolist() == [PASSED_6]
    assert count == 1


def test_a_hardtanh_that_goes_below_zero_is_no_relu() -> None:
    _, grad, count = back(lambda x: F.hardtanh(x, -1.0, 5.0))
    assert grad.tolist() == [[0.0, 1.0, 1.0, 1.0, -1.0, 0.0, 0.0, 2.0]]
    assert count == 0


def test_one_module_in_many_places_is_caught_in_each() -> None:
    relu = nn.ReLU(inplace=True)
    _, _, count = back(lambda x: relu(relu(x) - 1) + relu(x))
    assert count == 3


ACTIVATIONS = {
    "CELU": nn.CELU(),
    "ELU": nn.ELU(inplace=True),
    "GELU": nn.GELU(),
    "Hardswish": nn.Hardswish(),
    "LeakyReLU": nn.LeakyReLU(inplace=True),
    "Mish": nn.Mish(),
    "PReLU": nn.PReLU(),
    "RReLU": nn.RReLU().eval(),
    "SELU": nn.SELU(),
    "SiLU": nn.SiLU(),
    "Softplus": nn.Softplus(),
    "Softsign": nn.Softsign(),
    "Tanh": nn.Tanh(),
    "Hardtanh": nn.Hardtanh(),
}


def test_every_activation_without_a_guided_form_is_tried() -> None:
    assert set(ACTIVATIONS) == {*OTHERS.values(), "Hardtanh"}  # one that is no ReLU


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_other_activations_are_noted_and_left_alone(name: str) -> None:
    given = torch.tensor([GIVEN], requires_grad=True)
    with GuidedReLUs() as relus:
        out = ACTIVATIONS[name](given * 1.0)
    (grad,) = torch.autograd.grad(out.sum(), given)
    (plain,) = torch.autograd.grad(ACTIVATIONS[name](given * 1.0).sum(), given)
    assert torch.equal(grad, plain)
    assert relus.others == {name}
    assert relus.count == 0


def test_outside_the_block_a_relu_is_itself_again() -> None:
    given = torch.tensor([1.0], requires_grad=True)
    with pytest.raises(KeyboardInterrupt), GuidedReLUs():
        raise KeyboardInterrupt
    (grad,) = torch.autograd.grad(F.relu(given), given, torch.tensor([-1.0]))
    assert grad.item() == -1
