"""``pinprick report``: results as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import Console, print_json
from pinprick.errors import BadInput

_DEFAULT = Path("report.html")


def main(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="STORE|RESULTS...",
            help="Stores of `bench run`; folders that attack, compare or explain wrote; "
            "result.json, compare.json or explanation.json; files of attack --save.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = _DEFAULT,
    images: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Most images in the gallery; plots are over all images. By default 1000, or as "
            "many as take about 10 MB.",
            show_default=False,
        ),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The title; by default the model.", show_default=False),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write results as one HTML file with plots and images.

    The file holds a summary, plots with their tables, and a gallery of images in which you can zoom
    to changed pixels. It needs no network and no other file. Results of several attacks on the
    same model and data are compared.
    """
    from pinprick.pages.report_page import make_report

    if not results:
        raise BadInput(
            "name results: a store, a folder that attack wrote, or a result.json; "
            "see pinprick report --help"
        )
    if out.is_dir():
        raise BadInput(f"{out} is a folder; give --out a file such as {out / 'report.html'}")
    console = Console(quiet=quiet)
    page = make_report(results, images=images, title=title)
    console.remark(f"{out}: {page}")
    if page.pictured < page.images:
        console.remark(
            f"clean pictures of {page.images - page.pictured:,} images were not found; "
            "`pinprick data get` gets a dataset"
        )
    page.write(out)
    if json:
        print_json({"file": str(out), **page.numbers()})
    else:
        typer.echo(str(out))
    if open_it:
        import webbrowser

        webbrowser.open(out.absolute().as_uri())
