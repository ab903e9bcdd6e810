"""Trainings as values: presets, options as text, there and back, and what is refused."""

import json
from typing import Any

import pytest

from pinprick import BadInput, UnknownName
from pinprick.train import RECIPES, FastAT
from pinprick.train.exam import Exam
from pinprick.train.plan import build_plan, describe_plan, difference, read_plan
from pinprick.train.presets import DATA, NET, RECIPE
from pinprick.train.schedule import Schedule
from pinprick.zoo.nets import NETS


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("data", [*DATA, "digits"])
def test_every_preset_builds_and_survives_being_written_down(data: str, recipe: str) -> None:
    for net in ("resnet18", "resnet20", "mnist_cnn", "mnist_cnn_large", "torchvision:resnet50"):
        plan = build_plan(data=data, net=net, recipe=recipe, seed=3)
        assert read_plan(json.loads(json.dumps(describe_plan(plan)))) == plan


def test_the_tables_of_presets_hold_known_names() -> None:
    assert {recipe for _, recipe in [*RECIPE, *NET]} <= RECIPES.keys()
    assert {data for data, _ in RECIPE} <= DATA.keys()
    assert {net for net, _ in NET} <= NETS.keys()


def test_options_take_the_place_of_the_preset() -> None:
    options = {"eps": "4/255", "epochs": "3", "ema": "none", "flip": "no"}
    plan = build_plan(data="cifar10", net="resnet18", recipe="fast_at", options=options)
    assert plan.recipe == FastAT(eps=4 / 255)
    assert (plan.schedule.epochs, plan.schedule.ema, plan.schedule.flip) == (3, None, False)
    assert plan.schedule.crop == 4


def test_the_imagenet_preset_is_that_of_the_paper() -> None:
    plan = build_plan(data="imagenet", net="torchvision:resnet50", recipe="fast_at")
    schedule = plan.schedule
    assert plan.recipe == FastAT(eps=2 / 255)
    phases = [schedule.phase_at(epoch) for epoch in (0, 5, 6, 11, 12, 14)]
    assert phases == [(128, 512)] * 2 + [(224, 224)] * 2 + [(288, 128)] * 2
    rates = [schedule.lr_at(epoch / 15) for epoch in (0, 0.5, 1, 6, 12, 15)]
    assert rates == pytest.approx([0, 0.2, 0.4, 0.04, 0.004, 0.0004])
    assert schedule.last_size == 288


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epoch": 3}, UnknownName, "no option of training with fast_at is called 'epoch'"),
        ({"k_max": 3}, UnknownName, "no option of training with fast_at is called 'k_max'"),
        ({"epochs": "many"}, BadInput, "epochs of fast_at must be int, got 'many'"),
        ({"phases": "[" * 100_000}, BadInput, "phases of fast_at must be"),
        ({"eps": 3}, BadInput, "fast_at needs eps above 0 and at most 1, got 3"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_options_that_are_not_there_or_do_not_fit_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build_plan(data="cifar10", net="resnet18", recipe="fast_at", options=options)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr_shape": ((0.5, 1.0),)}, "training needs lr_shape as rows of 2 numbers"),
        ({"lr_shape": ((0.0, 1.0), (0.9, 1.0), (0.3, 0.0))}, "training needs lr_shape"),
        ({"lr_shape": ()}, "training needs lr_shape"),
        ({"phases": ((0.5, 32.0, 8.0),)}, "training needs phases as rows of 3 numbers"),
        ({"phases": ((0.0, 0.5, 8.0),)}, "training needs phases"),
    ],
)
def test_rows_of_numbers_that_make_no_schedule_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        Schedule(**settings)


def test_the_learning_rate_follows_straight_lines() -> None:
    schedule = Schedule(lr=2.0, lr_shape=((0.0, 0.0), (0.5, 1.0), (1.0, 0.5)))
    rates = [schedule.lr_at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert rates == [0, 1, 2, 1.5, 1]


def test_the_attack_grows_over_the_ramp() -> None:
    schedule = Schedule(ramp=0.4)
    assert [schedule.strength_at(share) for share in (0.1, 0.2, 0.4, 0.9)] == [0.25, 0.5, 1, 1]
    assert Schedule().strength_at(0.01) == 1


def test_a_plan_written_before_a_setting_was_there_has_it_at_its_default() -> None:
    described = describe_plan(build_plan(data="cifar10", net="resnet18", recipe="fast_at"))
    for home, key in (("schedule", "crop"), ("recipe", "guard"), ("exam", "l0_images")):
        del described[home][key]
    plan = read_plan(described)  # the preset has crop 4
    assert (plan.schedule.crop, plan.recipe) == (0, FastAT(eps=8 / 255))
    assert plan.exam.l0_images == Exam().l0_images


def test_two_descriptions_differ_in_a_setting_that_is_named() -> None:
    first, second = (
        describe_plan(
            build_plan(data="mnist", net="mnist_cnn", recipe="pgd_at", options={"eps": eps})
        )
        for eps in (0.1, 0.2)
    )
    assert difference(first, second) == "eps 0.1 there, 0.2 here"
    assert difference(first, first) == ""


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(BadInput, match="this is no plan of a training"):
        read_plan({"data": "mnist"})
