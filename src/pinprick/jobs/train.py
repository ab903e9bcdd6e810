"""Train a network on a dataset, both given by name, and save it with its card."""

from collections.abc import Mapping
from pathlib import Path

from pinprick.errors import UnknownName
from pinprick.jobs.device import find_device
from pinprick.jobs.output import open_out
from pinprick.jobs.progress import Progress
from pinprick.train.job import finish, finished, lost_weights, train_epochs
from pinprick.train.loop import Trainer
from pinprick.train.material import read_material
from pinprick.train.plan import build_plan
from pinprick.train.presets import DATA
from pinprick.zoo.card import ModelCard
from pinprick.zoo.from_card import check_net
from pinprick.zoo.weights import as_store


def train_network(
    data: str,
    net: str,
    out: Path,
    *,
    recipe: str = "standard",
    test: str | None = None,
    root: Path | None = None,
    preset: str | None = None,
    options: Mapping[str, str] | None = None,
    store: str = "float32",
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> ModelCard:
    """Train a network and save it to ``out``; returns its card.

    A training that was stopped is resumed after its last whole epoch. One that has finished is not
    repeated.

    Args:
        data: The dataset, or some of its images.
        net: The architecture.
        out: Folder for the checkpoint, the weights and the card.
        recipe: Name of the recipe.
        test: The test images; None for the test split of the dataset.
        root: The folder that datasets are kept in; None for the default.
        preset: The dataset whose settings are taken; None for ``data`` itself.
        options: Settings of the training, as text.
        store: How weights are stored: "float32", "float16" or "int8".
        seed: The same seed gives the same network.
        device: Where to train.
        progress: Receives remarks and epochs.
    """
    progress, given = progress or Progress(), dict(options or {})
    found = find_device(device)
    if preset is not None and preset not in DATA:
        raise UnknownName("preset", preset, DATA)
    kind = as_store(store)
    check_net(net)  # mistakes are found before the data are read
    build_plan(data="", net=net, recipe=recipe, options=given)
    material = read_material(data, root=root, test=test)
    if material.remark:
        progress.remark(material.remark)
    plan = build_plan(
        data=preset or material.name, net=net, recipe=recipe, options=given, seed=seed
    )
    open_out(out)
    card = finished(plan, material, out, store=kind)
    if card is not None:
        progress.remark(f"this training has finished already; its model is in {out}")
        return card
    if lost_weights(out):
        progress.remark(f"{out} holds a card without its weights; training again")
    trainer = Trainer(plan, material, found)
    title = f"{plan.recipe.title} of {net} on {material.name}"
    total = plan.schedule.epochs
    with progress.show_epochs(title, total, lambda: trainer.progress.epochs) as (tick, show):
        for epoch in train_epochs(trainer, material, out, tick):
            show(epoch)
    progress.remark("measuring on test images, in 32-bit numbers")
    return finish(trainer, material, out, store=kind)
