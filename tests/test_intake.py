"""Bad input gets one clear line, before anything is attacked."""

import inspect
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pinprick import BadInput, Classifier, run_attack
from pinprick.attacks import IFGSM, Pinprick
from pinprick.intake import check_answers, check_images, take_in
from pinprick.oracle import exact_images, exact_linear

SHAPE = (3, 6, 5)


def line_of(*, model: Any = None, **changes: Any) -> str:
    """What is said when one argument of a sound call is replaced."""
    linear = exact_linear(4, SHAPE)
    arguments: dict[str, Any] = {"images": exact_images(3, SHAPE), "labels": [0, 1, 2], **changes}
    with pytest.raises(BadInput) as caught:
        run_attack(IFGSM(), linear if model is None else model, **arguments)
    return one_line(caught.value)


def line_on(**changes: Any) -> str:
    """The same for what is not even of the type that is asked for."""
    arguments: dict[str, Any] = dict.fromkeys(inspect.signature(take_in).parameters)
    arguments |= {"images": exact_images(3, SHAPE), "labels": [0, 1, 2], **changes}
    with pytest.raises(BadInput) as caught:
        take_in(**arguments)
    return one_line(caught.value)


def one_line(error: BadInput) -> str:
    assert "\n" not in str(error)
    return str(error)


def test_images_outside_the_box_show_their_range_and_the_way_out() -> None:
    line = line_of(images=exact_images(3, SHAPE) * 4 - 2)
    assert line.startswith("images must lie in [0, 1], these run from -1.5 to 1.5; ")
    assert "Classifier(mean=..., std=...)" in line


def test_what_rounding_left_outside_the_box_is_to_be_clamped() -> None:
    for high, shown in ((1.004, "1.004"), (1.0000002, "1.00000024")):
        images = torch.tensor([0.0, high, 0.5]).view(3, 1, 1, 1)
        line = line_of(images=images)
        assert line.startswith(f"images must lie in [0, 1], these run from 0 to {shown}; ")
        assert "images.clamp(0, 1)" in line


def test_8_bits_as_floating_point_numbers_are_to_be_divided() -> None:
    line = line_of(images=exact_images(3, SHAPE) * 255)
    assert line.endswith("; divide 8-bit images by 255")


def test_nan_and_infinity_are_no_images() -> None:
    images = exact_images(3, SHAPE)
    images[1, 0, 0, 0] = float("nan")
    assert line_of(images=images) == "images must lie in [0, 1], image 1 holds NaN"
    images[1, 0, 0, 0] = float("inf")
    assert "to inf" in line_of(images=images)


def test_images_of_8_bits_are_to_be_divided() -> None:
    line = line_of(images=torch.zeros(3, *SHAPE, dtype=torch.uint8))
    assert line == (
        "images must be floating-point numbers in [0, 1], got torch.uint8; use images.float() / 255"
    )


@pytest.mark.parametrize("shape", [(6, 5), (3, 6, 5), (1, 3, 3, 6, 5), ()])
def test_images_have_four_sides(shape: tuple[int, ...]) -> None:
    line = line_of(images=torch.zeros(shape))
    assert f"got {shape}; a single image needs images[None]" in line


def test_images_are_a_tensor_and_hold_something() -> None:
    assert line_on(images=None) == "images must be a torch tensor, got NoneType"
    line = line_of(images=torch.zeros(3, 3, 0, 5))
    assert line == "images of shape (3, 3, 0, 5) hold no values"


@pytest.mark.parametrize(
    ("shape", "kind", "line"),
    [
        ((2, 8, 9, 3), "uint8", "torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255"),
        ((2, 8, 9, 1), "float32", "torch.from_numpy(images).permute(0, 3, 1, 2)"),
        ((2, 3, 8, 9), "float32", "torch.from_numpy(images)"),
        ((2, 3, 8, 9), "float64", "torch.from_numpy(images).float()"),
        ((2, 3, 8, 9), "uint8", "torch.from_numpy(images).float() / 255"),
        ((2, 8, 9), "uint8", "torch.from_numpy(images)[:, None].float() / 255"),
        ((8, 9, 3), "uint8", "torch.from_numpy(images).permute(2, 0, 1)[None].float() / 255"),
        ((3, 8, 9), "float32", "torch.from_numpy(images)[None]"),
        ((8, 9), "float32", "torch.from_numpy(images)[None, None]"),
    ],
)
def test_an_array_gets_the_line_that_converts_it(
    shape: tuple[int, ...], kind: str, line: str
) -> None:
    images = (np.arange(math.prod(shape)) % 2).reshape(shape).astype(kind)
    said = line_on(images=images)
    assert said == (
        f"images must be a torch tensor, got a numpy array of {kind} {shape}; use {line}"
    )
    converted = eval(line, {"images": images, "torch": torch})
    check_images(converted)
    assert converted.dtype == torch.float32


def test_channels_that_come_last_are_to_be_moved() -> None:
    expected = "got (2, 8, 9, 3), where channels come last; use images.permute(0, 3, 1, 2)"
    assert line_of(images=torch.zeros(2, 8, 9, 3)).endswith(expected)
    line = line_of(images=torch.zeros(2, 8, 9, 3, dtype=torch.uint8))
    assert line.endswith("use images.permute(0, 3, 1, 2).float() / 255")


@pytest.mark.parametrize("name", ["labels", "targets", "ids"])
def test_there_is_one_label_target_and_number_for_each_image(name: str) -> None:
    expected = f"{name} must have one entry for each of the 3 images, got the shape "
    assert line_of(**{name: [1, 2]}) == expected + "(2,)"
    assert line_of(**{name: torch.ones(3, 1, dtype=torch.long)}) == expected + "(3, 1)"
    assert line_of(**{name: torch.tensor(1)}) == expected + "()"


@pytest.mark.parametrize("name", ["labels", "targets", "ids"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["cat", "dog", "hen"], "['cat', 'dog', 'hen']"),
        ([1, [2], 3], "[1, [2], 3]"),
        (["cat"] * 50, "['cat', 'cat', 'cat', 'cat', 'cat', 'cat', 'cat', 'cat', ..."),
        ([1j, 2j, 3j], "torch.complex64"),
        ([2**70, 1, 2], "[1180591620717411303424, 1, 2]"),
    ],
)
def test_labels_targets_and_numbers_are_numbers(name: str, value: Any, shown: str) -> None:
    assert line_on(**{name: value}) == f"{name} must be whole numbers, got {shown}"


def test_labels_are_whole_numbers() -> None:
    assert line_of(labels=torch.zeros(3)) == "labels must be whole numbers, got torch.float32"
    assert line_of(labels=[True, False, True]) == "labels must be whole numbers, got torch.bool"


def test_images_in_a_tensor_need_labels() -> None:
    line = "labels are missing: give one class per image, or batches of (images, labels)"
    assert line_of(labels=None) == line


def test_labels_and_targets_are_classes_of_the_model() -> None:
    line = line_of(labels=[0, 4, 1])
    assert line == "labels must lie in 0 to 3, the model's 4 classes; these run from 0 to 4"
    line = line_of(labels=[0, -1, 1])
    assert line.endswith("these run from -1 to 1")
    line = line_of(targets=[1, 2, 9])
    assert line == "targets must lie in 0 to 3, the model's 4 classes; these run from 1 to 9"


def test_a_target_is_another_class_than_the_label() -> None:
    line = line_of(targets=[3, 1, 1])
    assert line == "target and label are both 1 for image 1; a target must be another class"


@pytest.mark.parametrize(("side", "size"), [(2, 256), (224, 64), (1000, 3), (4000, 1)])
def test_the_batch_size_follows_the_size_of_the_images(side: int, size: int) -> None:
    arguments: dict[str, Any] = dict.fromkeys(inspect.signature(take_in).parameters)
    images = torch.zeros(1, 3, 1, 1).expand(1, 3, side, side)
    assert take_in(**{**arguments, "images": images, "labels": [0]}).batch_size == size
    given = {**arguments, "images": images, "labels": [0], "batch_size": 7}
    assert take_in(**given).batch_size == 7


@pytest.mark.parametrize("name", ["batch_size", "max_forwards", "max_backwards", "max_passes"])
def test_limits_are_not_negative(name: str) -> None:
    least = 1 if name == "batch_size" else 0
    line = f"{name} must be a whole number of at least {least}, got {least - 1}"
    assert line_of(**{name: least - 1}) == line


def test_a_mask_holds_true_and_false() -> None:
    line = line_of(allowed=torch.ones(6, 5))
    assert line == "allowed must hold True and False, got torch.float32"
    assert line_on(allowed="all") == "allowed must hold True and False, got 'all'"


SHAPES = (
    "allowed must have the shape (height, width) for all images, (batch, 1, height, width) or "
    "(batch, channel, height, width); images are (3, 3, 6, 5), got "
)


@pytest.mark.parametrize(
    "shape", [(5,), (5, 6), (3, 3, 1, 5), (2, 3, 6, 5), (3, 2, 6, 5), (1, 3, 3, 6, 5)]
)
def test_a_mask_fits_the_images(shape: tuple[int, ...]) -> None:
    assert line_of(allowed=torch.ones(shape, dtype=torch.bool)) == f"{SHAPES}{shape}"


@pytest.mark.parametrize("shape", [(3, 6, 5), (1, 6, 5), (2, 6, 5)])
def test_a_mask_of_three_sides_may_mean_images_or_channels(shape: tuple[int, ...]) -> None:
    """Three images of three channels would be read as channels, whatever was meant."""
    line = line_of(allowed=torch.ones(shape, dtype=torch.bool))
    way_out = "allowed[:, None] is one mask per image, allowed[None] one per channel"
    assert line == f"{SHAPES}{shape}; {way_out}"


@pytest.mark.parametrize("shape", [(6, 5), (1, 1, 6, 5), (1, 3, 6, 5), (3, 1, 6, 5), (3, 3, 6, 5)])
def test_a_mask_may_be_for_all_images_or_for_each(shape: tuple[int, ...]) -> None:
    linear, images = exact_linear(4, SHAPE), exact_images(3, SHAPE)
    with torch.no_grad():
        labels = linear(images).argmax(dim=1)
    allowed = torch.zeros(shape, dtype=torch.bool)
    allowed[..., 2, 3] = True
    result = run_attack(IFGSM(), linear, images, labels, allowed=allowed)
    changed = (result.adversarial != images).any(dim=1)
    assert changed[:, 2, 3].all()
    assert changed.sum() == 3


def test_one_mask_per_image_is_not_read_as_channels() -> None:
    linear, images = exact_linear(4, SHAPE), exact_images(3, SHAPE)
    with torch.no_grad():
        labels = linear(images).argmax(dim=1)
    each = torch.zeros(3, 6, 5, dtype=torch.bool)
    for row in range(3):
        each[row, row, row] = True
    changed = run_attack(IFGSM(), linear, images, labels, allowed=each[:, None]).delta != 0
    assert torch.equal(changed.any(dim=1), each)


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (torch.zeros(4), "(4,)"),
        (torch.zeros(3, 4, 1, 1), "(3, 4, 1, 1)"),
        (torch.zeros(2, 4), "(2, 4)"),
        ((torch.zeros(3, 4), None), "tuple"),
    ],
)
def test_a_model_answers_with_one_row_of_scores_an_image(answer: Any, shown: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_answers(answer, exact_images(3, SHAPE))
    wanted = "the model must give logits of shape (batch, classes) for 3 images, got "
    assert one_line(caught.value) == wanted + shown


def test_a_model_has_two_classes_at_least() -> None:
    line = line_of(model=Classifier(lambda images: images.flatten(1)[:, :1]))
    assert line == "the model gives one score per image; a classifier needs at least two classes"


def test_an_attack_that_needs_more_than_the_model_gives_is_refused() -> None:
    scores = Classifier(exact_linear(4, SHAPE).net, access="scores", name="service")
    assert line_of(model=scores) == (
        "ifgsm needs gradients, but service gives scores alone; "
        "`pinprick attacks` says what each attack needs"
    )


def test_channels_that_do_not_fit_the_statistics_are_named() -> None:
    model = Classifier(exact_linear(4, SHAPE).net, mean=(0.5, 0.5), std=(1.0, 1.0))
    assert line_of(model=model) == "images have 3 channels, but mean and std have 2 values"


def test_input_is_looked_at_before_the_first_image_is_attacked() -> None:
    calls = []
    net = exact_linear(4, SHAPE).net

    def watch(images: Tensor) -> Tensor:
        calls.append(len(images))
        return net(images)

    line_of(model=watch, labels=[0, 1, 7])
    assert calls == [1]  # one image, to see how many classes there are
    line_of(model=watch, labels=[0, 1])
    assert calls == [1]


def test_labels_come_as_a_list_or_any_kind_of_whole_numbers() -> None:
    linear, images = exact_linear(4, SHAPE), exact_images(3, SHAPE)
    with torch.no_grad():
        labels = linear(images).argmax(dim=1)
    wanted = run_attack(IFGSM(), linear, images, labels).adversarial
    for same in (labels.tolist(), labels.int(), labels.to(torch.uint8)):
        assert torch.equal(run_attack(IFGSM(), linear, images, same).adversarial, wanted)


def test_a_network_that_is_no_classifier_keeps_its_own_error() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        run_attack(
            IFGSM(),
            nn.Sequential(nn.Flatten(), nn.Linear(7, 2)).double(),
            exact_images(3, SHAPE),
            [0, 1, 0],
        )


def test_values_off_the_8_bit_grid_are_refused_where_the_attack_asks_for_it() -> None:
    linear, images = exact_linear(4, SHAPE), exact_images(3, SHAPE)
    on_grid = (images * 255).round() / 255
    off_grid = on_grid.clone()
    off_grid[1, 2, 3, 4] += 0.25 / 255
    attack = Pinprick(values="8bit", max_forwards=2)
    with pytest.raises(BadInput) as caught:
        run_attack(attack, linear, off_grid, [0, 1, 2])
    assert one_line(caught.value) == (
        "pinprick was asked for 8-bit values, but image 1 has values off the 8-bit grid "
        "(by up to 0.25 of a step); round it or use free values"
    )
    assert len(run_attack(attack, linear, on_grid, [0, 1, 2])) == 3
    assert len(run_attack(Pinprick(max_forwards=2), linear, off_grid, [0, 1, 2])) == 3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_all_levels_are_on_the_grid_in_every_precision(dtype: torch.dtype) -> None:
    levels = torch.arange(256).view(1, 1, 16, 16)
    net = exact_linear(2, (1, 16, 16), dtype=dtype).net
    attack = Pinprick(values="8bit", max_forwards=2)
    for images in ((levels / 255).to(dtype), levels.to(dtype) / 255, levels * (1 / 255)):
        assert len(run_attack(attack, net, images.to(dtype), [0])) == 1


def test_images_that_do_not_fit_the_size_of_the_model_are_named_as_such() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 6 * 5, 4))
    line = line_of(model=Classifier(net, size=(6, 5), name="net"), images=torch.rand(3, 3, 8, 7))
    assert line.startswith("net takes images of 6 x 5, got 8 x 7; resize them (")
    with pytest.raises(RuntimeError):  # nothing says that the size is at fault
        run_attack(IFGSM(), Classifier(net), torch.rand(3, 3, 8, 7), [0, 1, 2])
    pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 4))
    any_size = Classifier(pooled, size=(6, 5))
    assert len(run_attack(IFGSM(), any_size, torch.rand(3, 3, 8, 7), [0, 1, 2])) == 3


def test_a_model_has_as_many_names_as_outputs() -> None:
    model = Classifier(exact_linear(4, SHAPE).net, classes=("a", "b"), name="net")
    assert line_of(model=model) == (
        "net has 4 outputs but 2 names of classes; give Classifier(classes=...) one name per output"
    )
