"""``pinprick check``: check whether a model is fit to be measured."""

from typing import Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import Console, print_json

_LIMIT = 256  # images of a dataset by default, which are enough


def main(
    images: options.Pictures = None,
    model: options.ModelName = options.DEFAULT_MODEL,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    labels_by_number: options.LabelsByNumber = False,
    eps: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Radius of PGD's ball; by default that of the model's card, or 8/255.",
            show_default=False,
        ),
    ] = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Check whether a model is fit to be measured.

    Looks for what makes numbers meaningless, such as softmax outputs, random logits or zero
    gradients. If true classes are given, also checks the accuracy, and whether a stronger PGD fools
    clearly more images than PGD with 20 steps. Compares the same two figures on the model's card.
    Of a dataset the first 256 images are used, unless --limit is given. The photographs of the demo
    suit ImageNet models only; check other models on your pictures or on --data.

    The exit status is 0 when nothing was found, and 2 when something needs fixing.
    """
    from pinprick.jobs.check import check_on_pictures

    source = options.read_source(
        images, data, root, limit, label, usual_limit=_LIMIT, by_number=labels_by_number
    )
    outcome = check_on_pictures(
        model, source, eps=eps, device=device, trust=trust, progress=Console(quiet=quiet)
    )
    if json:
        print_json(outcome.plain())
    elif outcome.flags:
        for flag in outcome.flags:
            typer.echo(f"{flag.name}: {flag.sentence}; {flag.advice}")
    else:
        seen = f"{outcome.images} image{'s' if outcome.images != 1 else ''}"
        typer.echo(f"{outcome.model}: nothing to fix, checked on {seen}")
    if outcome.flags or outcome.unreadable:
        raise typer.Exit(2)
