"""Graphs on a GPU: the same passes, replayed."""

import pytest
import torch
from torch.nn import functional as F

from pinprick.model import Classifier
from pinprick.train.graphs import GraphedPasses
from pinprick.train.optimise import half_precision
from pinprick.zoo.nets import resnet20

pytestmark = pytest.mark.gpu


def test_replayed_passes_give_what_plain_ones_give() -> None:
    torch.manual_seed(0)
    net = resnet20(10).cuda().to(memory_format=torch.channels_last).train()
    model = Classifier(net, mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2))
    first, images = torch.rand(2, 16, 3, 32, 32, device="cuda")
    labels = torch.arange(16, device="cuda") % 10
    before = [buffer.clone() for buffer in net.buffers()]
    attacked, stepper = GraphedPasses(net, model).for_batch(first)
    for now, then in zip(net.buffers(), before, strict=True):
        assert torch.equal(now, then)  # recording leaves no trace in batch norm
    assert all(parameter.requires_grad for parameter in net.parameters())

    images.requires_grad_()
    with half_precision(images.device):
        plain = model(images)
    (want,) = torch.autograd.grad(F.cross_entropy(plain.float(), labels), images)
    replayed = attacked(images)
    (got,) = torch.autograd.grad(F.cross_entropy(replayed.float(), labels), images)
    assert torch.allclose(replayed, plain, atol=0.05)
    assert F.cosine_similarity(got.flatten(1), want.flatten(1)).min() > 0.98

    with half_precision(images.device):
        plain = model(images.detach())
    weights = list(net.parameters())
    wanted = torch.autograd.grad(F.cross_entropy(plain.float(), labels), weights)
    F.cross_entropy(stepper(images.detach()).float(), labels).backward()
    for weight, gradient in zip(weights, wanted, strict=True):
        assert weight.grad is not None
        assert F.cosine_similarity(weight.grad.flatten(), gradient.flatten(), dim=0) > 0.98


def test_an_answer_outlives_the_next_replay() -> None:
    net = resnet20(10).cuda().train()
    attacked, _ = GraphedPasses(net, Classifier(net)).for_batch(
        torch.rand(4, 3, 32, 32, device="cuda")
    )
    first, second = torch.rand(2, 4, 3, 32, 32, device="cuda")
    answer = attacked(first)
    kept = answer.clone()
    attacked(second)
    assert torch.equal(answer, kept)


def test_batches_of_another_shape_get_graphs_of_their_own() -> None:
    net = resnet20(10).cuda().train()
    passes = GraphedPasses(net, Classifier(net))
    for batch in (4, 6):
        attacked, _ = passes.for_batch(torch.rand(batch, 3, 32, 32, device="cuda"))
        assert attacked(torch.rand(batch, 3, 32, 32, device="cuda")).shape == (batch, 10)


def test_the_step_may_be_on_twice_as_many_images() -> None:
    net = resnet20(10).cuda().train()
    images = torch.rand(4, 3, 32, 32, device="cuda")
    attacked, stepper = GraphedPasses(net, Classifier(net), double=True).for_batch(images)
    assert attacked(images).shape == (4, 10)
    assert stepper(torch.cat((images, images))).shape == (8, 10)
