"""A training from beginning to end: taken up where it was left, measured, saved with its card."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from pinprick import __version__
from pinprick.errors import BadInput
from pinprick.train.checkpoint import CHECKPOINT, Writer, read_checkpoint
from pinprick.train.exam import take_exam
from pinprick.train.loop import Tick, Trainer
from pinprick.train.material import Material, fingerprint
from pinprick.train.out_folder import check_folder, holds_model
from pinprick.train.plan import Plan, describe_plan, difference, what_decides
from pinprick.train.progress import Epoch, Progress
from pinprick.zoo.card import ModelCard, read_card_file
from pinprick.zoo.saved_folder import CARD, save_model
from pinprick.zoo.weights import Store, from_stored, to_stored


def train_model(
    plan: Plan,
    material: Material,
    out: str | Path,
    *,
    device: torch.device | str = "cpu",
    on_epoch: Callable[[Epoch], None] | None = None,
    tick: Tick | None = None,
    half: bool = False,
    store: Store = "float32",
) -> ModelCard:
    """Train as ``plan`` says and save network and card to ``out``; gives the card.

    A training that was begun in ``out`` is taken up after its last whole epoch, with the same
    outcome as if it had not been stopped.

    Args:
        plan: What is to be done.
        material: The data that the plan names.
        out: Folder for the checkpoint, the weights and the card.
        device: Where to train.
        on_epoch: Called after each epoch.
        tick: Called after each step with the steps done and the steps of the epoch.
        half: The same as ``store="float16"``.
        store: How weights are stored; the network is rounded to that before it is measured.
    """
    out = Path(out)
    store = "float16" if half else store
    if (card := finished(plan, material, out, store=store)) is not None:
        return card
    trainer = Trainer(plan, material, device)
    for epoch in train_epochs(trainer, material, out, tick):
        if on_epoch is not None:
            on_epoch(epoch)
    return finish(trainer, material, out, store=store)


def finished(
    plan: Plan, material: Material, out: Path, *, store: Store = "float32"
) -> ModelCard | None:
    """The card in ``out`` if this training has ended there; None if it is still to be done.

    A folder that this training did not make is refused, and nothing in it is touched.
    """
    begun = check_folder(out)
    path = out / CARD
    if not path.exists():
        return None
    card = read_card_file(path)
    names = {
        "plan": "training",
        "data": "trained_on",
        "test data": "tested_on",
        "weights": "weights",
    }
    there = {key: card.facts.get(name) for key, name in names.items()}
    if there["plan"] is None:
        raise BadInput(f"{out} holds a model already, from elsewhere; choose another folder")
    what = _what(plan, material)
    if other := _other(there, what if begun else {**what, "weights": store}):
        raise BadInput(f"{out} holds a model of another training ({other}); choose another folder")
    return card if not begun and holds_model(out) else None


def train_epochs(
    trainer: Trainer, material: Material, out: Path, tick: Tick | None = None
) -> Iterator[Epoch]:
    """The epochs that are left, with a checkpoint in ``out`` after each."""
    path = out / CHECKPOINT
    what = _what(trainer.plan, material)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot write to {out}: {error.strerror or error}") from None
    if path.exists():
        take_up(trainer, path, what)
    writer = Writer(path)
    try:
        for epoch in trainer.epochs(tick):
            writer.write(trainer.tensors(), {**what, "progress": asdict(trainer.progress)})
            yield epoch
        writer.wait()
    finally:
        writer.close()


def take_up(trainer: Trainer, path: Path, what: dict[str, Any]) -> None:
    """Bring the trainer to where the checkpoint at ``path`` left off, if it is of the same plan."""
    tensors, record = read_checkpoint(path)
    if other := _other(record, what):
        raise BadInput(
            f"{path} is of a training with other settings ({other}); "
            "choose another folder, or delete it to begin again"
        )
    try:
        trainer.restore(tensors)
        trainer.progress = Progress(**record["progress"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{path} does not fit {trainer.plan.net} ({reason})") from None


def finish(
    trainer: Trainer, material: Material, out: Path, *, store: Store = "float32"
) -> ModelCard:
    """Measure the network and save it with its card; the checkpoint has done its work."""
    plan, progress = trainer.plan, trainer.progress
    _round(trainer.kept, store)
    facts: dict[str, Any] = {
        "data": material.name,
        "train_data": material.train_words or material.train.source,
        "test_data": material.test_words or material.test.source,
        "recipe": plan.recipe.name,
        "seed": plan.seed,
        "epochs": progress.epochs,
        "rollbacks": progress.rollbacks,
        **take_exam(plan.exam, trainer.kept_model, material.test, seed=plan.seed),
        "seconds": round(progress.seconds, 1),
        "device": _device_name(trainer.device),
        "training": describe_plan(plan),
        "trained_on": fingerprint(material.train),
        "tested_on": fingerprint(material.test),
        "weights": store,
        "versions": {
            "pinprick": __version__,
            "torch": torch.__version__,
            "torchvision": torchvision.__version__,
            "python": platform.python_version(),
        },
    }
    card = replace(trainer.card, facts=facts)
    save_model(trainer.kept, card, out, store=store)
    (out / CHECKPOINT).unlink(missing_ok=True)
    return card


def _what(plan: Plan, material: Material) -> dict[str, Any]:
    """All that decides which network comes out and what is measured of it, as plain data."""
    return {
        "plan": describe_plan(plan),
        "data": fingerprint(material.train),
        "test data": fingerprint(material.test),
    }


def _other(there: dict[str, Any], what: dict[str, Any]) -> str:
    """What makes the training ``there`` another one, in words; empty if it is the same.

    Of the plan, what ``there`` lacks is at its default; what else it lacks was not written down
    yet when it was made, and is not held against it.
    """
    found = {key: what[key] if there.get(key) is None else there[key] for key in what}
    found |= {"plan": what_decides(there.get("plan")), "data": there.get("data")}
    return difference(found, {**what, "plan": what_decides(what["plan"])})


def _round(net: nn.Module, store: Store) -> None:
    """Bring every weight to what is stored of it, so that what is measured is what is saved."""
    stored = from_stored(to_stored(net.state_dict(), store), "the network")
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            tensor.copy_(stored[name])


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
