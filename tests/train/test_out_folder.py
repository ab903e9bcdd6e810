"""The folder of a training: made by it, or left alone; and whole, whenever the end is cut short."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from killing import KilledError, killed_at
from safetensors.torch import save_file

from pinprick import BadInput, load_model
from pinprick.train import job
from pinprick.train.checkpoint import CHECKPOINT
from pinprick.train.job import finish, train_epochs, train_model
from pinprick.train.loop import Trainer
from pinprick.train.material import Material
from pinprick.train.plan import Plan
from pinprick.zoo import saved_folder
from pinprick.zoo.nets import build_net
from pinprick.zoo.saved_folder import save_model

PlanMaker = Callable[..., Plan]


@pytest.fixture(autouse=True)
def no_exam(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is not the question here."""
    monkeypatch.setattr(job, "evaluate", lambda *_, **__: {"accuracy": 0.5})


@pytest.fixture
def plan(plan_for: PlanMaker) -> Plan:
    return plan_for("standard", epochs=1, watch_images=10)


@pytest.fixture
def some(few: Material) -> Material:
    return Material("digits", few.train[:50], few.test[:10])


def in_one_file(folder: Path) -> None:
    save_file({"weight": torch.zeros(2)}, folder / "model.safetensors", {"format": "pt"})


def in_shards(folder: Path) -> None:
    for number in (1, 2):
        shard = folder / f"model-0000{number}-of-00002.safetensors"
        save_file({f"weight{number}": torch.zeros(2)}, shard, {"format": "pt"})
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    (folder / "config.json").write_text("{}")


def as_a_pickle_with_a_card(folder: Path) -> None:
    torch.save({"weight": torch.zeros(2)}, folder / "best.pt")
    (folder / "card.json").write_text('{"net": "resnet20", "classes": 2, "size": [32, 32]}')


def as_notes(folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")


def as_a_folder(folder: Path) -> None:
    (folder / "results").mkdir()


def contents(folder: Path) -> dict[str, Any]:
    return {path.name: path.is_file() and path.read_bytes() for path in folder.iterdir()}


def never(step: int, steps: int) -> None:
    raise AssertionError("it trains")


@pytest.mark.parametrize(
    "lay", [in_one_file, in_shards, as_a_pickle_with_a_card, as_notes, as_a_folder]
)
def test_a_folder_that_no_training_made_is_refused_and_left_as_it_was(
    lay: Callable[[Path], None], plan: Plan, some: Material, tmp_path: Path
) -> None:
    lay(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(BadInput, match=r"holds .*choose another folder") as error:
        train_model(plan, some, tmp_path, tick=never)
    assert "\n" not in str(error.value)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("lay", [in_one_file, in_shards])
def test_weights_from_elsewhere_beside_a_checkpoint_are_not_replaced(
    lay: Callable[[Path], None], plan: Plan, some: Material, tmp_path: Path
) -> None:
    list(train_epochs(Trainer(plan, some, "cpu"), some, tmp_path))
    lay(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(BadInput, match="holds files of another model"):
        train_model(plan, some, tmp_path, tick=never)
    assert contents(tmp_path) == before


def test_the_model_of_another_training_beside_a_checkpoint_is_not_replaced(
    plan: Plan, plan_for: PlanMaker, some: Material, tmp_path: Path
) -> None:
    train_model(plan_for("standard", epochs=1, lr=0.001), some, tmp_path)
    list(train_epochs(Trainer(plan, some, "cpu"), some, tmp_path / "begun"))
    (tmp_path / "begun" / CHECKPOINT).rename(tmp_path / CHECKPOINT)
    with pytest.raises(BadInput, match=r"another training .lr 0.001 there, 0.003 here"):
        train_model(plan, some, tmp_path, tick=never)


def test_a_file_of_that_name_that_is_no_checkpoint_is_not_to_be_deleted(
    plan: Plan, some: Material, tmp_path: Path
) -> None:
    save_file({"weight": torch.zeros(2)}, tmp_path / CHECKPOINT)
    with pytest.raises(BadInput, match="is no checkpoint of pinprick; choose another folder"):
        train_model(plan, some, tmp_path, tick=never)


def test_hidden_files_and_what_a_killed_training_left_are_no_hindrance(
    plan: Plan, some: Material, tmp_path: Path
) -> None:
    (tmp_path / ".gitkeep").touch()
    (tmp_path / f".{CHECKPOINT}.tmp").write_bytes(b"half")
    (tmp_path / ".saving").mkdir()
    train_model(plan, some, tmp_path)
    load_model(f"file:{tmp_path}")


def test_notes_beside_a_checkpoint_are_no_hindrance(
    plan: Plan, some: Material, tmp_path: Path
) -> None:
    list(train_epochs(Trainer(plan, some, "cpu"), some, tmp_path))
    as_notes(tmp_path)
    train_model(plan, some, tmp_path, tick=never)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("digest", [True, False], ids=["of today", "of older versions"])
def test_a_training_whose_weights_are_gone_is_done_again(
    plan: Plan, some: Material, tmp_path: Path, digest: bool
) -> None:
    train_model(plan, some, tmp_path)
    first = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").unlink()
    if not digest:
        card = json.loads((tmp_path / "card.json").read_text())
        del card["sha256"]
        (tmp_path / "card.json").write_text(json.dumps(card))
    train_model(plan, some, tmp_path)
    again = load_model(f"file:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(first)
    (tmp_path / "card.json").unlink()
    before = load_model(f"file:{tmp_path}")
    assert torch.equal(again(some.test.images()), before(some.test.images()))


def test_a_training_whose_weights_are_others_is_said(
    plan: Plan, some: Material, tmp_path: Path
) -> None:
    train_model(plan, some, tmp_path)
    save_model(build_net("mnist_cnn"), some.card("mnist_cnn"), tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").replace(tmp_path / "model.safetensors")
    with pytest.raises(BadInput, match=r"not the file that card.json was saved with.*train again"):
        train_model(plan, some, tmp_path, tick=never)


def test_a_training_killed_while_it_saves_ends_with_the_same_model(
    plan: Plan, some: Material, tmp_path: Path
) -> None:
    train_model(plan, some, tmp_path / "whole")
    wanted = load_model(f"file:{tmp_path / 'whole'}")(some.test.images())
    begun = Trainer(plan, some, "cpu")
    list(train_epochs(begun, some, tmp_path / "begun"))
    checkpoint = (tmp_path / "begun" / CHECKPOINT).read_bytes()
    at = 0
    while True:
        at += 1
        out = tmp_path / str(at)
        out.mkdir()
        (out / CHECKPOINT).write_bytes(checkpoint)
        try:
            with killed_at(at, (saved_folder, "save_file")):
                finish(begun, some, out)
            break
        except KilledError:
            left = contents(out)
        card = train_model(plan, some, out, tick=never)
        assert card.facts["accuracy"] == 0.5, left.keys()
        assert torch.equal(load_model(f"file:{out}")(some.test.images()), wanted)
        assert sorted(contents(out)) == ["card.json", "model.safetensors"]
    assert at > 10
