"""``pinprick compare``: several attacks on the same pictures, side by side."""

from typing import Annotated

import typer

from pinprick.cli import options

_SEVERAL = 16  # images of a dataset, each of which gets a figure


def main(
    images: options.Pictures = None,
    attacks: Annotated[
        str,
        typer.Option(
            metavar="A,B:PRESET",
            help="Attacks by name, some under a preset; `pinprick attacks` lists them.",
        ),
    ] = options.DEFAULT_COMPARISON,
    model: options.ModelName = options.DEFAULT_MODEL,
    judge: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Another model, whose class and confidence are shown."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTACK.KEY=VALUE", help="A setting of one attack, as pgd.steps=20; repeatable."
        ),
    ] = None,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    target: options.Target = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    max_forwards: options.MaxForwards = None,
    max_backwards: options.MaxBackwards = None,
    max_seconds: options.MaxSeconds = None,
    seed: options.Seed = 0,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    trace: options.Trace = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Set several attacks side by side on the same pictures.

    Prints a table, and writes for each picture a figure with a column for each attack, and
    compare.json with every number, to a folder. Of a dataset the first 16 images are taken, unless
    --limit says otherwise.

    The exit status is 0 when all is done, and 2 when something is to be put right, such as a file
    that is no picture, or a service that stops answering; what was found is shown all the same.
    """
    from pinprick.attacks.build import build
    from pinprick.cli.compare_output import compare_document, print_comparisons
    from pinprick.cli.console import remark, watch
    from pinprick.cli.data_inputs import gather, open_data, read_data
    from pinprick.cli.folder import as_json, open_folder, write_json
    from pinprick.cli.inputs import read_inputs
    from pinprick.cli.place import check_answered, choose_batch_size, load_on
    from pinprick.errors import PinprickError
    from pinprick.report.comparison import add_columns, save_comparison, start_comparisons
    from pinprick.run import attack_batches

    options.check_data_options(data, images, label, limit)
    chosen = [build(spec) for spec in options.read_attacks(attacks, option or [])]
    open_folder(out)
    asked = None if data is None else open_data(data, root=root, limit=limit or _SEVERAL)
    classifier = load_on(model, device, trust=trust)
    other = None if judge is None else load_on(judge, device, trust=trust)
    if asked is not None:
        inputs = gather(read_data(asked.data, classifier, target=target, quiet=quiet))
    else:
        inputs = read_inputs(
            images or [], classifier, labels=label or [], target=target, quiet=quiet
        )
    runs = [  # all of them, so that everything is checked before the first starts
        attack_batches(
            attack,
            classifier,
            inputs.images,
            inputs.labels,
            targets=inputs.targets,
            seed=seed,
            ids=inputs.ids,
            batch_size=choose_batch_size(batch_size, classifier),
            max_forwards=max_forwards,
            max_backwards=max_backwards,
            max_seconds=max_seconds,
            trace=trace,
        )
        for attack in chosen
    ]
    comparisons = start_comparisons(inputs.photos, inputs.images, inputs.logits, classifier, other)
    failure: PinprickError | None = None
    try:
        for attack, batches in zip(chosen, runs, strict=True):
            done = 0
            for result in watch(batches, len(comparisons), attack.card.title, quiet=quiet):
                add_columns(comparisons[done:], attack, result, classifier, other)
                done += len(result)
    except PinprickError as error:
        if not comparisons or not comparisons[0].columns:
            raise
        failure = error  # said once all that was found is shown
    for comparison in comparisons:
        save_comparison(comparison, out)
    words = None if asked is None else asked.words
    limits = {
        "max_forwards": max_forwards,
        "max_backwards": max_backwards,
        "max_seconds": max_seconds,
    }
    document = compare_document(comparisons, chosen, inputs, classifier, other, seed, words, limits)
    write_json(document, out / "compare.json")
    if json:
        typer.echo(as_json(document))
    else:
        print_comparisons(comparisons, inputs)
    if not quiet:
        remark(f"figures and compare.json are in {out}")
    if failure is not None:
        raise failure
    check_answered(classifier, other)
    if inputs.unreadable:
        raise typer.Exit(2)
