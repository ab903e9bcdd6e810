"""A network with its preprocessing, left as it was found."""

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from pinprick import BadInput, Classifier
from pinprick.model import _check_statistics, as_classifier
from pinprick.oracle import exact_images, exact_linear


def test_the_network_sees_normalised_images() -> None:
    seen: list[Tensor] = []

    def net(images: Tensor) -> Tensor:
        seen.append(images)
        return images.flatten(1)

    model = Classifier(net, mean=(0.5, 0.25, 0.0), std=(0.5, 0.25, 2.0))
    model(torch.ones(2, 3, 1, 1))
    assert seen[0][1].flatten().tolist() == [1.0, 3.0, 0.5]


def test_mean_or_std_may_stand_alone() -> None:
    images = torch.ones(1, 2, 1, 1)
    assert Classifier(nn.Flatten(), mean=(1.0, 0.5))(images).tolist() == [[0.0, 0.5]]
    assert Classifier(nn.Flatten(), std=(0.5, 0.25))(images).tolist() == [[2.0, 4.0]]


def test_one_value_serves_all_channels_and_others_must_fit() -> None:
    images = torch.ones(1, 3, 1, 1)
    assert Classifier(nn.Flatten(), mean=(0.5,))(images).tolist() == [[0.5, 0.5, 0.5]]
    with pytest.raises(BadInput, match="images have 1 channels, but mean and std have 3 values"):
        Classifier(nn.Flatten(), mean=(0.5, 0.5, 0.5))(images[:, :1])


def test_normalising_follows_the_precision_of_the_images() -> None:
    model = Classifier(nn.Flatten(), mean=(1 / 3,), std=(1 / 7,))
    for dtype in (torch.float32, torch.float64, torch.float32):
        assert model(torch.ones(1, 1, 1, 1, dtype=dtype)).dtype == dtype
    double = model(torch.ones(1, 1, 1, 1, dtype=torch.float64)).item()
    assert double == pytest.approx(7 * 2 / 3, abs=1e-12)


def test_statistics_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadInput, match="mean has 3 values and std 1"):
        Classifier(nn.Flatten(), mean=(0.0, 0.0, 0.0), std=(1.0,))
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(BadInput, match=r"mean must hold finite numbers, got \((nan|inf),\)"):
            Classifier(nn.Flatten(), mean=(wrong,))
        with pytest.raises(BadInput, match="std must hold finite numbers"):
            Classifier(nn.Flatten(), std=(1.0, wrong))
    with pytest.raises(BadInput, match="std must be above zero"):
        Classifier(nn.Flatten(), std=(1.0, 0.0, 1.0))


def test_gradients_flow_also_after_a_first_call_in_inference_mode() -> None:
    model = Classifier(nn.Flatten(), mean=(0.5,), std=(0.25,))
    with torch.inference_mode():
        model(torch.ones(1, 1, 1, 2))
    images = torch.ones(1, 1, 1, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(model(images).sum(), images)
    assert grad.flatten().tolist() == [4.0, 4.0]


def mixed() -> nn.Sequential:
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.BatchNorm1d(2))
    net.train()
    net[1].eval()
    net[0].requires_grad_(False)
    return net


def flags(net: nn.Module) -> tuple[list[bool], list[bool]]:
    return [m.training for m in net.modules()], [p.requires_grad for p in net.parameters()]


def test_building_a_classifier_changes_nothing() -> None:
    net = mixed()
    before = flags(net)
    Classifier(net)
    assert flags(net) == before


def test_frozen_is_evaluation_without_parameter_gradients_for_a_while() -> None:
    net = mixed()
    before = flags(net)
    with Classifier(net).frozen():
        assert flags(net) == ([False] * 4, [False] * 4)
    assert flags(net) == before


def test_frozen_puts_all_back_after_an_exception() -> None:
    net = mixed()
    before = flags(net)
    with pytest.raises(KeyError), Classifier(net).frozen():
        raise KeyError
    assert flags(net) == before


def test_frozen_nests() -> None:
    net = mixed()
    before = flags(net)
    model = Classifier(net)
    with model.frozen():
        with model.frozen():
            pass
        assert flags(net) == ([False] * 4, [False] * 4)
    assert flags(net) == before


def test_a_function_has_nothing_to_freeze() -> None:
    model = Classifier(lambda images: images.flatten(1))
    with model.frozen():
        assert model(torch.ones(1, 1, 1, 2)).tolist() == [[1.0, 1.0]]
    assert model.access == "gradients"
    assert model.device is None


def test_a_bare_network_becomes_a_classifier_and_a_classifier_stays_itself() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    model = as_classifier(net)
    assert model.net is net
    assert (model.access, model.name) == ("network", "Sequential")
    assert as_classifier(model) is model
    assert model.device == torch.device("cpu")


def test_classes_have_names_or_numbers() -> None:
    model = Classifier(nn.Flatten(), classes=("cat", "dog"))
    assert [model.class_name(i) for i in range(3)] == ["cat", "dog", "class 2"]


def test_pictures_are_prepared_by_the_model_or_not_at_all() -> None:
    picture = Image.new("RGB", (2, 2))
    ready = Classifier(nn.Flatten(), prepare=lambda picture: torch.ones(3, *picture.size))
    assert ready.prepare(picture).shape == (3, 2, 2)
    with pytest.raises(BadInput, match="thing does not say how pictures are prepared"):
        Classifier(nn.Flatten(), name="thing").prepare(picture)


@pytest.mark.parametrize(("mean", "channels"), [(None, 3), ((0.1, 0.2, 0.3), 3), ((0.5,), 1)])
def test_a_picture_of_the_models_size_is_taken_as_it_is(
    mean: tuple[float, ...] | None, channels: int
) -> None:
    model = Classifier(nn.Flatten(), size=(2, 3), mean=mean, name="thing")
    image = model.prepare(Image.new("RGB", (3, 2), (51, 51, 51)))
    assert image.shape == (channels, 2, 3)
    assert torch.equal(image, torch.full_like(image, 0.2))
    with pytest.raises(BadInput) as error:
        model.prepare(Image.new("RGB", (2, 3)))
    assert str(error.value) == (
        "thing takes pictures of 2 x 3 and does not say how others are resized; "
        "give Classifier(prepare=cover_and_crop((2, 3))) from pinprick.zoo.prepare"
    )
    with pytest.raises(BadInput, match="must be RGB or L, got RGBA"):
        model.prepare(Image.new("RGBA", (3, 2)))


def test_the_exact_model_gives_each_image_the_same_in_any_batch() -> None:
    model, images = exact_linear(5, (3, 6, 5)), exact_images(9, (3, 6, 5))
    with torch.no_grad():
        together = model(images)
        for row in range(9):
            assert torch.equal(model(images[row : row + 1])[0], together[row])


def test_one_number_for_all_channels_is_refused() -> None:
    with pytest.raises(
        BadInput, match=r"std must have one value for each channel, as in \(0\.5,\)"
    ):
        _check_statistics(None, 0.5)  # the type hook stands before Classifier itself
