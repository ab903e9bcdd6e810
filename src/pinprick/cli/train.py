"""``pinprick train``: train a network, plainly or to withstand attacks."""

from pathlib import Path
from typing import Annotated

import typer

from pinprick.cli import options
from pinprick.errors import UnknownName

DEFAULT_FOLDER = Path("pinprick-model")


def main(
    data: Annotated[
        str,
        typer.Option(
            "--data",  # typer 0.27 would name it after the metavar: --DATA
            metavar="DATA",
            help="mnist, fashion_mnist, cifar10, cifar100, imagenet, folder:PATH, csv:PATH, "
            "tensors:PATH, or a .safetensors file with both splits; or some of a set, as in "
            "'cifar10[:1000]' or 'cifar10[class=cat|dog]'.",
        ),
    ],
    net: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="resnet18, resnet20, resnet50, vgg16, vgg19, mnist_cnn, mnist_cnn_large, "
            "torchvision:NAME, or timm:NAME.",
        ),
    ],
    recipe: Annotated[
        str,
        typer.Option(metavar="NAME", help="standard, pgd_at, fast_at, n_fgsm, or sparse_at."),
    ] = "standard",
    test: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The test images, which are never trained on; by default the set's test split, "
            "or a fifth of the images where it has none.",
        ),
    ] = None,
    root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder that data sets are kept in.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The data set whose settings are taken; else DATA's own."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Epochs, in place of the preset's.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of the training; may be repeated."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for checkpoint, weights and card.")
    ] = DEFAULT_FOLDER,
    store: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="How weights are stored: float32, float16, or int8 (a scale per output channel). "
            "The card is of the network as it is stored.",
        ),
    ] = "float32",
    half: Annotated[bool, typer.Option("--half", help="The same as --store float16.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same network.")] = 0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train a network, plainly or to withstand attacks.

    Writes model.safetensors (in shards where it is large) and card.json to a folder, which
    `--model file:DIR` loads. Settings that are not given are those of the preset for the data, the
    network and the recipe.

    A training that was stopped is taken up after its last whole epoch when the same command is
    given again.
    """
    from pinprick.cli.console import remark
    from pinprick.cli.folder import as_json, open_folder
    from pinprick.cli.place import find_device
    from pinprick.cli.train_output import describe_epoch, print_card, show_epochs
    from pinprick.train.job import finish, finished, lost_weights, train_epochs
    from pinprick.train.loop import Trainer
    from pinprick.train.material import read_material
    from pinprick.train.plan import build_plan
    from pinprick.train.presets import DATA
    from pinprick.zoo.from_card import check_net
    from pinprick.zoo.weights import as_store

    place = find_device(device)
    given = options.read_options(option or [])
    if epochs is not None:
        given["epochs"] = str(epochs)
    if preset is not None and preset not in DATA:
        raise UnknownName("preset", preset, DATA)
    kind = as_store("float16" if half else store)
    check_net(net)  # faults are found before the data are read
    build_plan(data="", net=net, recipe=recipe, options=given)
    material = read_material(data, root=root, test=test)
    if material.remark and not quiet:
        remark(material.remark)
    name = preset or material.name
    plan = build_plan(data=name, net=net, recipe=recipe, options=given, seed=seed)
    open_folder(out)
    card = finished(plan, material, out, store=kind)
    if card is None:
        if lost_weights(out) and not quiet:
            remark(f"{out} holds a card without its weights; training again")
        trainer = Trainer(plan, material, place)
        title = f"{plan.recipe.title} of {net} on {material.name}"
        total = plan.schedule.epochs
        with show_epochs(title, total, lambda: trainer.progress.epochs, quiet=quiet) as show:
            tick, tell = show
            for epoch in train_epochs(trainer, material, out, tick):
                tell(describe_epoch(epoch))
        if not quiet:
            remark("measuring on test images, in 32-bit numbers")
        card = finish(trainer, material, out, store=kind)
    elif not quiet:
        remark(f"this training has ended already; its model is in {out}")
    if json:
        typer.echo(as_json(card.facts))
    else:
        print_card(card)
    if not quiet:
        remark(f"weights and card are in {out}; use them with --model file:{out}")
