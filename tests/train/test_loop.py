"""The loop: real pictures are learnt in seconds, and robust recipes make robust networks."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pinprick import BadInput, load_model
from pinprick.train import RECIPES
from pinprick.train.exam import FEW, evaluate, evenly_spaced
from pinprick.train.job import train_model
from pinprick.train.loop import Trainer
from pinprick.train.material import Material
from pinprick.train.plan import Plan, build_plan
from pinprick.train.progress import Epoch
from pinprick.zoo.card import Ablation
from pinprick.zoo.voting import VotingNetwork

PlanMaker = Callable[..., Plan]


def trained(plan: Plan, material: Material) -> Trainer:
    trainer = Trainer(plan, material, "cpu")
    list(trainer.epochs())
    return trainer


@pytest.mark.slow
def test_standard_training_learns_the_digits(plan_for: PlanMaker, digits: Material) -> None:
    trainer = trained(plan_for("standard", epochs=6, ema=0.9, watch_images=297), digits)
    last = trainer.progress.history[-1]
    assert last["accuracy"] >= 0.9
    assert last["loss"] < 0.2


@pytest.mark.slow
def test_pgd_at_withstands_what_standard_training_does_not(
    plan_for: PlanMaker, digits: Material
) -> None:
    options = {"exam_eps": 0.2, "epochs": 5, "batch_size": 25}
    half = Material("digits", digits.train[:700], digits.test[:100])
    plain = trained(plan_for("standard", **options), half).progress.history[-1]
    options |= {"eps": 0.2, "steps": 3, "ramp": 0.4}
    robust = trained(plan_for("pgd_at", **options), half).progress.history[-1]
    assert robust["accuracy"] >= 0.8
    assert robust["robust_accuracy"] >= plain["robust_accuracy"] + 0.2


@pytest.mark.slow
def test_sparse_at_withstands_few_elements(plan_for: PlanMaker, digits: Material) -> None:
    exam = {"l0_images": 100, "l0_queries": 200}
    options = {"epochs": 5, "batch_size": 25, "watch_images": 10, **exam}
    half = Material("digits", digits.train[:700], digits.test[:100])
    accuracy = []
    for plan in (
        plan_for("standard", **options),
        plan_for("sparse_at", k_max=24, passes=4, **options),
    ):
        facts = evaluate(plan.exam, trained(plan, half).final_model, half.test)
        assert facts["l0_elements"]["images"] == 100
        accuracy.append(facts["l0_elements"]["accuracy"])
    assert accuracy[1]["10"] >= accuracy[0]["10"] + 0.08  # 0.62 and 0.50
    assert accuracy[1]["24"] >= 3 * accuracy[0]["24"]  # 0.26 and 0.05


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_trains(recipe: str, plan_for: PlanMaker, few: Material) -> None:
    trainer = trained(plan_for(recipe, epochs=2, ema=0.5, watch_images=20), few)
    first, second = trainer.progress.history
    assert second["loss"] < first["loss"]
    assert (first["watched"] is None) == (recipe not in ("fast_at", "n_fgsm"))
    assert [entry["number"] for entry in trainer.progress.history] == [1, 2]


def test_the_trade_off_of_trades_trains(plan_for: PlanMaker, few: Material) -> None:
    plan = plan_for("pgd_at", epochs=2, trades=6.0, watch_images=20)
    first, second = trained(plan, few).progress.history
    assert second["loss"] < first["loss"]


def test_ablation_trains_a_model_that_votes_and_loads_as_it_was_measured(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    options = {"epochs": 1, "kept": 60, "draws": 3, "l0_images": 0, "strong_images": 0}
    plan = plan_for("ablation", exam_images=100, seed=4, **options)
    card = train_model(plan, few, tmp_path, store="int8")
    assert card.ablation == Ablation(kept=60, draws=3, seed=4)
    model = load_model(f"file:{tmp_path}")
    assert isinstance(model.net, VotingNetwork)
    with torch.no_grad():
        right = (model(few.test.images(model)).argmax(dim=1) == few.test.labels).float().mean()
    assert right.item() == pytest.approx(card.facts["accuracy"], abs=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"trades": 6.0}, "trades=none"), ({"kept": 800}, "at most all 784 pixels")],
)
def test_ablation_refuses_what_it_cannot_do(
    options: dict[str, Any], message: str, plan_for: PlanMaker, few: Material
) -> None:
    with pytest.raises(BadInput, match=message):
        Trainer(plan_for("ablation", **options), few, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("net", ["resnet18", "resnet20", "vgg16"])
def test_the_presets_for_colour_go_through_a_step(net: str, colour: Material) -> None:
    options: dict[str, Any] = {"epochs": 1, "batch_size": 4, "watch_images": 2}
    plan = build_plan(data="cifar10", net=net, recipe="standard", options=options)
    trainer = trained(plan, colour)
    assert trainer.progress.epochs == 1


@pytest.fixture
def colour() -> Material:
    from pinprick.data.dataset import Dataset

    def part(count: int, split: str) -> Dataset:
        generator = torch.Generator().manual_seed(count)
        pixels = torch.randint(0, 256, (count, 3, 32, 32), generator=generator, dtype=torch.uint8)
        numbers = torch.arange(count)
        classes = tuple(str(i) for i in range(10))
        return Dataset("cifar10", classes, numbers % 10, pixels, (), numbers, f"cifar10/{split}")

    return Material("cifar10", part(8, "train"), part(4, "test"))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_network_and_another_does_not(
    plan_for: PlanMaker, few: Material
) -> None:
    first, again, other = (
        trained(plan_for("fast_at", epochs=1, seed=seed), few).tensors() for seed in (0, 0, 1)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_training_leaves_the_global_random_numbers_alone(
    plan_for: PlanMaker, few: Material
) -> None:
    before = torch.random.get_rng_state()
    trained(plan_for("pgd_at", epochs=1, steps=1), few)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_norms_and_biases_have_no_weight_decay(plan_for: PlanMaker, few: Material) -> None:
    trainer = Trainer(plan_for("standard", weight_decay=0.1), few, "cpu")
    decayed, plain = trainer.optimiser.param_groups
    assert (decayed["weight_decay"], plain["weight_decay"]) == (0.1, 0.0)
    assert all(parameter.ndim > 1 for parameter in decayed["params"])
    assert all(parameter.ndim == 1 for parameter in plain["params"])


def test_the_running_mean_is_what_is_kept(plan_for: PlanMaker, few: Material) -> None:
    trainer = trained(plan_for("standard", epochs=1, ema=0.9), few)
    last, kept = trainer.net.state_dict(), trainer.final_net.state_dict()
    assert trainer.final_net is not trainer.net
    assert not torch.equal(last["0.weight"], kept["0.weight"])
    assert torch.allclose(last["0.weight"], kept["0.weight"], atol=0.1)
    assert trained(plan_for("standard", epochs=1), few).final_net is not None


def test_a_loss_that_is_no_number_says_what_to_do(plan_for: PlanMaker, few: Material) -> None:
    plan = plan_for("standard", optimiser="sgd", lr=100.0, lr_shape=((0.0, 1.0),), epochs=8)
    with pytest.raises(
        BadInput, match=r"no longer a number in epoch \d; try a lower learning rate"
    ):
        trained(plan, few)


def test_phases_need_picture_files(plan_for: PlanMaker, few: Material) -> None:
    plan = plan_for("standard", phases=((0.0, 16.0, 4.0),))
    with pytest.raises(BadInput, match="phases of growing size are for picture files"):
        Trainer(plan, few, "cpu")


def test_the_model_comes_with_its_card_and_loads(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("fast_at", epochs=2, eps=0.1, seed=4)
    seen: list[Epoch] = []
    card = train_model(plan, few, tmp_path, on_epoch=seen.append)
    facts = card.facts
    assert len(seen) == facts["epochs"] == 2
    assert (facts["data"], facts["recipe"], facts["seed"]) == ("digits", "fast_at", 4)
    assert facts["training"]["recipe"] == {
        "name": "fast_at", "eps": 0.1, "step_size": None, "guard": True,
    }  # fmt: skip
    assert facts["pgd"]["images"] == facts["test_images"] == 60
    assert facts["l0_elements"]["images"] == 8
    assert set(facts["l0_elements"]["accuracy"]) == {str(k) for k in FEW}
    assert facts["seconds"] > 0
    assert {"pinprick", "torch", "torchvision", "python"} <= facts["versions"].keys()
    model = load_model(f"file:{tmp_path}")
    test = evenly_spaced(few.test, 60)
    with torch.no_grad(), model.frozen():
        right = (model(test.images()).argmax(dim=1) == test.labels).float().mean().item()
    assert right == pytest.approx(facts["accuracy"], abs=1e-4)


def test_a_few_images_are_spread_over_the_whole_set(digits: Material) -> None:
    assert evenly_spaced(digits.test, 3).indices.tolist() == [0, 99, 198]
    assert evenly_spaced(digits.test, None) is digits.test
    assert evenly_spaced(digits.test, 10_000) is digits.test


@pytest.mark.gpu
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_step_never_waits_for_the_device(recipe: str, colour: Material) -> None:
    options: dict[str, Any] = {"epochs": 1, "batch_size": 4, "watch_images": 2, "ema": 0.5}
    plan = build_plan(data="cifar10", net="resnet20", recipe=recipe, options=options)
    trainer = Trainer(plan, colour, "cuda")
    batches = trainer.feed.batches(0, 1, 4, None)
    trainer._step(plan.recipe, next(batches), 1.0)  # what is made once may wait
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
            torch.cuda.set_sync_debug_mode("error")
        trainer._step(plan.recipe, next(batches), 1.0)
        assert trainer.average is not None
        trainer.average.update(1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
