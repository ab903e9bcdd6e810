"""``pinprick explain``: show what each changed pixel of an attack or a saved result does."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import (
    Console,
    end,
    label_words,
    print_json,
    print_label_note,
    print_table,
)
from pinprick.errors import BadInput

if TYPE_CHECKING:
    from pinprick.explain.noise.explanation import Explanation
    from pinprick.jobs.explain_batches import ExplainOutcome
    from pinprick.jobs.explain_files import ExplainedPicture

# Columns and their widths: with 3 between columns and 1 at the edges, a table has 100 columns.
_ATTACKED = (("picture", 18), ("label", 18), ("before", 18), ("after", 18), ("outcome", 14))
_EXPLAINED = (
    ("picture", 18),
    (">pixels", 12),
    (">groups", 6),
    (">obscuring", 9),
    (">leading", 7),
    ("kinds of groups", 21),
    (">not\nneeded", 7),
)
_LINES = 40  # a longer table is cut


def main(
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULT] [IMAGES]",
            help="Picture files or folders of them; by default the photographs of the demo. Or a "
            "file that `pinprick attack --save` wrote, which is explained without an attack.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"The model; `pinprick models` lists them. By default {options.DEFAULT_MODEL}, or "
            "the model of RESULT.",
            show_default=False,
        ),
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The attack; `pinprick attacks` lists them. One of yours goes by "
            f"package.module:Class or file.py:Class. By default {options.DEFAULT_ATTACK}, and none "
            "with RESULT.",
            show_default=False,
        ),
    ] = None,
    option: options.AttackOptions = None,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    labels_by_number: options.LabelsByNumber = False,
    target: options.Target = None,
    mask: options.Mask = None,
    grouping: Annotated[
        str | None,
        typer.Option(
            metavar="connected|pixels",
            help="Explain connected groups of pixels, or single pixels; more than 32 of these are "
            "joined by position. By default connected for attacks that count pixels or elements.",
            show_default=False,
        ),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The layer of the maps, by its name in the network; none for no maps. By default "
            "the last layer that is fine enough.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="auto|gradcam|layercam",
            help="The method of the maps; auto is LayerCAM up to 64 pixels per side.",
        ),
    ] = "auto",
    error: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SHARE",
            help="Largest standard error of a sampled effect, as a share of the margin change. "
            "Effects of up to 8 groups are exact.",
        ),
    ] = 0.05,
    max_pairs: Annotated[
        int,
        typer.Option(
            min=2,
            metavar="COUNT",
            help="Sample at most COUNT pairs of orders per group. Sampling stops earlier once no "
            "label is undecided.",
        ),
    ] = 256,
    polish: Annotated[
        bool | None,
        typer.Option(
            "--polish/--no-polish",
            help="First put back every changed pixel that is not needed; the default if the attack "
            "counts pixels or elements.",
            show_default=False,
        ),
    ] = None,
    figures: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="COUNT",
            help="Draw figures of at most COUNT images, 0 for none. By default of all pictures, "
            "and of 8 images of --data, which are sampled with the seed.",
        ),
    ] = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    max_forwards: options.MaxForwards = None,
    max_backwards: options.MaxBackwards = None,
    max_passes: options.MaxPasses = None,
    max_seconds: options.MaxSeconds = None,
    seed: options.Seed = 0,
    batch_size: options.BatchSize = None,
    threads: options.Threads = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Show what each changed pixel of an attack does.

    Obscuring pixels lower the score of the true class. Leading pixels raise that of another class.
    Prints a table. Writes to a folder: per picture a figure with maps of both classes, a figure
    with the effects of each group of pixels, and explanation.json with every number. With --data
    it also prints shares over all images.

    Attacks that can count pixels do so here, unless --option sets unit. The attack pinprick has
    effort=fast, unless there is a --target, or --option sets effort. Pixels that are not needed are
    put back before anything is explained.

    With RESULT nothing is attacked. The model must give the saved logits. Pictures or --data after
    RESULT give the names of the images, and must be those that were attacked.

    The exit status is 0 when all is done. It is 2 when something needs fixing, such as a file that
    is no picture, or a service that stops answering; what was found is shown all the same.
    """
    from pinprick.attacks.build import build, with_unit
    from pinprick.jobs.attack_group import RunOptions
    from pinprick.jobs.explain import explain_pictures
    from pinprick.jobs.explain_saved import explain_saved

    console = Console(quiet=quiet)
    saved, images = _split_off_result(images or [])
    source = options.read_source(
        images, data, root, limit, label, target, mask=mask, by_number=labels_by_number
    )
    if saved is not None:
        _refuse_given(
            saved,
            {
                "--attack": attack,
                "--option": option,
                "--label": label,
                "--target": target,
                "--mask": mask,
                "--max-forwards": max_forwards,
                "--max-backwards": max_backwards,
                "--max-passes": max_passes,
                "--max-seconds": max_seconds,
                "--batch-size": batch_size,
            },
        )
        outcome = explain_saved(
            saved,
            out,
            model=model,
            source=source if images or data is not None else None,
            seed=seed,
            threads=threads,
            grouping=grouping,
            error=error,
            max_pairs=max_pairs,
            polish=polish,
            layer=layer,
            method=method,
            figures=figures,
            device=device,
            trust=trust,
            progress=console,
        )
    else:
        name = attack or options.DEFAULT_ATTACK
        spec = options.read_attack(name, option or [], quick=target is None)
        outcome = explain_pictures(
            build(spec) if "unit" in spec else with_unit(build(spec), "pixels"),
            model or options.DEFAULT_MODEL,
            source,
            out,
            run=RunOptions(
                seed=seed,
                batch_size=batch_size,
                max_forwards=max_forwards,
                max_backwards=max_backwards,
                max_passes=max_passes,
                max_seconds=max_seconds,
                threads=threads,
            ),
            grouping=grouping,
            error=error,
            max_pairs=max_pairs,
            polish=polish,
            layer=layer,
            method=method,
            figures=figures,
            device=device,
            trust=trust,
            progress=console,
        )
    if json:
        print_json(outcome.document)
    else:
        _print(outcome)
    drawn = any(picture.figure is not None for picture in outcome.pictures)
    files = "figures and explanation.json are" if drawn else "explanation.json is"
    console.remark(f"{files} in {out}")
    end(outcome.failure, outcome.unreadable)


def _split_off_result(paths: list[Path]) -> tuple[Path | None, list[Path]]:
    """The saved result among the paths, if there is one, and the other paths."""
    from pinprick.result_file import is_result

    saved = [path for path in paths if path.suffix == ".safetensors" or is_result(path)]
    if len(saved) > 1:
        raise BadInput(f"explain takes one saved result, got {', '.join(map(str, saved))}")
    return (saved[0] if saved else None), [path for path in paths if path not in saved]


def _refuse_given(saved: Path, attacking: Mapping[str, object]) -> None:
    """Raise ``BadInput`` where an option of an attack is given for a saved result."""
    for name, value in attacking.items():
        if value not in (None, []):
            raise BadInput(f"{saved} is explained as it is, without an attack; leave {name} out")


def _print(outcome: "ExplainOutcome") -> None:
    """What the attack did, what the groups do, and totals over a dataset."""
    from pinprick.report.totals_text import totals_text
    from pinprick.report.words import goal_words, with_goal

    pictures = outcome.pictures
    typer.echo(with_goal(outcome.title, goal_words(one.row.target_name for one in pictures)))
    _print_fitted(_ATTACKED, [_attack_cells(picture) for picture in pictures])
    correct = [picture.row for picture in pictures if picture.row.correct]
    fooled = sum(row.success for row in correct)
    typer.echo(f"fooled {fooled} of {len(correct)} images that were classified correctly")
    print_label_note([picture.record for picture in pictures])
    _print_fitted(_EXPLAINED, [_group_cells(picture) for picture in pictures])
    typer.echo(
        "obscuring: fall of the true class's score; leading: rise of the other class's score"
    )
    typer.echo("scores are logits minus their mean")
    typer.echo("not needed: pixels that can be put back alone; fewer other pixels may fool, too")
    grey = all(
        one.row.l0_elements_percent == one.row.l0_pixels_percent for one in pictures
    )  # then both units agree
    if outcome.document["unit"] == "elements" and not grey:
        typer.echo(f"{outcome.document['attack']['name']} minimises elements, not pixels")
    polished = _polish_words([picture.explanation for picture in pictures])
    if polished:
        typer.echo(polished)
    for part in () if outcome.totals is None else totals_text(outcome.totals):
        if isinstance(part, str):
            typer.echo(part)
        else:
            print_table(part.columns, part.rows)


def _print_fitted(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[str]]) -> None:
    from pinprick.report.words import fitted

    print_table(
        [name for name, _ in columns],
        [
            [fitted(cell, width) for cell, (_, width) in zip(row, columns, strict=True)]
            for row in rows[:_LINES]
        ],
    )
    if len(rows) > _LINES:
        typer.echo(f"{len(rows) - _LINES} more are in explanation.json")


def _attack_cells(picture: "ExplainedPicture") -> tuple[str, ...]:
    from pinprick.report.words import cut, outcome_words, prediction_words

    row = picture.row
    failed = "failed: " if picture.explanation.status == "failed" else ""
    return (
        cut(picture.record.name, 18),
        label_words(picture.record),
        prediction_words(row.clean),
        prediction_words(row.adversarial),
        f"{failed}{outcome_words(row)}",
    )


def _group_cells(picture: "ExplainedPicture") -> tuple[str, ...]:
    from pinprick.explain.noise.labels import LABELS
    from pinprick.report.words import FIXED, cut, share, signed

    row, explanation = picture.row, picture.explanation
    kinds = Counter(group.shapley.label for group in explanation.groups)
    effects = (
        (signed(explanation.obscuring), signed(explanation.leading))
        if explanation.groups
        else ("", "")
    )
    return (
        cut(picture.record.name, 18),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)})",
        str(len(explanation.groups)),
        *effects,
        ", ".join(f"{kinds[name]}{FIXED}{name}" for name in LABELS if kinds[name]),
        _spare_words(explanation),
    )


def _spare_words(explanation: "Explanation") -> str:
    """The number of changed pixels that are not needed, as far as it is known."""
    if explanation.spare_pixels is not None:
        return str(explanation.spare_pixels or "none")
    most = explanation.most_spare_pixels
    return "" if most is None else f"at most {most}"


def _polish_words(explanations: "Sequence[Explanation]") -> str:
    """Whether polishing finished; empty if nothing was polished."""
    from pinprick.explain.explain_result import POLISH_PASSES

    polished = [one for one in explanations if one.settled is not None]
    cut_off = [one for one in polished if not one.settled]
    if not cut_off:
        return f"polishing finished: n = {len(polished)} images" if polished else ""
    most = max(one.most_spare_pixels or 0 for one in cut_off)
    rest = f"at most {most} pixels are not needed" if most else "each changed pixel is needed"
    return (
        f"polishing stopped after {POLISH_PASSES} forward passes in {len(cut_off)} of "
        f"{len(polished)} images: {rest}"
    )
