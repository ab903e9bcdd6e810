"""``pinprick web``: attack pictures on a page in the browser."""

from typing import Annotated

import typer

from pinprick.cli import options

_PORT = 8431


def main(
    port: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, max=65535, help="The port; 0 for any free one.")
    ] = _PORT,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on. By default this machine alone can reach the page; "
            "beyond that, only with the token in the printed address.",
        ),
    ] = "127.0.0.1",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="A further model that the page may choose, such as file:PATH; may be repeated. "
            "By default those that load without a download.",
        ),
    ] = None,
    device: options.Device = "auto",
) -> None:
    """Attack pictures on a page in the browser.

    Drop a picture, choose a model and an attack, and watch the changed pixels become fewer. Then
    switch them off and on, ask why they fool the model, compare two attacks, or browse stores of
    benchmarks in this folder. Prints its address; Ctrl-C ends it.
    """
    from pinprick.web.serve import serve

    serve(
        host=host,
        port=port,
        models=model or (),
        device=device,
        show=typer.echo,
        browse=open_page,
    )
