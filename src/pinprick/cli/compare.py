"""``pinprick compare``: compare attacks on the same pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli import options
from pinprick.cli.console import (
    Console,
    end,
    label_words,
    print_label_note,
    print_out_of_time,
    print_seconds_note,
    print_summary,
    print_summary_of_several,
    print_table,
    remark_files,
)

if TYPE_CHECKING:
    from pinprick.jobs.compare import CompareOutcome
    from pinprick.report.compare_figure import Column

_LIMIT = 16  # images of a dataset by default, each of which gets a figure
_PICTURE = ("picture", "label")
_ATTACK = ("before", "attack", "after")
_COUNTS = (">pixels", ">elements", ">passes", ">seconds", "outcome")


def main(
    images: options.Pictures = None,
    attacks: Annotated[
        str,
        typer.Option(
            metavar="A,B:PRESET",
            help="Attacks by name, some under a preset; `pinprick attacks` lists them. One of "
            "yours goes by package.module:Class or file.py:Class.",
        ),
    ] = options.DEFAULT_COMPARISON,
    model: options.ModelName = options.DEFAULT_MODEL,
    judge: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Another model, whose predictions are shown."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTACK.KEY=VALUE",
            help="A setting of one attack, as in pgd.steps=20; repeatable.",
        ),
    ] = None,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    labels_by_number: options.LabelsByNumber = False,
    target: options.Target = None,
    mask: options.Mask = None,
    figures: options.Figures = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    max_forwards: options.MaxForwards = None,
    max_backwards: options.MaxBackwards = None,
    max_passes: options.MaxPasses = None,
    max_seconds: options.MaxSeconds = None,
    seed: options.Seed = 0,
    seeds: options.Seeds = None,
    batch_size: options.BatchSize = None,
    threads: options.Threads = None,
    speed: options.SpeedName = "exact",
    resume: options.Resume = None,
    device: options.Device = "auto",
    trust: options.Trust = False,
    trace: options.Trace = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    form: options.Format = None,
) -> None:
    """Compare attacks on the same pictures.

    Prints a table and, of several pictures, a summary with intervals and paired tests. Writes to a
    folder: a figure per picture with one column per attack, compare.json with every number, and
    summary.json. With --seeds there is such a folder per seed, and the summary is over all seeds.
    Of a dataset the first 16 images are used, unless --limit is given. An attack keeps elements or
    pixels small; its count of the other unit has a mark. Some attacks can do either, as with
    --option sigma_zero.unit=pixels.

    The exit status is 0 when all is done. It is 2 when something needs fixing, such as a file that
    is no picture, or a service that stops answering; what was found is shown all the same.

    Each finished batch is saved. Ctrl-C stops: the table so far is shown, and the exit status is
    130. The same command with --resume goes on, and ends with the same result. Where the run has
    finished, --resume prints the saved summary, as in `--resume --format latex`.
    """
    from pinprick.attacks.build import build
    from pinprick.jobs.attack_group import RunOptions
    from pinprick.jobs.compare import compare_attacks
    from pinprick.jobs.resume import describe_request
    from pinprick.jobs.seeds import run_seeds
    from pinprick.speed_names import check_speed

    chosen_seeds = options.read_seeds(seed, seeds)
    options.check_format(form, json=json)
    source = options.read_source(
        images,
        data,
        root,
        limit,
        label,
        target,
        usual_limit=_LIMIT,
        mask=mask,
        by_number=labels_by_number,
    )
    built = [build(spec) for spec in options.read_attacks(attacks, option or [])]
    console = Console(quiet=quiet)
    run = RunOptions(
        batch_size=batch_size,
        max_forwards=max_forwards,
        max_backwards=max_backwards,
        max_passes=max_passes,
        max_seconds=max_seconds,
        threads=threads,
        trace=trace,
        speed=check_speed(speed),
    )

    def work(run: RunOptions, folder: Path) -> "CompareOutcome":
        return compare_attacks(
            built,
            model,
            source,
            folder,
            judge=judge,
            run=run,
            figures=figures,
            resume=resume,
            device=device,
            trust=trust,
            progress=console,
        )

    runs = run_seeds(
        chosen_seeds,
        out,
        "compare.json",
        work,
        run=run,
        request=describe_request(built, model, source, run, judge=judge),
        resume=resume,
        progress=console,
    )
    if not print_summary(console, runs, form, json=json):
        _print(runs.outcomes[0])
        print_summary_of_several(runs.summary)
    drawn = any(one["figure"] for each in runs.outcomes for one in each.document["images"])
    made = [*(["figures"] if drawn else []), "compare.json"]
    remark_files(console, made, out, runs, several=len(chosen_seeds) > 1)
    end(runs.failure, runs.unreadable)


def _print(outcome: "CompareOutcome") -> None:
    """One line per picture and attack, below the goal where there are targets."""
    from pinprick.report.words import goal_words, prediction_words

    comparisons = outcome.comparisons
    targets = [column.row.target_name for one in comparisons for column in one.columns]
    if goal := goal_words(targets, outcome.document["request"]["target"]):
        typer.echo(goal)
    differ = len(set(targets)) > 1
    judged = any(comparison.judged is not None for comparison in comparisons)
    print_table(
        (
            *_PICTURE,
            *(("target",) if differ else ()),
            *_ATTACK,
            *(("judge",) if judged else ()),
            *_COUNTS,
        ),
        [
            (
                comparison.record.name,
                label_words(comparison.record),
                *((str(column.row.target_name),) if differ else ()),
                prediction_words(comparison.clean),
                *_cells(column),
            )
            for comparison in comparisons
            for column in comparison.columns
        ],
    )
    columns = [column for one in comparisons for column in one.columns]
    _print_unit_note(columns)
    print_seconds_note([column.row for column in columns])
    print_out_of_time([column.row for column in columns])
    print_label_note([comparison.record for comparison in comparisons])


def _print_unit_note(columns: "Sequence[Column]") -> None:
    """What the mark of a count means, if there is one."""
    from pinprick.report.summary_tables import UNIT_PAIRS, other_unit_note

    for other, unit in UNIT_PAIRS:
        names = list(dict.fromkeys(one.name for one in columns if one.counts_other == other))
        if names:
            typer.echo(other_unit_note(names, unit, other))


def _cells(column: "Column") -> tuple[str, ...]:
    from pinprick.report.summary_tables import OTHER_UNIT
    from pinprick.report.words import outcome_words, prediction_words, share

    row = column.row
    marks = {
        unit: OTHER_UNIT if column.counts_other == unit else "" for unit in ("pixels", "elements")
    }
    return (
        column.headed(column.name),
        prediction_words(row.adversarial),
        *(() if column.judged is None else (prediction_words(column.judged),)),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)}){marks['pixels']}",
        f"{row.l0_elements} ({share(row.l0_elements_percent)}){marks['elements']}",
        f"{row.forwards} + {row.backwards}",
        f"{row.seconds:.2f}",
        outcome_words(row),
    )
