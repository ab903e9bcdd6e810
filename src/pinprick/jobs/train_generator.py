"""Train a generator for EGS-TSSA against a model, both given by name, and save it with its card."""

from collections.abc import Mapping
from pathlib import Path

from torch import nn

from pinprick.attacks.egs_tssa.saved_generator import GeneratorCard
from pinprick.data.match_labels import check_shape
from pinprick.errors import BadInput, UnknownName
from pinprick.jobs.device import find_device
from pinprick.jobs.output import open_out
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier, gives
from pinprick.train.generator_job import (
    GeneratorJob,
    finish_generator,
    finished_generator,
    train_generator_epochs,
)
from pinprick.train.generator_plan import build_generator_plan
from pinprick.train.material import Material, read_material
from pinprick.zoo import load_model
from pinprick.zoo.weights import as_store

TRAINED = ("egs_tssa",)  # attacks that have a generator


def train_generator(
    attack: str,
    model: str,
    data: str,
    out: Path,
    *,
    target: str | None = None,
    test: str | None = None,
    root: Path | None = None,
    options: Mapping[str, str] | None = None,
    store: str = "float32",
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> GeneratorCard:
    """Train a generator and save it to ``out``; returns its card.

    A training that was stopped is resumed after its last whole epoch. One that has finished is not
    repeated.

    Args:
        attack: The attack that the generator is for: "egs_tssa".
        model: The model that it attacks.
        data: The dataset, or some of its images. Labels are for the final measurements alone.
        out: Folder for the checkpoint, the weights and the card.
        target: The class to reach, by name or number; None for an untargeted generator.
        test: The held-out images; None for the test split of the dataset.
        root: The folder that datasets are kept in; None for the default.
        options: Settings of the training, as text.
        store: How weights are stored: "float32" or "float16".
        seed: The same seed gives the same generator.
        device: Where to train.
        progress: Receives remarks and epochs.
    """
    progress = progress or Progress()
    if attack not in TRAINED:
        raise UnknownName("attack with a generator", attack, TRAINED)
    kind = as_store(store)
    if kind == "int8":
        raise BadInput("a generator is stored as float32 or float16, not as int8")
    found = find_device(device)
    classifier = load_model(model)
    classifier.name = model
    if not gives(classifier.access, "network") or not isinstance(classifier.net, nn.Module):
        raise BadInput(
            f"{attack} needs the network of the model, but {model} gives {classifier.access} alone"
        )
    number = None if target is None else _class_number(target, classifier)
    material = read_material(data, root=root, test=test)
    if material.remark:
        progress.remark(material.remark)
    _check_fit(material, classifier)
    plan = build_generator_plan(_size(material, classifier), options)
    job = GeneratorJob(plan, classifier, material, target=number, seed=seed, store=kind)
    open_out(out)
    card = finished_generator(job, out)
    if card is not None:
        progress.remark(f"this training has finished already; its generator is in {out}")
        return card
    trainer = job.trainer(found)
    title = f"{attack} against {model} on {material.name}"
    epochs = plan.epochs
    with progress.show_epochs(title, epochs, lambda: trainer.progress.epochs) as (tick, show):
        for epoch in train_generator_epochs(job, trainer, out, tick):
            show(epoch)
    progress.remark("measuring on held-out images, in 32-bit numbers")
    return finish_generator(job, trainer, out)


def _check_fit(material: Material, model: Classifier) -> None:
    """Raise ``BadInput`` where images or classes are not the model's, before any time is spent."""
    for part in (material.train, material.test):
        check_shape(part, model)
    material.test.for_model(model)


def _size(material: Material, model: Classifier) -> tuple[int, int]:
    if material.train.pixels is not None:
        height, width = material.train.pixels.shape[2:]
        return height, width
    if model.size is None:
        raise BadInput(f"{model.name} does not say to which size picture files are brought")
    return model.size


def _class_number(text: str, model: Classifier) -> int:
    """The class that ``text`` names, or its number."""
    if text in model.classes:
        return model.classes.index(text)
    if text.isdecimal() and (not model.classes or int(text) < len(model.classes)):
        return int(text)
    raise UnknownName(f"class of {model.name}", text, model.classes)
