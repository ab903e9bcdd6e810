"""``pinprick check``: is this model fit to be measured?"""

from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options

if TYPE_CHECKING:
    from pinprick.model import Classifier

_SEVERAL = 256  # images of a dataset, which will do


def main(
    images: options.Pictures = None,
    model: options.ModelName = options.DEFAULT_MODEL,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    eps: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Radius of PGD's ball; else that of the model's card, or 8/255.",
            show_default=False,
        ),
    ] = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """See whether a model is fit to be measured.

    Looks for what makes numbers meaningless, such as softmax outputs, random logits or zero
    gradients. Where the true classes are given, also at the accuracy, and whether a stronger PGD
    fools clearly more images than PGD with 20 steps; the same of the two figures on the model's
    card. Of a dataset the first 256 images are taken, unless --limit says otherwise. A model of
    other classes than ImageNet's is checked on pictures of yours or on --data, since the
    photographs of the demo are not for it.

    The exit status is 0 when nothing was found, and 2 when something is to be put right.
    """
    from dataclasses import asdict

    from pinprick.checks import check_card, check_model
    from pinprick.cli.data_inputs import gather, open_data, read_data
    from pinprick.cli.folder import as_json
    from pinprick.cli.inputs import read_inputs
    from pinprick.cli.place import load_on
    from pinprick.errors import BadInput
    from pinprick.zoo import card_of

    if eps is not None and not 0 < eps <= 1:
        raise BadInput(f"--eps must be above 0 and at most 1, got {eps:g}")
    options.check_data_options(data, images, label, limit)
    asked = None if data is None else open_data(data, root=root, limit=limit or _SEVERAL)
    classifier = load_on(model, device, trust=trust)
    if asked is not None:
        inputs = gather(read_data(asked.data, classifier, quiet=quiet))
    else:
        if not images:
            _refuse_other_classes(classifier)
        inputs = read_inputs(images or [], classifier, labels=label or [], quiet=quiet)
    labels = inputs.labels if "model" not in inputs.label_from else None
    card = card_of(model)
    facts = {} if card is None else card.facts
    radius = eps or (facts.get("pgd") or {}).get("eps", 8 / 255)
    flags = check_model(classifier, inputs.images, labels, eps=radius)
    known = {flag.name for flag in flags}
    flags += [flag for flag in check_card(facts) if flag.name not in known]
    if json:
        document = {
            "model": classifier.name,
            "data": None if asked is None else asked.words,
            "images": len(inputs.photos),
            "flags": [asdict(flag) for flag in flags],
            "unreadable": inputs.unreadable_files(),
        }
        typer.echo(as_json(document))
    elif flags:
        for flag in flags:
            typer.echo(f"{flag.name}: {flag.sentence}; {flag.advice}")
    else:
        count = len(inputs.photos)
        seen = f"{count} image{'s' if count != 1 else ''}"
        typer.echo(f"{classifier.name}: nothing to put right, seen on {seen}")
    if flags or inputs.unreadable:
        raise typer.Exit(2)


def _refuse_other_classes(model: "Classifier") -> None:
    """Raise ``BadInput`` where the photographs of the demo show none of the model's classes."""
    from pinprick.data.sets.photographs import read_photographs
    from pinprick.errors import BadInput

    shown = {photo.record.label_name for photo in read_photographs()}
    if model.classes and not shown & set(model.classes):
        some = ", ".join(model.classes[:3])
        raise BadInput(
            f"{model.name} has the classes {some}, …, which the photographs of the demo do not "
            "show; give pictures of its classes, or --data NAME ('pinprick data list' has names)"
        )
