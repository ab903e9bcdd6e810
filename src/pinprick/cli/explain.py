"""``pinprick explain``: fool a model on pictures, and show what each changed pixel does."""

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
    grouping: Annotated[
        str | None,
        typer.Option(
            metavar="connected|pixels",
            help="Explain groups of pixels that lie together, or each by itself, up to 32 and else "
            "joined by place; by default connected with attacks that count pixels or elements.",
            show_default=False,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The layer of the maps, as the network calls it; none for no maps. "
            "Without it, the last that is fine enough.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="auto|gradcam|layercam",
            help="The map of where a class is seen; auto is LayerCAM up to 64 pixels per side.",
        ),
    ] = "auto",
    error: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SHARE",
            help="Largest standard error of a sampled effect, as a share of the change of the "
            "margin. Effects of up to 8 groups are exact.",
        ),
    ] = 0.05,
    max_pairs: Annotated[
        int,
        typer.Option(
            min=2,
            metavar="COUNT",
            help="Sample at most so many pairs of orders per group. Sampling stops earlier once "
            "no label is undecided.",
        ),
    ] = 256,
    polish: Annotated[
        bool | None,
        typer.Option(
            "--polish/--no-polish",
            help="Put back every pixel that can be spared first; by default so with attacks that "
            "count pixels or elements.",
            show_default=False,
        ),
    ] = None,
    figures: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="COUNT",
            help="Draw figures of at most so many images, 0 for none; by default of all pictures, "
            "and of 8 of --data, which are drawn at random with the seed.",
        ),
    ] = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    max_forwards: options.MaxForwards = None,
    max_backwards: options.MaxBackwards = None,
    max_seconds: options.MaxSeconds = None,
    seed: options.Seed = 0,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Show what each changed pixel of an attack does.

    Obscuring pixels lower the score of the true class, leading pixels raise that of another class.
    Prints a table. Writes to a folder: per picture a figure with maps of both classes, a figure
    with the effects of each group of pixels, and explanation.json with every number. With --data
    it also prints shares over all images.

    The attack pinprick searches with effort=fast here, unless there is a --target or --option says
    otherwise: pixels that can be spared are put back before anything is explained.

    The exit status is 0 when all is done, and 2 when something is to be put right, such as a file
    that is no picture, or a service that stops answering; what was found is shown all the same.
    """
    from collections.abc import Iterator
    from functools import partial

    from pinprick.attacks.build import build
    from pinprick.cli.console import remark, watch
    from pinprick.cli.data_inputs import open_data, read_groups
    from pinprick.cli.explain_output import explain_document, print_explanations
    from pinprick.cli.explain_steps import (
        as_settings,
        check_layer,
        choose_figures,
        explain_batches,
    )
    from pinprick.cli.folder import Diary, as_json, open_folder
    from pinprick.cli.place import check_answered, choose_batch_size, load_on
    from pinprick.cli.roll import Roll
    from pinprick.cli.time_left import TimeLeft
    from pinprick.cli.totals_output import print_totals
    from pinprick.data.pictures import Named
    from pinprick.errors import PinprickError
    from pinprick.explain.maps.class_maps import as_method
    from pinprick.explain.noise.explain_noise import check_scores
    from pinprick.explain.noise.totals import add_up
    from pinprick.report.explain_gallery import ExplainedPicture, hang_explanations
    from pinprick.result import AttackResult
    from pinprick.run import attack_batches

    options.check_data_options(data, images, label, limit)
    chosen = build(options.read_attack(attack, option or [], quick=target is None))
    settings = as_settings(grouping, chosen, seed=seed, error=error, max_pairs=max_pairs)
    seen = as_method(method)
    open_folder(out)
    asked = None if data is None else open_data(data, root=root, limit=limit)
    classifier = load_on(model, device, trust=trust)
    check_scores(classifier)
    groups, total = read_groups(
        asked, images or [], classifier, labels=label or [], target=target, quiet=quiet
    )
    drawn = choose_figures(figures, total, dataset=asked is not None, seed=seed)

    names: list[Named] = []
    roll = Roll()
    time_left = TimeLeft(max_seconds)

    def batches() -> Iterator[AttackResult]:
        for group in groups:
            if not names:
                check_layer(classifier, group.images, layer, seen)
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
                max_forwards=max_forwards,
                max_backwards=max_backwards,
                max_seconds=time_left.seconds,
            )
            yield from time_left.spend(found)

    title = f"{chosen.card.title} on {classifier.name}"
    words = None if asked is None else asked.words
    shown: list[ExplainedPicture] = []
    told = explain_batches(
        batches(), classifier, settings, polish=polish, layer=layer, method=seen, quiet=quiet
    )
    failure: PinprickError | None = None
    with Diary(out / "explanation.json") as diary:  # so that a run that is stopped loses nothing
        try:
            for part in watch(told, total, f"{title}, explained", quiet=quiet):
                photos = names[len(shown) : len(shown) + len(part)]
                here = {number - len(shown) for number in drawn}
                shown += hang_explanations(part, photos, classifier, out, title=title, figures=here)
                diary.write(
                    partial(explain_document, part, shown, roll, classifier, settings, words)
                )
        except PinprickError as stop:
            if not shown:
                raise
            failure = stop  # said once all that was found is shown
        totals = None if asked is None else add_up([one.explanation for one in shown])
        diary.write(
            partial(explain_document, part, shown, roll, classifier, settings, words, totals)
        )
    if json:
        typer.echo(as_json(diary.document))
    else:
        print_explanations(title, shown, roll)
        if totals is not None:
            print_totals(totals)
    if not quiet:
        figured = any(one.figure is not None for one in shown)
        remark(
            f"{'figures and explanation.json are' if figured else 'explanation.json is'} in {out}"
        )
    if failure is not None:
        raise failure
    check_answered(classifier)
    if roll.unreadable:
        raise typer.Exit(2)
