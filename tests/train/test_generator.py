"""The training of a generator: its mask, its loop, resuming, refusals, and the command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pinprick import BadInput, UnknownName, load_model, run_attack
from pinprick.attacks.egs_tssa import EGSTSSA
from pinprick.attacks.egs_tssa.saved_generator import WEIGHTS, read_generator_card
from pinprick.jobs.train_generator import train_generator
from pinprick.model import Classifier
from pinprick.train.checkpoint import CHECKPOINT
from pinprick.train.generator_job import (
    GeneratorJob,
    finish_generator,
    finished_generator,
    train_generator_epochs,
)
from pinprick.train.generator_loop import GeneratorEpoch, quantise
from pinprick.train.generator_plan import GeneratorPlan, build_generator_plan
from pinprick.train.material import Material

QUICK: dict[str, Any] = {
    "base": 2,
    "residual_blocks": 1,
    "dense_epochs": 1,
    "sparse_epochs": 2,
    "batch_size": 50,
    "watch_images": 40,
    "exam_images": 40,
}
R4 = range(0, 28, 4)


@pytest.fixture
def model() -> Classifier:
    return renamed("pinprick:mnist_cnn")


def renamed(name: str) -> Classifier:
    """The model with the class names of the digits."""
    model = load_model(name)
    model.classes = tuple(map(str, range(10)))
    return model


def job_for(model: Classifier, material: Material, **changes: Any) -> GeneratorJob:
    given = {key: changes.pop(key) for key in ("target", "seed", "store") if key in changes}
    plan = build_generator_plan((28, 28), {**QUICK, **changes})
    return GeneratorJob(plan, model, material, **given)


def train(job: GeneratorJob, out: Path) -> list[GeneratorEpoch]:
    trainer = job.trainer("cpu")
    epochs = list(train_generator_epochs(job, trainer, out))
    finish_generator(job, trainer, out)
    return epochs


# The mask of a training step


def test_where_the_draw_is_low_the_mask_is_binary_within_the_blocks_and_has_no_gradient() -> None:
    rho = torch.tensor([0.2, 0.5, 0.9, 0.9]).view(1, 1, 2, 2).requires_grad_()
    blocks = torch.tensor([True, True, True, False]).view(1, 1, 2, 2)
    mask, binary = quantise(rho, blocks, torch.full((1, 1, 2, 2), 0.49), 0.5)
    assert binary.flatten().tolist() == mask.flatten().tolist() == [0, 1, 1, 0]
    (mask * 7).sum().backward()
    assert rho.grad is not None
    assert rho.grad.flatten().tolist() == [0, 0, 0, 0]


def test_where_the_draw_is_high_the_mask_is_rho_beyond_the_blocks_too() -> None:
    rho = torch.tensor([0.2, 0.5, 0.9, 0.9]).view(1, 1, 2, 2).requires_grad_()
    blocks = torch.tensor([True, True, True, False]).view(1, 1, 2, 2)
    mask, _ = quantise(rho, blocks, torch.full((1, 1, 2, 2), 0.5), 0.5)
    assert torch.equal(mask, rho)
    (mask * 7).sum().backward()
    assert rho.grad is not None
    assert rho.grad.flatten().tolist() == [7, 7, 7, 7]


def test_half_of_the_pixels_are_binary_in_the_mean() -> None:
    rho = torch.full((1, 1, 100, 100), 0.25)
    draw = torch.rand(1, 1, 100, 100, generator=torch.Generator().manual_seed(0))
    mask, _ = quantise(rho, torch.ones_like(rho, dtype=torch.bool), draw, 0.5)
    assert 0.48 < (mask == 0).float().mean() < 0.52


# The loop


@pytest.mark.parametrize(("pixels", "rises"), [(1e-4, True), (1.0, False)])
def test_the_first_stage_has_no_sparsity_loss_and_in_the_second_its_weight_follows_the_share(
    model: Classifier, few: Material, pixels: float, rises: bool
) -> None:
    trainer = job_for(model, few, pixels=pixels, sparse_epochs=1).trainer("cpu")
    first, second = trainer.epochs()
    assert (first.number, first.stage, first.sparsity) == (1, 1, 0)
    assert (second.number, second.stage) == (2, 2)
    assert 1e-4 < second.train_pixels < 1
    assert (second.sparsity > trainer.plan.sparsity) == rises
    assert "stage 2: loss" in str(second)


def blocks_by_definition(model: Classifier, layer: str, images: Tensor) -> Tensor:
    """29 of the 49 blocks of 4 x 4 pixels, those with the largest norm of the weighted map."""
    found: list[Tensor] = []
    assert isinstance(model.net, nn.Module)
    handle = model.net.get_submodule(layer).register_forward_hook(lambda *at: found.append(at[2]))
    logits = model(images.requires_grad_())
    handle.remove()
    (gradient,) = torch.autograd.grad(logits.sum(), found)
    plane = (gradient.mean(dim=(2, 3), keepdim=True) * found[0]).sum(dim=1, keepdim=True)
    large = F.interpolate(plane, (28, 28), mode="bilinear", antialias=True).detach()
    mask = torch.zeros(len(images), 1, 28, 28, dtype=torch.bool)
    for row in range(len(images)):
        cut = {(i, j): large[row, 0, i : i + 4, j : j + 4] for i in R4 for j in R4}
        for i, j in sorted(cut, key=lambda at: -cut[at].norm().item())[:29]:
            mask[row, 0, i : i + 4, j : j + 4] = True
    return mask


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("target", [None, 3])
def test_the_loss_of_a_step_is_its_definition_with_block_masks_in_both_stages(
    model: Classifier, few: Material, stage: int, target: int | None
) -> None:
    weights = {"dense_binary": 2e-4, "sparse_binary": 3e-4, "sparsity": 5e-4, "confidence": 1.5}
    job = job_for(model, few, residual_blocks=0, target=target, **weights)
    trainer = job.trainer("cpu")
    batch = next(iter(trainer.feed.batches(0, 0, 30, 28)))
    with model.frozen():
        blocks = blocks_by_definition(model, trainer.card.layer, batch.images.clone())
        values, rho = trainer.generator.train()(batch.images)
        draw = batch.rng.uniform(1, 28, 28, step=0, use="quantise")
        binary = ((rho >= 0.5) & blocks).float()
        mask = torch.where(draw < 0.5, binary, rho)
        clean = model(batch.images).argmax(dim=1)
        logits = model((batch.images + values * mask).clamp(0, 1))
        loss, share = trainer._step(batch, stage)
    wanted = torch.zeros(())
    for row in range(30):
        own = int(clean[row]) if target is None else target
        rest = torch.cat((logits[row, :own], logits[row, own + 1 :])).max()
        margin = logits[row, own] - rest if target is None else rest - logits[row, own]
        wanted = wanted + margin.clamp(min=-1.5)
    scale = 224**2 / 28**2
    wanted = wanted + scale * (2e-4 if stage == 1 else 3e-4) * ((binary - rho) ** 2).sum()
    if stage == 2:
        wanted = wanted + scale * 5e-4 * mask.sum()
    assert not blocks.all()
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-4)
    assert share.item() == pytest.approx(binary.mean().item())


def test_of_the_epochs_with_the_wanted_share_the_one_that_fools_most_is_kept(
    model: Classifier, few: Material
) -> None:
    trainer = job_for(model, few, pixels=0.1).trainer("cpu")
    weights: list[Tensor] = []

    def epoch(number: int, stage: int, rate: float, pixels: float) -> None:
        one = GeneratorEpoch(number, stage, 0.0, pixels, rate, pixels, 0.0, 0.0, 0.0)
        with torch.no_grad():
            next(trainer.generator.parameters()).fill_(number)
        trainer.accept(one)
        weights.append(next(trainer.generator.parameters()).clone())

    for number, rate, pixels in ((1, 0.9, 0.05), (2, 0.7, 0.1), (3, 0.8, 0.11), (4, 0.6, 0.02)):
        epoch(number, 1 if number == 1 else 2, rate, pixels)
    assert trainer.progress.kept == 2  # the first is of the other stage, the third has too many
    trainer.take_best()
    assert torch.equal(next(trainer.generator.parameters()), weights[1])


def test_where_no_epoch_has_the_wanted_share_the_last_one_is_kept(
    model: Classifier, few: Material
) -> None:
    trainer = job_for(model, few, pixels=1e-4, dense_epochs=0, sparse_epochs=1).trainer("cpu")
    trainer.accept(GeneratorEpoch(1, 2, 0.0, 0.5, 1.0, 0.5, 0.0, 0.0, 0.0))
    before = next(trainer.generator.parameters()).clone()
    trainer.take_best()
    assert trainer.progress.kept == 0
    assert torch.equal(next(trainer.generator.parameters()), before)


def test_the_model_is_left_as_it_was(model: Classifier, few: Material) -> None:
    before = {name: value.clone() for name, value in model.net.state_dict().items()}  # type: ignore[attr-defined]
    flags = [p.requires_grad for p in model.net.parameters()]  # type: ignore[attr-defined]
    list(job_for(model, few, dense_epochs=0, sparse_epochs=1).trainer("cpu").epochs())
    assert all(torch.equal(before[name], value) for name, value in model.net.state_dict().items())  # type: ignore[attr-defined]
    assert [p.requires_grad for p in model.net.parameters()] == flags  # type: ignore[attr-defined]
    assert all(p.grad is None for p in model.net.parameters())  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_tiny_generator_fools_more_images_than_as_many_random_pixels(
    model: Classifier, digits: Material, tmp_path: Path
) -> None:
    some = Material("digits", digits.train[:750], digits.test)
    job = job_for(
        model, some, base=8, batch_size=25, dense_epochs=2, sparse_epochs=6, sparsity=1e-4
    )
    train(job, tmp_path)
    images = job.material.test.images()[:100]
    with torch.no_grad():
        labels = model(images).argmax(dim=1)
    result = run_attack(EGSTSSA(weights=str(tmp_path)), model, images, labels)
    rng = torch.Generator().manual_seed(0)
    fooled = torch.zeros(len(images), dtype=torch.bool)
    for row, count in enumerate(result.l0_pixels.tolist()):
        place = torch.rand(28 * 28, generator=rng).topk(count).indices
        noisy = images[row].clone().flatten()
        noisy[place] = torch.rand(count, generator=rng).round()
        with torch.no_grad():
            fooled[row] = model(noisy.view(1, 1, 28, 28)).argmax() != labels[row]
    assert result.l0_pixels_percent.mean() < 20
    assert result.success.float().mean() > fooled.float().mean() + 0.2


# Resuming


def test_a_stopped_training_is_resumed_with_the_same_outcome(
    model: Classifier, few: Material, tmp_path: Path
) -> None:
    job = job_for(model, few)
    whole = train(job, tmp_path / "whole")
    stopped: Iterator[GeneratorEpoch] = train_generator_epochs(
        job, job.trainer("cpu"), tmp_path / "parts"
    )
    next(stopped)
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    assert (tmp_path / "parts" / CHECKPOINT).exists()
    rest = train(job, tmp_path / "parts")
    assert [one.number for one in rest] in ([2, 3], [3])
    assert rest[-1].loss == whole[-1].loss
    first, second = (tmp_path / name / WEIGHTS for name in ("whole", "parts"))
    assert first.read_bytes() == second.read_bytes()
    assert not (tmp_path / "parts" / CHECKPOINT).exists()


def test_a_finished_training_is_not_repeated_and_another_is_refused(
    model: Classifier, few: Material, tmp_path: Path
) -> None:
    job = job_for(model, few, dense_epochs=0, sparse_epochs=1)
    assert finished_generator(job, tmp_path) is None
    train(job, tmp_path)
    card = finished_generator(job, tmp_path)
    assert card is not None
    assert card == read_generator_card(tmp_path)[0]
    for other, message in (
        (job_for(model, few, dense_epochs=0, sparse_epochs=1, seed=1), "seed 0 there, 1 here"),
        (job_for(model, few, dense_epochs=0, sparse_epochs=2), "sparse_epochs 1 there, 2 here"),
        (job_for(model, few, dense_epochs=0, sparse_epochs=1, target=3), "target None there, 3"),
        (
            job_for(renamed("pinprick:mnist_cnn_pgd_at"), few, dense_epochs=0, sparse_epochs=1),
            "another training .model",
        ),
    ):
        with pytest.raises(BadInput, match=message):
            finished_generator(other, tmp_path)


def test_a_checkpoint_of_another_model_size_target_or_data_is_refused(
    model: Classifier, few: Material, tmp_path: Path
) -> None:
    job = job_for(model, few)
    stopped = train_generator_epochs(job, job.trainer("cpu"), tmp_path)
    next(stopped)
    stopped.close()  # type: ignore[attr-defined]
    for other, reason in (
        (job_for(renamed("pinprick:mnist_cnn_pgd_at"), few), "model"),
        (job_for(model, few, base=4), "base 2 there, 4 here"),
        (job_for(model, few, target=3), "target None there, 3 here"),
        (job_for(model, Material("fewer", few.train[:90], few.test)), "data"),
    ):
        with pytest.raises(BadInput, match=rf"a training with other settings \({reason}"):
            next(train_generator_epochs(other, other.trainer("cpu"), tmp_path))


def test_a_folder_with_other_files_is_refused(
    model: Classifier, few: Material, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"no training made \(notes.txt"):
        finished_generator(job_for(model, few), tmp_path)


# The card


def test_the_card_holds_what_the_referee_measures(
    model: Classifier, few: Material, tmp_path: Path
) -> None:
    job = job_for(model, few, dense_epochs=0, sparse_epochs=1, store="float16")
    train(job, tmp_path)
    card, _ = read_generator_card(tmp_path)
    data = few.test[torch.arange(40) * len(few.test) // 40]
    result = run_attack(EGSTSSA(weights=str(tmp_path)), model, data.images(), data.labels)
    told = card.facts["single_pass"]
    assert told["fooling_rate"] == round(result.fooling_rate, 4)
    assert told["images"] == int(result.correct.sum())
    assert told["pixels"] == round(result.l0_pixels[result.correct].double().mean().item(), 2)
    tenth = card.facts["in_a_tenth_of_the_pixels"]
    assert tenth["most_pixels"] == 78
    assert tenth["pixels"] <= 78
    assert len(card.facts["history"]) == 1
    assert (tmp_path / WEIGHTS).stat().st_size < 100_000


def test_a_targeted_generator_is_measured_on_the_other_classes(
    model: Classifier, few: Material, tmp_path: Path
) -> None:
    job = job_for(model, few, dense_epochs=0, sparse_epochs=1, target=3, exam_images=None)
    train(job, tmp_path)
    card, _ = read_generator_card(tmp_path)
    assert card.target == 3
    with torch.no_grad():
        right = model(few.test.images()).argmax(dim=1) == few.test.labels
    assert card.facts["single_pass"]["images"] == int((right & (few.test.labels != 3)).sum())


# The settings


def test_large_images_have_the_settings_of_the_authors_and_small_ones_their_own() -> None:
    small, large = build_generator_plan((32, 32)), build_generator_plan((224, 224))
    assert (small.residual_blocks, small.block) == (2, 4)
    assert (large.residual_blocks, large.block) == (6, 8)
    assert build_generator_plan((32, 32), {"eps": "10/255"}).eps == 10 / 255


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "0"}, "training needs keep above 0 and at most 1"),
        ({"block": "64"}, "blocks of 64 pixels do not fit images of 32 x 32"),
        ({"epochs": "3"}, "epochs"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=message):
        build_generator_plan((32, 32), options)


def test_the_loss_weights_do_not_depend_on_the_size_of_the_images() -> None:
    assert GeneratorPlan().sparsity == build_generator_plan((224, 224)).sparsity == 1e-4


# The job


def digits_file(material: Material, path: Path) -> str:
    from safetensors.torch import save_file

    tensors: dict[str, Tensor] = {}
    for split, part in (("train", material.train), ("test", material.test)):
        assert part.pixels is not None
        tensors |= {f"{split}_images": part.pixels.clone(), f"{split}_labels": part.labels.clone()}
    names = load_model("pinprick:mnist_cnn").classes
    save_file(tensors, path, {"name": "digits", "classes": json.dumps(names)})
    return str(path)


def test_the_job_trains_by_name_and_says_when_it_is_done(few: Material, tmp_path: Path) -> None:
    data = digits_file(few, tmp_path / "digits.safetensors")
    options = {key: str(value) for key, value in QUICK.items()} | {"sparse_epochs": "1"}
    arguments: Any = ("egs_tssa", "pinprick:mnist_cnn", data, tmp_path / "out")
    card = train_generator(*arguments, options=options, target="3", device="cpu")
    assert (card.model, card.target) == ("pinprick:mnist_cnn", 3)
    assert train_generator(*arguments, options=options, target="3", device="cpu") == card


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attack": "pgd"}, "pgd"),
        ({"store": "int8"}, "float32 or float16"),
        ({"target": "eleven"}, "eleven"),
        ({"target": "10"}, "10"),
        ({"model": "pinprick:cifar10_resnet20"}, "28 x 28, but .*resnet20 takes 32 x 32"),
        ({"model": "pinprick:fashion_cnn"}, "labels of digits cannot go by name"),
    ],
)
def test_the_job_refuses_what_it_cannot_train(
    changes: dict[str, str], message: str, few: Material, tmp_path: Path
) -> None:
    given: Any = {"attack": "egs_tssa", "model": "pinprick:mnist_cnn", "out": tmp_path / "out"}
    given["data"] = digits_file(few, tmp_path / "digits.safetensors")
    with pytest.raises((BadInput, UnknownName), match=message):
        train_generator(**{**given, "device": "cpu", **changes})
    assert not (tmp_path / "out").exists()
