"""A training from start to end: resumed where it stopped, measured, saved with its card."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from pinprick import __version__
from pinprick.errors import BadInput, first_few, one_line
from pinprick.files import writing
from pinprick.train.checkpoint import CHECKPOINT, read_checkpoint, save_each
from pinprick.train.exam import evaluate
from pinprick.train.loop import Tick, Trainer
from pinprick.train.material import Material, fingerprint
from pinprick.train.plan import Plan, describe_plan, difference, what_decides
from pinprick.train.progress import Epoch, Progress
from pinprick.zoo import load_file
from pinprick.zoo.card import ModelCard, read_card_file
from pinprick.zoo.saved_folder import CARD, foreign_files, save_model, weights_files
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

    A training that was begun in ``out`` is resumed after its last complete epoch, with the same
    outcome as if it had not stopped.

    Args:
        plan: What to train, and how.
        material: The data that the plan names.
        out: Folder for the checkpoint, the weights and the card.
        device: Device to train on.
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
    """The card in ``out`` if this training is finished there; None if it is not.

    A folder of another training is refused, and nothing in it is changed.
    """
    begun = _was_begun(out)
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
    wanted = _identity(plan, material)
    if other := _difference(there, wanted if begun else {**wanted, "weights": store}):
        raise BadInput(f"{out} holds a model of another training ({other}); choose another folder")
    return card if not begun and _holds_model(out) else None


def _was_begun(out: Path) -> bool:
    """Whether ``out`` holds a checkpoint; ``BadInput`` for a folder of something else.

    A folder with a checkpoint or a card holds a training, and may hold other files beside it. A
    folder with neither must be empty, except for hidden files.
    """
    if not out.is_dir():
        return False
    if foreign := foreign_files(out):
        raise BadInput(
            f"{out} holds files of another model ({first_few(foreign)}); choose another folder"
        )
    begun = (out / CHECKPOINT).exists()
    if not begun and not (out / CARD).exists():
        names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        if names:
            raise BadInput(
                f"{out} holds files that no training made ({first_few(names)}); "
                "choose another folder"
            )
    return begun


def _holds_model(out: Path) -> bool:
    """Whether ``out`` holds a model; ``BadInput`` where its weights do not belong to its card."""
    if not weights_files(out):
        return False
    try:
        load_file.load(str(out))
    except BadInput as error:
        raise BadInput(f"{error}; to train again, move the weights away") from None
    return True


def lost_weights(out: Path) -> bool:
    """Whether a training was finished in ``out`` and its weights have been removed."""
    return (out / CARD).exists() and not (out / CHECKPOINT).exists() and not weights_files(out)


def train_epochs(
    trainer: Trainer, material: Material, out: Path, tick: Tick | None = None
) -> Iterator[Epoch]:
    """The epochs that are left, with a checkpoint in ``out`` after each."""
    path = out / CHECKPOINT
    identity = _identity(trainer.plan, material)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _resume(trainer, path, identity)
    yield from save_each(
        path,
        trainer.epochs(tick),
        lambda: (trainer.tensors(), {**identity, "progress": asdict(trainer.progress)}),
    )


def _resume(trainer: Trainer, path: Path, identity: dict[str, Any]) -> None:
    """Restore the trainer from the checkpoint at ``path``, if it is of the same training."""
    tensors, record = read_checkpoint(path)
    if other := _difference(record, identity):
        raise BadInput(
            f"{path} is of a training with other settings ({other}); "
            "choose another folder, or delete it to begin again"
        )
    try:
        trainer.restore(tensors)
        trainer.progress = Progress(**record["progress"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path} does not fit {trainer.plan.net} ({one_line(error)})") from None


def finish(
    trainer: Trainer, material: Material, out: Path, *, store: Store = "float32"
) -> ModelCard:
    """Measure the network, save it with its card, and remove the checkpoint."""
    plan, progress = trainer.plan, trainer.progress
    _round(trainer.final_net, store)
    facts: dict[str, Any] = {
        "data": material.name,
        "train_data": material.train_words or material.train.source,
        "test_data": material.test_words or material.test.source,
        "recipe": plan.recipe.name,
        "seed": plan.seed,
        "epochs": progress.epochs,
        "rollbacks": progress.rollbacks,
        **evaluate(plan.exam, trainer.final_model, material.test, seed=plan.seed),
        "seconds": round(progress.seconds, 1),
        "device": device_name(trainer.device),
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
    save_model(trainer.final_net, card, out, store=store)
    (out / CHECKPOINT).unlink(missing_ok=True)
    return card


def _identity(plan: Plan, material: Material) -> dict[str, Any]:
    """Everything that decides the network and its measurements, as plain data."""
    return {
        "plan": describe_plan(plan),
        "data": fingerprint(material.train),
        "test data": fingerprint(material.test),
    }


def _difference(there: dict[str, Any], wanted: dict[str, Any]) -> str:
    """How the training ``there`` differs from the wanted one, in words; empty if it does not.

    Settings that its plan lacks are at their defaults. Other entries that it lacks are younger than
    it, and do not count.
    """
    found = {key: wanted[key] if there.get(key) is None else there[key] for key in wanted}
    found |= {"plan": what_decides(there.get("plan")), "data": there.get("data")}
    return difference(found, {**wanted, "plan": what_decides(wanted["plan"])})


def _round(net: nn.Module, store: Store) -> None:
    """Round every weight to its stored value, so that the saved network is the measured one."""
    stored = from_stored(to_stored(net.state_dict(), store), "the network")
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            tensor.copy_(stored[name])


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
