"""``pinprick data``: datasets by name: what there is, get it, check it, draw from it."""

from pathlib import Path
from typing import Annotated

import typer

from pinprick.cli import options

app = typer.Typer(rich_markup_mode=None, help="Get datasets, check them, and draw from them.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A dataset, as `pinprick data list` names them, or folder:PATH, csv:PATH or "
        "tensors:PATH.",
    ),
]


@app.command("list")
def list_all(root: options.Root = None, json: options.Json = False) -> None:
    """List the datasets that have a name, and say which are there."""
    from pinprick.cli.data_output import print_sources, sources_document
    from pinprick.cli.folder import as_json
    from pinprick.data.registry import data_root

    where = data_root(root)
    if json:
        typer.echo(as_json(sources_document(where)))
    else:
        print_sources(where)


@app.command("get")
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Which datasets to get.")],
    root: options.Root = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Fetch datasets, or what is missing of them.

    What broke off is taken up where it was, checked, and unpacked.
    """
    from pinprick.cli.data_output import watch_bytes
    from pinprick.cli.folder import as_json
    from pinprick.data.registry import data_root, find_source

    where = data_root(root)
    sources = [find_source(name) for name in names]
    for source in sources:
        with watch_bytes(quiet=quiet) as progress:
            source.get(where, progress)
        if not json:
            place = f"is in {where / source.place}" if source.place else "comes with the package"
            typer.echo(f"{source.name} {place}")
    if json:
        places = [{"name": source.name, "root": str(where)} for source in sources]
        typer.echo(as_json({"format": 1, "datasets": places}))


@app.command("check")
def check(
    name: Name,
    root: options.Root = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """See whether a dataset is whole, and what is in it.

    Looks at every file, counts images by class and gives a hash of all contents.

    The exit status is 0 when nothing was found, and 2 when something is to be put right.
    """
    from pinprick.cli.data_output import print_report, report_document, watch_files
    from pinprick.cli.folder import as_json
    from pinprick.data.check import check_data

    with watch_files(name, quiet=quiet) as progress:
        report = check_data(name, root=root, progress=progress)
    if json:
        typer.echo(as_json(report_document(report)))
    else:
        print_report(report)
    if report.faults:
        raise typer.Exit(2)


@app.command("draw")
def draw(
    images: Annotated[
        str,
        typer.Argument(
            metavar="SET[IMAGES]", help="Which images, as in cifar10/test[random=100,seed=7]."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The index file to write.")],
    root: options.Root = None,
    json: options.Json = False,
) -> None:
    """Write the numbers of some images to an index file.

    SET[@FILE] then names these images.
    """
    from pinprick.cli.folder import as_json
    from pinprick.data.select import load_subset, write_index
    from pinprick.data.subset import describe, parse

    subset = parse(images)
    chosen = load_subset(subset, root=root)
    write_index(chosen, out, made=describe(subset))
    if json:
        numbers = chosen.indices.tolist()
        document = {"format": 1, "made": describe(subset), "source": chosen.source}
        typer.echo(as_json({**document, "indices": numbers}))
    else:
        typer.echo(f"{len(chosen)} images of {chosen.source} are listed in {out}")
