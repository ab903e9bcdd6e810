"""Killed and taken up again, a training ends with the same network, bit for bit."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from pinprick import BadInput, load_model
from pinprick.train.checkpoint import CHECKPOINT, CheckpointWriter, read_checkpoint
from pinprick.train.exam import evaluate
from pinprick.train.job import finish, train_epochs, train_model
from pinprick.train.loop import Trainer
from pinprick.train.material import Material, read_material
from pinprick.train.optimise import load_optimiser, make_optimiser, optimiser_tensors
from pinprick.train.plan import Plan, describe_plan
from pinprick.train.schedule import Schedule
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model

PlanMaker = Callable[..., Plan]

CHILD = """
import json, sys, time
from pathlib import Path

import torch

from pinprick.train.checkpoint import CHECKPOINT, read_checkpoint
from pinprick.train.job import train_model
from pinprick.train.material import read_material
from pinprick.train.plan import read_plan

plan, data, out, threads = sys.argv[1:]
torch.set_num_threads(int(threads))


def epochs_done():
    path = Path(out) / CHECKPOINT
    return read_checkpoint(path)[1]["progress"]["epochs"] if path.exists() else 0


def linger(step, steps):
    if step == 2 and epochs_done() == 2:
        print("in the third epoch", flush=True)
        time.sleep(600)


train_model(read_plan(json.loads(plan)), read_material(data), out, tick=linger)
"""


@pytest.fixture
def data(few: Material, tmp_path: Path) -> Path:
    path = tmp_path / "digits.safetensors"
    assert few.train.pixels is not None
    assert few.test.pixels is not None
    tensors = {
        "train_images": few.train.pixels.contiguous(),
        "train_labels": few.train.labels,
        "test_images": few.test.pixels.contiguous(),
        "test_labels": few.test.labels,
    }
    save_file(tensors, path, {"name": "digits"})
    return path


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_process_killed_in_mid_epoch_loses_nothing_but_time(
    plan_for: PlanMaker, data: Path, tmp_path: Path
) -> None:
    plan = plan_for("fast_at", epochs=4, ema=0.9, crop=2, cutout=4, eps=0.1)
    out = tmp_path / "killed"
    arguments = [json.dumps(describe_plan(plan)), str(data), str(out), str(torch.get_num_threads())]
    source = Path(sys.modules["pinprick"].__file__ or "").parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "in the third epoch\n"
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert read_checkpoint(out / CHECKPOINT)[1]["progress"]["epochs"] == 2

    material = read_material(str(data))
    seen: list[int] = []
    again = train_model(plan, material, out, on_epoch=lambda epoch: seen.append(epoch.number))
    whole = train_model(plan, material, tmp_path / "whole")
    assert seen == [3, 4]
    first, second = (
        load_file(folder / "model.safetensors") for folder in (out, tmp_path / "whole")
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert {**again.facts, "seconds": 0} == {**whole.facts, "seconds": 0}


@pytest.mark.parametrize("optimiser", ["sgd", pytest.param("adam", marks=pytest.mark.slow)])
def test_a_training_stopped_after_an_epoch_goes_on_as_before(
    optimiser: str, plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("n_fgsm", epochs=3, optimiser=optimiser, lr=1e-2, ema=0.9, eps=0.05)
    whole = Trainer(plan, few, "cpu")
    list(whole.epochs())
    for _ in train_epochs(Trainer(plan, few, "cpu"), few, tmp_path):
        break  # the process ends here
    (tmp_path / f".{CHECKPOINT}.tmp").write_bytes(b"half a checkpoint")
    again = Trainer(plan, few, "cpu")
    assert [epoch.number for epoch in train_epochs(again, few, tmp_path)] == [2, 3]
    first, second = whole.tensors(), again.tensors()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_checkpoint_comes_back_as_it_was_written(tmp_path: Path) -> None:
    tensors = {"a": torch.rand(3, 4), "b": torch.tensor(7), "c": torch.zeros(0)}
    writer = CheckpointWriter(tmp_path / CHECKPOINT)
    writer.write(tensors, {"epoch": 1, "share": 0.1})
    writer.wait()
    writer.close()
    read, record = read_checkpoint(tmp_path / CHECKPOINT)
    assert record == {"epoch": 1, "share": 0.1}
    assert all(torch.equal(read[name], tensors[name]) for name in tensors)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


@pytest.fixture
def begun(plan_for: PlanMaker, few: Material, tmp_path: Path) -> Path:
    for _ in train_epochs(Trainer(plan_for("standard"), few, "cpu"), few, tmp_path):
        break
    return tmp_path


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def flip_a_bit(path: Path) -> None:
    held = bytearray(path.read_bytes())
    held[-1000] ^= 1
    path.write_bytes(held)


def replace_it(path: Path) -> None:
    path.write_bytes(b"something else")


def forget_the_record(path: Path) -> None:
    save_file({"a": torch.zeros(1)}, path, {"training": "{}"})


def nest_the_record(path: Path) -> None:
    save_file({"a": torch.zeros(1)}, path, {"training": "[" * 100_000})


@pytest.mark.parametrize(
    "damage", [cut_short, flip_a_bit, replace_it, forget_the_record, nest_the_record]
)
def test_a_damaged_checkpoint_is_refused(
    damage: Callable[[Path], None], begun: Path, plan_for: PlanMaker, few: Material
) -> None:
    damage(begun / CHECKPOINT)
    with pytest.raises(BadInput, match=r"checkpoint\.safetensors is damaged .* delete it to begin"):
        train_model(plan_for("standard"), few, begun)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.1}, "other settings .lr 0.003 there, 0.1 here."),
        ({"epochs": 9}, "other settings .epochs 3 there, 9 here."),
        ({"seed": 1}, "other settings .seed 0 there, 1 here."),
    ],
)
def test_other_settings_than_those_it_began_with_are_refused(
    options: dict[str, Any], message: str, begun: Path, plan_for: PlanMaker, few: Material
) -> None:
    with pytest.raises(BadInput, match=message):
        train_model(plan_for("standard", **options), few, begun)


def test_other_images_than_those_it_began_with_are_refused(
    begun: Path, plan_for: PlanMaker, few: Material
) -> None:
    other = Material("digits", few.train[:150], few.test)
    with pytest.raises(BadInput, match=r"other settings .data 200 images"):
        train_model(plan_for("standard"), other, begun)


def test_other_test_images_than_those_it_began_with_are_refused(
    begun: Path, plan_for: PlanMaker, few: Material
) -> None:
    other = Material("digits", few.train, few.test[torch.arange(100).flip(0)])
    with pytest.raises(BadInput, match=r"other settings .test data 100 images, \w+ there, 100"):
        train_model(plan_for("standard"), other, begun)


def test_how_the_passes_are_started_makes_no_other_training(
    begun: Path, plan_for: PlanMaker, few: Material
) -> None:
    train_model(plan_for("standard", graphs=False), few, begun)
    card = train_model(plan_for("standard"), few, begun)
    assert card.facts["training"]["schedule"]["graphs"] is False


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the facts in a card."""
    path = folder / "card.json"
    card = json.loads(path.read_text())
    change(card["facts"])
    path.write_text(json.dumps(card))


def test_a_card_that_is_older_than_a_setting_has_it_at_its_default(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("fast_at", epochs=1)
    train_model(plan, few, tmp_path)

    def forget(facts: dict[str, Any]) -> None:
        for home, key in (("schedule", "trades"), ("schedule", "graphs"), ("recipe", "guard")):
            del facts["training"][home][key]
        del facts["tested_on"], facts["weights"]

    rewrite(tmp_path, forget)
    assert train_model(plan, few, tmp_path).facts["epochs"] == 1
    assert train_model(plan, few, tmp_path, half=True).facts["epochs"] == 1
    with pytest.raises(BadInput, match=r"another training .label_smoothing 0.0 there, 0.1 here"):
        train_model(plan_for("fast_at", epochs=1, label_smoothing=0.1), few, tmp_path)
    with pytest.raises(BadInput, match=r"another training .guard True there, False here"):
        train_model(plan_for("fast_at", epochs=1, guard=False), few, tmp_path)
    rewrite(tmp_path, lambda facts: facts.update(training={"recipe": "fast_at"}))
    with pytest.raises(BadInput, match="holds a model of another training"):
        train_model(plan, few, tmp_path)


@pytest.mark.slow
def test_weights_may_be_kept_as_16_bit_numbers_and_are_measured_as_such(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("standard", epochs=1, ema=0.5, exam_images=100)
    card = train_model(plan, few, tmp_path / "half", half=True)
    train_model(plan, few, tmp_path / "full")
    half, full = (load_file(tmp_path / name / "model.safetensors") for name in ("half", "full"))
    assert {tensor.dtype for tensor in half.values()} == {torch.float16}
    assert all(torch.equal(half[name], full[name].half()) for name in full)
    model = load_model(f"file:{tmp_path / 'half'}")
    with torch.no_grad():
        right = model(few.test.images()).argmax(dim=1) == few.test.labels
    assert card.facts["accuracy"] == pytest.approx(right.float().mean().item())
    assert card.facts["weights"] == "float16"
    with pytest.raises(BadInput, match=r"another training .weights float16 there, float32 here"):
        train_model(plan, few, tmp_path / "half")


@pytest.mark.slow
def test_8_bit_weights_are_measured_as_they_are_stored(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("standard", epochs=1, ema=0.5, exam_images=100)
    card = train_model(plan, few, tmp_path, store="int8")
    model = load_model(f"file:{tmp_path}")
    again = evaluate(plan.exam, model, few.test, seed=plan.seed)
    assert again == {key: card.facts[key] for key in again}
    assert card.facts["weights"] == "int8"


def test_weights_too_large_for_16_bits_are_said_and_not_lost(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("standard", epochs=1)
    trainer = Trainer(plan, few, "cpu")
    list(train_epochs(trainer, few, tmp_path))
    with torch.no_grad():
        next(trainer.final_net.parameters()).mul_(1e9)
    with pytest.raises(BadInput, match="has values too large for 16 bits; save it without half"):
        finish(trainer, few, tmp_path, store="float16")
    assert (tmp_path / CHECKPOINT).exists()


def test_a_training_that_has_ended_is_not_done_again(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    plan = plan_for("standard", epochs=1)
    card = train_model(plan, few, tmp_path)
    assert not (tmp_path / CHECKPOINT).exists()

    def never(step: int, steps: int) -> None:
        raise AssertionError("it trains again")

    assert train_model(plan, few, tmp_path, tick=never) == card
    with pytest.raises(BadInput, match=r"another training .epochs 1 there, 2 here"):
        train_model(plan_for("standard", epochs=2), few, tmp_path)


def test_a_folder_that_holds_a_model_from_elsewhere_is_left_alone(
    plan_for: PlanMaker, few: Material, tmp_path: Path
) -> None:
    card = replace(few.card("mnist_cnn"), facts={"data": "elsewhere"})
    save_model(build_net("mnist_cnn"), card, tmp_path)
    with pytest.raises(BadInput, match="holds a model already, from elsewhere"):
        train_model(plan_for("standard"), few, tmp_path)


def test_a_disk_that_fills_up_is_said(
    plan_for: PlanMaker, few: Material, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pinprick.train.checkpoint.save_file", fail)
    with pytest.raises(BadInput, match=r"checkpoint\.safetensors: No space left on device"):
        train_model(plan_for("standard"), few, tmp_path)


def test_momentum_is_taken_up_in_the_layout_of_its_weight() -> None:
    net = torch.nn.Conv2d(4, 8, 3).to(memory_format=torch.channels_last)
    optimiser = make_optimiser(net, Schedule())
    net(torch.rand(1, 4, 5, 5)).sum().backward()
    optimiser.step()
    kept = {name: value.contiguous() for name, value in optimiser_tensors(optimiser).items()}
    load_optimiser(optimiser, kept)
    buffer = optimiser.state[net.weight]["momentum_buffer"]
    assert buffer.stride() == net.weight.stride()
    assert torch.equal(buffer, kept["optimiser/0/momentum_buffer"])
