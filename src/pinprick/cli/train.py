"""``pinprick train``: train a network, with or without adversarial training."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import Console, print_json, print_table, progress_bar
from pinprick.jobs.progress import ShowEpoch, Tick

if TYPE_CHECKING:
    from pinprick.zoo.card import ModelCard

DEFAULT_FOLDER = Path("pinprick-model")


def main(
    data: Annotated[
        str,
        typer.Option(
            "--data",  # typer 0.27 would name it after the metavar: --DATA
            metavar="DATA",
            help="mnist, fashion_mnist, cifar10, cifar100, imagenet, folder:PATH, csv:PATH, "
            "tensors:PATH, or a .safetensors file with both splits. Or some images of a dataset, "
            "as in 'cifar10[:1000]' or 'cifar10[class=cat|dog]'.",
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
        typer.Option(
            metavar="NAME", help="standard, pgd_at, fast_at, n_fgsm, sparse_at, or ablation."
        ),
    ] = "standard",
    test: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The test images, which are never trained on; by default the test split, or a "
            "fifth of the images if there is none.",
        ),
    ] = None,
    root: options.Root = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The dataset whose settings are used; by default DATA's own."
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="Number of epochs; by default that of the preset."),
    ] = None,
    option: options.TrainingOption = None,
    out: options.TrainingFolder = DEFAULT_FOLDER,
    store: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="How weights are stored: float32, float16, or int8 (a scale per output channel). "
            "The card is of the network as it is stored.",
        ),
    ] = "float32",
    half: Annotated[bool, typer.Option("--half", help="The same as --store float16.")] = False,
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", help="The same seed gives the same network.")
    ] = 0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train a network, with or without adversarial training.

    Writes model.safetensors (in shards if it is large) and card.json to a folder, which
    `--model file:DIR` loads. Settings that are not given are those of the preset for the data, the
    network and the recipe.

    The same command resumes a training that was stopped, after its last whole epoch.
    """
    from pinprick.jobs.train import train_network

    given = options.read_options(option or [])
    if epochs is not None:
        given["epochs"] = str(epochs)
    console = TrainingConsole(quiet=quiet)
    card = train_network(
        data,
        net,
        out,
        recipe=recipe,
        test=test,
        root=root,
        preset=preset,
        options=given,
        store="float16" if half else store,
        seed=seed,
        device=device,
        progress=console,
    )
    if json:
        print_json(card.facts)
    else:
        _print_card(card)
    console.remark(f"weights and card are in {out}; use them with --model file:{out}")


class TrainingConsole(Console):
    """Prints a bar and one line per epoch, too."""

    @contextmanager
    def show_epochs(
        self, title: str, epochs: int, done: Callable[[], int]
    ) -> Iterator[tuple[Tick, ShowEpoch]]:
        with progress_bar(quiet=self.quiet) as bar:
            task = bar.add_task(title, total=epochs)

            def tick(step: int, steps: int) -> None:
                bar.update(task, completed=done() + step / steps)

            def show(line: str) -> None:
                if not self.quiet:
                    bar.console.print(line, soft_wrap=True)

            show(title)
            yield tick, lambda epoch: show(str(epoch))


def _print_card(card: "ModelCard") -> None:
    from pinprick.zoo.facts import l0_attack, linf_attack, overstatement, percent

    facts = card.facts
    pgd, strong = facts["pgd"], facts.get("strong_pgd")
    few = facts.get("l0_elements")
    rows = [
        ("accuracy", percent(facts["accuracy"]), str(facts["test_images"])),
        (f"accuracy under {linf_attack(pgd)}", percent(pgd["accuracy"]), str(pgd["images"])),
    ]
    if strong:
        images = str(strong["images"])
        rows += [
            (f"accuracy under {linf_attack(pgd)}", percent(strong["pgd_accuracy"]), images),
            (f"worst case with {linf_attack(strong)}", percent(strong["accuracy"]), images),
        ]
    if few:
        rows += [
            (f"accuracy with {k} elements changed", percent(share), str(few["images"]))
            for k, share in few["accuracy"].items()
        ]
    rows.append(("training time", f"{facts['seconds']:.1f} s", ""))
    print_table(("measured", ">value", ">test images"), rows)
    if few:
        typer.echo(f"elements changed: {l0_attack(facts)}")
    if sentence := overstatement(facts):
        typer.echo(f"{sentence}: do not trust PGD on this network")
