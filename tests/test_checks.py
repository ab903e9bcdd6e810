"""Every flag is raised by what it is for, and by nothing else; checking leaves no trace."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier
from pinprick.checks import ADVICE, _undisturbed, check_model
from pinprick.oracle import exact_images, exact_linear

SHAPE = (3, 6, 5)


def network() -> nn.Sequential:
    net = exact_linear(4, SHAPE).net
    assert isinstance(net, nn.Sequential)
    return net.eval()


def names(model: Any, images: Tensor, labels: Any = None) -> list[str]:
    return [flag.name for flag in check_model(model, images, labels)]


@pytest.fixture
def images() -> Tensor:
    return exact_images(20, SHAPE)


@pytest.fixture
def labels(images: Tensor) -> Tensor:
    with torch.no_grad():
        labels: Tensor = network()(images).argmax(dim=1)
    return labels


def test_a_sound_model_raises_no_flag(images: Tensor, labels: Tensor) -> None:
    assert check_model(network(), images, labels) == []
    assert check_model(Classifier(network()), images) == []
    assert check_model(network().float(), images.float(), labels.tolist()) == []


def test_training_mode_is_seen_in_any_module(images: Tensor) -> None:
    net = nn.Sequential(nn.Dropout(), network())
    net.eval()
    net[0].train()
    (flag,) = check_model(net, images)
    assert flag.name == "training_mode"
    assert flag.sentence == "1 of its modules are in training mode, such as Dropout"
    net.train()
    (flag,) = check_model(net, images)
    assert flag.sentence.startswith("5 of its modules are in training mode, such as Dropout, ")


def test_a_softmax_is_seen_and_a_log_softmax_is_none(images: Tensor) -> None:
    assert names(nn.Sequential(network(), nn.Softmax(dim=1)).eval(), images) == ["softmax_outputs"]
    assert names(nn.Sequential(network(), nn.LogSoftmax(dim=1)).eval(), images) == []


def test_the_one_hot_scores_of_a_model_of_labels_are_no_softmax(images: Tensor) -> None:
    net = network()

    def one_hot(batch: Tensor) -> Tensor:
        return nn.functional.one_hot(net(batch).argmax(dim=1), 4).to(batch)

    assert names(Classifier(one_hot, access="labels"), images) == []
    assert names(Classifier(one_hot, access="scores"), images) == ["softmax_outputs"]
    assert names(one_hot, images) == ["softmax_outputs", "zero_gradients"]


@pytest.mark.parametrize("source", ["torch", "numpy", "python"])
def test_random_logits_are_seen_whoever_draws_the_numbers(images: Tensor, source: str) -> None:
    net = network()

    def noisy(batch: Tensor) -> Tensor:
        draw = {"torch": torch.rand(1).item, "numpy": np.random.rand, "python": random.random}
        return net(batch) * (1 + draw[source]())  # type: ignore[no-any-return]

    assert names(noisy, images) == ["random_logits"]


def test_differences_of_rounding_are_not_random(images: Tensor) -> None:
    net = network()

    def rounding(batch: Tensor) -> Tensor:
        return net(batch) * (1 + 1e-6 * torch.rand(1))  # type: ignore[no-any-return]

    assert names(rounding, images) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_logits_that_are_not_finite_are_counted(images: Tensor, value: float) -> None:
    net = network()

    def broken(batch: Tensor) -> Tensor:
        bad = (batch[:, :1, 0, 0] == images[3, 0, 0, 0]).expand(-1, 4)
        return net(batch).masked_fill(bad, value)  # type: ignore[no-any-return]

    (flag,) = check_model(broken, images)
    assert flag.name == "nonfinite_logits"
    assert flag.sentence == "the logits of 1 of 20 images are NaN or infinite"
    assert names(lambda batch: net(batch) * value, images) == ["nonfinite_logits"]


def test_gradients_that_are_cut_or_flat_are_seen(images: Tensor) -> None:
    net = network()
    (flag,) = check_model(lambda batch: net(batch).detach(), images)
    assert (flag.name, flag.sentence) == (
        "zero_gradients",
        "the model passes no gradient back to its images",
    )
    (flag,) = check_model(lambda batch: net(batch.detach() + 0 * batch), images)
    assert flag.sentence == "the gradient of the margin is zero or not finite for 8 of 8 images"
    (flag,) = check_model(lambda batch: 1e5 * net(batch), images)
    assert flag.sentence.startswith("the gradient of the cross-entropy is zero or not finite for ")
    assert names(lambda batch: net(batch.round()), images) == ["zero_gradients"]


def test_a_network_whose_answer_ignores_the_image_has_no_gradient(images: Tensor) -> None:
    weight = torch.zeros(4, requires_grad=True)
    (flag,) = check_model(lambda batch: weight + torch.arange(4.0).repeat(len(batch), 1), images)
    assert flag.name == "zero_gradients"


def test_models_without_gradients_are_not_asked_for_them(images: Tensor) -> None:
    net = network()
    model = Classifier(lambda batch: net(batch).detach(), access="scores")
    assert names(model, images) == []


def test_accuracy_below_one_half_is_low(images: Tensor, labels: Tensor) -> None:
    half = labels.clone()
    half[:10] = (half[:10] + 1) % 4
    assert names(network(), images, half) == []
    half[10] = (half[10] + 1) % 4
    (flag,) = check_model(network(), images, half)
    assert flag.name == "low_accuracy"
    assert flag.sentence == "9 of 20 images are classified as labelled"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: (x - 0.5) / 0.25, "the images run from -1.5 to 1.5; leave normalisation to "),
        (lambda x: x * 255, "the images run from 31.9 to 223; divide 8-bit images by 255"),
        (lambda x: x / 255, "no value of the images is above 0.00343, as if divided by 255 twice"),
    ],
)
def test_images_that_are_no_plain_pixels_are_seen(
    images: Tensor, change: Any, sentence: str
) -> None:
    (flag,) = check_model(network(), change(images))
    assert flag.name == "normalised_inputs"
    assert flag.sentence.startswith(sentence)


IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def test_a_mean_that_is_missing_or_put_on_twice_is_seen() -> None:
    images = exact_images(60, SHAPE)
    with torch.no_grad():
        wanted = Classifier(network(), **IMAGENET)(images).argmax(dim=1)  # type: ignore[arg-type]
        plain = network()(images).argmax(dim=1)
    assert "other_normalisation" not in names(Classifier(network(), **IMAGENET), images, wanted)  # type: ignore[arg-type]
    missing = check_model(network(), images, wanted)[-1]
    assert missing.name == "other_normalisation"
    assert (
        "with mean=(0.485, 0.456, 0.406) and std=(0.229, 0.224, 0.225) 60 of 60" in missing.sentence
    )
    twice = check_model(Classifier(network(), **IMAGENET), images, plain)[-1]  # type: ignore[arg-type]
    assert twice.name == "other_normalisation"
    assert "with mean=None and std=None 60 of 60" in twice.sentence


def test_a_few_images_prove_nothing_about_the_normalisation() -> None:
    images = exact_images(5, SHAPE)
    with torch.no_grad():
        wanted = Classifier(network(), **IMAGENET)(images).argmax(dim=1)  # type: ignore[arg-type]
    assert "other_normalisation" not in names(network(), images, wanted)


def test_pgd_that_a_stronger_one_beats_by_far_is_seen(images: Tensor, labels: Tensor) -> None:
    """Logits so large that the softmax is exactly 1: the cross-entropy has no gradient."""
    net = network()
    flags = {
        flag.name: flag for flag in check_model(lambda x: 1e7 * net(x), images, labels, eps=0.5)
    }
    assert flags.keys() == {"zero_gradients", "pgd_overstates"}
    assert flags["pgd_overstates"].sentence == (
        "PGD-20, eps 0.5 leaves 10 of 20 images correct, PGD-50 x 5, margin, eps 0.5 only 0"
    )
    assert names(lambda x: 1e7 * net(x), images[:2], labels[:2]) == ["zero_gradients"]


def test_pgd_is_not_run_without_labels_or_gradients(images: Tensor, labels: Tensor) -> None:
    net = network()
    assert "pgd_overstates" not in names(lambda x: 1e7 * net(x), images)
    assert names(Classifier(lambda x: 1e7 * net(x), access="scores"), images, labels) == []


def test_checking_leaves_the_model_alone(images: Tensor) -> None:
    net = nn.Sequential(nn.Dropout(), nn.BatchNorm2d(3), network().float())
    net.train()
    net[1].eval()

    def state() -> Any:
        return (
            [module.training for module in net.modules()],
            [(p.requires_grad, p.grad) for p in net.parameters()],
            {name: value.tolist() for name, value in net.state_dict().items()},
        )

    before = state()
    check_model(net, images.float())
    assert state() == before
    assert not images.requires_grad


def test_checking_leaves_the_random_numbers_alone(images: Tensor) -> None:
    net = network()

    def noisy(batch: Tensor) -> Tensor:
        return net(batch) + torch.rand(1) + np.random.rand()  # type: ignore[no-any-return]

    states = torch.get_rng_state(), str(np.random.get_state())
    check_model(noisy, images)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert str(np.random.get_state()) == states[1]


def test_pythons_own_random_numbers_are_put_back_too() -> None:
    """By itself, as shape checks draw such numbers wherever they look."""
    before = random.getstate()
    with _undisturbed(torch.device("cpu")):
        random.random()
    assert random.getstate() == before


def test_a_model_that_raises_is_put_back(images: Tensor) -> None:
    class Raising(nn.Module):
        def forward(self, batch: Tensor) -> Tensor:
            torch.rand(1)
            raise KeyError("no")

    net, state = Raising(), torch.get_rng_state()
    with pytest.raises(KeyError):
        check_model(net, images)
    assert net.training
    assert torch.equal(torch.get_rng_state(), state)


def test_images_and_labels_are_looked_at_first(images: Tensor, labels: Tensor) -> None:
    with pytest.raises(BadInput, match="there are none"):
        check_model(network(), images[:0])
    with pytest.raises(BadInput, match="a single image needs"):
        check_model(network(), images[0])
    with pytest.raises(BadInput, match="one entry for each of the 20 images"):
        check_model(network(), images, labels[:3])
    with pytest.raises(BadInput, match="labels must lie in 0 to 3"):
        check_model(network(), images, labels + 9)


def test_it_works_in_inference_mode(images: Tensor, labels: Tensor) -> None:
    net = network()
    with torch.inference_mode():
        assert check_model(net, images.clone(), labels.clone()) == []


def test_every_flag_has_its_paragraph() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "checks.md").read_text()
    parts = page.split("\n## ")[1:]
    assert [part.split("\n")[0] for part in parts] == list(ADVICE)
    assert all(len(part.split()) > 50 for part in parts)
