"""``pinprick attack``: fool a model on pictures, and show what it took."""

from pathlib import Path
from typing import Annotated

import typer

from pinprick.cli import options


def main(
    images: options.Pictures = None,
    model: options.ModelName = options.DEFAULT_MODEL,
    attack: options.AttackName = options.DEFAULT_ATTACK,
    option: options.AttackOptions = None,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    target: options.Target = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|data",
            help="Begin at what --save wrote of these pictures, on another model; or, with --data, "
            "at images of the class of --target.",
        ),
    ] = None,
    figures: Annotated[
        int | None,
        typer.Option(min=0, metavar="COUNT", help="Draw at most so many figures; all by default."),
    ] = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the result, images and all, to this file, for --start."
        ),
    ] = None,
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
    """Fool a model on pictures, and show what it took.

    Prints a table, and writes for each picture its adversarial PNG and a figure, and result.json
    with every number, to a folder.

    The exit status is 0 when all is done, and 2 when something is to be put right, such as a file
    that is no picture, or a service that stops answering; what was found is shown all the same.
    """
    from collections.abc import Iterator
    from functools import partial

    from pinprick.attacks.build import build
    from pinprick.cli.attack_output import attack_document, print_attacks
    from pinprick.cli.console import remark, watch
    from pinprick.cli.data_inputs import open_data, read_groups
    from pinprick.cli.folder import Diary, as_json, open_folder
    from pinprick.cli.place import check_answered, choose_batch_size, load_on
    from pinprick.cli.roll import Roll
    from pinprick.cli.starts import check_place, keep, open_start
    from pinprick.cli.time_left import TimeLeft
    from pinprick.data.pictures import Named
    from pinprick.errors import PinprickError
    from pinprick.report.gallery import Exhibit, hang
    from pinprick.result import AttackResult
    from pinprick.run import attack_batches

    options.check_data_options(data, images, label, limit)
    chosen = build(options.read_attack(attack, option or []))
    check_place(save)
    begin = open_start(start, data, root=root, target=target, seed=seed)
    open_folder(out)
    asked = None if data is None else open_data(data, root=root, limit=limit)
    classifier = load_on(model, device, trust=trust)
    groups, total = read_groups(
        asked, images or [], classifier, labels=label or [], target=target, quiet=quiet
    )

    names: list[Named] = []
    roll = Roll()
    time_left = TimeLeft(max_seconds)

    def batches() -> Iterator[AttackResult]:
        for group in groups:
            names.extend(group.photos)
            roll.add(group)
            if not group.photos:  # a service answered for none of them
                continue
            found = attack_batches(
                chosen,
                classifier,
                group.images,
                group.labels,
                targets=group.targets,
                seed=seed,
                ids=group.ids,
                batch_size=choose_batch_size(batch_size, classifier),
                start=begin(group, classifier),
                trace=trace,
                max_forwards=max_forwards,
                max_backwards=max_backwards,
                max_seconds=time_left.seconds,
            )
            yield from time_left.spend(found)

    title = f"{chosen.card.title} on {classifier.name}"
    shown: list[Exhibit] = []
    results: list[AttackResult] = []
    failure: PinprickError | None = None
    try:
        with Diary(out / "result.json") as diary:  # so that a run that is stopped loses nothing
            for result in watch(batches(), total, title, quiet=quiet):
                results += [result] if save is not None else []
                photos = names[len(shown) : len(shown) + len(result)]
                left = None if figures is None else figures - len(shown)
                shown += hang(result, photos, classifier, out, title=title, figures=left)
                words = None if asked is None else asked.words
                diary.write(partial(attack_document, result, shown, roll, classifier, words))
    except PinprickError as error:
        if not shown:
            raise
        failure = error  # said once all that was found is shown
    finally:
        if save is not None and results:
            keep(results, save)
    if json:
        typer.echo(as_json(diary.document))
    else:
        print_attacks(title, shown, roll, diary.document["attack"])
    if not quiet:
        remark(f"pictures, figures and result.json are in {out}")
    if failure is not None:
        raise failure
    check_answered(classifier)
    if roll.unreadable:
        raise typer.Exit(2)
