"""``pinprick attack``: attack pictures, and show what it took to fool the model."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from pinprick.jobs.attack import AttackedPicture, AttackOutcome
    from pinprick.report.row import Row

_PICTURE = ("picture", "label")
_COLUMNS = (
    "before",
    "after",
    ">pixels",
    ">elements",
    ">passes",
    ">seconds",
    "outcome",
)


def main(
    images: options.Pictures = None,
    model: options.ModelName = options.DEFAULT_MODEL,
    attack: options.AttackName = options.DEFAULT_ATTACK,
    option: options.AttackOptions = None,
    data: options.Data = None,
    root: options.Root = None,
    limit: options.Limit = None,
    label: options.Labels = None,
    labels_by_number: options.LabelsByNumber = False,
    target: options.Target = None,
    mask: options.Mask = None,
    start: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|data",
            help="Start from a file that --save wrote for the same pictures, as on another model. "
            "With --data, data starts from images of the --target class.",
        ),
    ] = None,
    figures: options.Figures = None,
    out: options.Folder = options.DEFAULT_FOLDER,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the result with all images to this file as it grows, for --start and "
            "`explain`.",
        ),
    ] = None,
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
    """Attack pictures, and show what it took to fool the model.

    Prints a table and, of several pictures, a summary with intervals. Writes to a folder: an
    adversarial PNG and a figure per picture, result.json with every number, and summary.json. With
    --seeds there is such a folder per seed, and the summary is over all seeds.

    The exit status is 0 when all is done. It is 2 when something needs fixing, such as a file that
    is no picture, or a service that stops answering; what was found is shown all the same.

    Each finished batch is saved. Ctrl-C stops: the table so far is shown, and the exit status is
    130. The same command with --resume goes on, and ends with the same result. Where the run has
    finished, --resume prints the saved summary, as in `--resume --format latex`.
    """
    from pinprick.attacks.build import build
    from pinprick.jobs.attack import attack_pictures
    from pinprick.jobs.attack_group import RunOptions
    from pinprick.jobs.resume import describe_request
    from pinprick.jobs.seeds import run_seeds
    from pinprick.speed_names import check_speed

    chosen_seeds = options.read_seeds(seed, seeds)
    options.check_format(form, json=json)
    source = options.read_source(
        images, data, root, limit, label, target, mask=mask, by_number=labels_by_number
    )
    built = build(options.read_attack(attack, option or []))
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

    def work(run: RunOptions, folder: Path) -> "AttackOutcome":
        return attack_pictures(
            built,
            model,
            source,
            folder,
            run=run,
            start=start,
            save=_save_file(save, run.seed if len(chosen_seeds) > 1 else None),
            figures=figures,
            resume=resume,
            device=device,
            trust=trust,
            progress=console,
        )

    runs = run_seeds(
        chosen_seeds,
        out,
        "result.json",
        work,
        run=run,
        request=describe_request([built], model, source, run, start=start),
        resume=resume,
        progress=console,
    )
    if not print_summary(console, runs, form, json=json):
        _print(runs.outcomes[0])
        print_summary_of_several(runs.summary)
    drawn = any(one.figure is not None for each in runs.outcomes for one in each.pictures)
    made = ["pictures", *(["figures"] if drawn else []), "result.json"]
    remark_files(console, made, out, runs, several=len(chosen_seeds) > 1)
    end(runs.failure, runs.unreadable)


def _save_file(save: Path | None, seed: int | None) -> Path | None:
    """The file of --save; of several seeds each has its own, such as ``best-seed-0.pt``."""
    if save is None or seed is None:
        return save
    return save.with_name(f"{save.stem}-seed-{seed}{save.suffix}")


def _print(outcome: "AttackOutcome") -> None:
    """The table, the fooling rate, and what holds over all pictures."""
    from pinprick.report.words import goal_words, with_goal

    rows = [picture.row for picture in outcome.pictures]
    targets = [row.target_name for row in rows]
    typer.echo(with_goal(outcome.title, goal_words(targets, outcome.document["request"]["target"])))
    differ = len(set(targets)) > 1
    print_table(
        (*_PICTURE, *(("target",) if differ else ()), *_COLUMNS),
        [_cells(picture, with_target=differ) for picture in outcome.pictures],
    )
    correct = [row for row in rows if row.correct]
    fooled = sum(row.success for row in correct)
    typer.echo(f"fooled {fooled} of {len(correct)} images that were classified correctly")
    print_seconds_note(rows)
    print_out_of_time(rows)
    _print_start(rows, outcome.document["attack"].get("started_from"))
    _print_robust_accuracy(outcome.document["robust_accuracy"])
    _print_stages(outcome.document["stages"])
    for flag in outcome.document["flags"]:
        typer.echo(f"{flag['name']}: {flag['sentence']}; {flag['advice']}")
    print_label_note([picture.record for picture in outcome.pictures])


def _cells(picture: "AttackedPicture", *, with_target: bool) -> tuple[str, ...]:
    from pinprick.report.words import prediction_words, share

    row = picture.row
    return (
        picture.record.name,
        label_words(picture.record),
        *((str(row.target_name),) if with_target else ()),
        prediction_words(row.clean),
        prediction_words(row.adversarial),
        f"{row.l0_pixels} ({share(row.l0_pixels_percent)})",
        f"{row.l0_elements} ({share(row.l0_elements_percent)})",
        f"{row.forwards} + {row.backwards}",
        f"{row.seconds:.2f}",
        _outcome(picture),
    )


def _outcome(picture: "AttackedPicture") -> str:
    """How it went, and whether the PNG on the disk still fools."""
    from pinprick.report.words import outcome_words, prediction_words

    row = picture.row
    lost = row.success and not row.skipped and not picture.reread_fools
    if lost:
        return f"fooled, but not as PNG: {prediction_words(picture.reread)}"
    return outcome_words(row)


def _print_start(rows: "list[Row]", made_by: Mapping[str, Any] | None) -> None:
    """The passes of the attack that this one started from, which the table leaves out."""
    if made_by is not None and "model" in made_by:
        spent = [row.start for row in rows if row.start is not None]
        forwards, backwards = (sum(passes) for passes in zip(*spent, strict=True))
        typer.echo(
            f"started from the result of {made_by['name']} on {made_by['model']}; its "
            f"{forwards} + {backwards} passes are not in the table"
        )


def _print_robust_accuracy(budgets: list[dict[str, Any]]) -> None:
    from pinprick.report.words import share

    if budgets:
        shares = ", ".join(
            f"{share(100 * one['withstand'] / one['images'])} at {one['budget']} {one['unit']} "
            f"({one['withstand']} of {one['images']})"
            for one in budgets
        )
        typer.echo(f"robust accuracy: {shares}")


def _print_stages(stages: dict[str, dict[str, int]]) -> None:
    """Nothing for an attack without stages."""
    if stages:
        print_table(
            ("stage", ">passes in all", ">pictures it did best on"),
            [
                (name, f"{stage['forwards']} + {stage['backwards']}", str(stage["found"]))
                for name, stage in stages.items()
            ],
        )
