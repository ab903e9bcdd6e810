"""``pinprick attack``: fool a model on pictures, and show what it took."""

from typing import Annotated

import typer

from pinprick.cli import options


def main(
    images: options.Pictures = None,
    model: options.ModelName = options.DEFAULT_MODEL,
    attack: Annotated[
        str, typer.Option(metavar="NAME", help="The attack; `pinprick attacks` lists them.")
    ] = options.DEFAULT_ATTACK,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A setting of the attack; may be repeated."),
    ] = None,
    label: options.Labels = None,
    target: options.Target = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    seed: options.Seed = 0,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Fool a model on pictures, and show what it took.

    Prints a table, and writes for each picture its adversarial PNG and a figure, and result.json
    with every number, to a folder.

    The exit status is 0 when all is done, and 2 when something is to be put right, such as a file
    that is no picture; the other files are attacked all the same.
    """
    from pinprick.attacks.build import build
    from pinprick.cli.attack_output import attack_document, print_attacks
    from pinprick.cli.console import remark, watch
    from pinprick.cli.folder import as_json, open_folder, write_json
    from pinprick.cli.inputs import read_inputs
    from pinprick.cli.place import choose_batch_size, load_on
    from pinprick.report.gallery import Exhibit, hang
    from pinprick.run import attack_batches

    chosen = build(options.read_attack(attack, option or []))
    open_folder(out)
    classifier = load_on(model, device, trust=trust)
    inputs = read_inputs(images or [], classifier, labels=label or [], target=target, quiet=quiet)
    batches = attack_batches(
        chosen,
        classifier,
        inputs.images,
        inputs.labels,
        targets=inputs.targets,
        seed=seed,
        batch_size=choose_batch_size(batch_size, classifier),
    )
    title = f"{chosen.card.title} on {classifier.name}"
    shown: list[Exhibit] = []
    for result in watch(batches, len(inputs.photos), title, quiet=quiet):
        photos = inputs.photos[len(shown) : len(shown) + len(result)]
        shown += hang(result, photos, classifier, out, title=title)
        document = attack_document(result, shown, inputs, classifier)
        write_json(document, out / "result.json")  # so that a run that is stopped loses nothing
    if json:
        typer.echo(as_json(document))
    else:
        print_attacks(title, shown, inputs)
    if not quiet:
        remark(f"pictures, figures and result.json are in {out}")
    if inputs.unreadable:
        raise typer.Exit(2)
