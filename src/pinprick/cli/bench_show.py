"""``pinprick bench show``: the leaderboard of a store."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinprick.cli.bench_where import Where, read_where, split_values
from pinprick.cli.console import Console
from pinprick.errors import BadInput, counted

if TYPE_CHECKING:
    from pinprick.bench.store import Store


class UnitName(StrEnum):
    """What is counted."""

    PIXELS = "pixels"
    ELEMENTS = "elements"


class Board(StrEnum):
    """What --csv prints."""

    ATTACKS = "attacks"
    MODELS = "models"
    DETAILS = "details"
    TRANSFER = "transfer"


def main(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The folder of finished cells.")],
    unit: Annotated[
        UnitName, typer.Option(metavar="pixels|elements", help="What is counted.")
    ] = UnitName.PIXELS,
    k: Annotated[
        int,
        typer.Option(
            "--k", metavar="COUNT", min=0, help="Rank models by robust accuracy at so many units."
        ),
    ] = 10,
    attacks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="The attacks on the boards, by name. By default all, and for models the worst "
            "case of all that are ranked.",
            show_default=False,
        ),
    ] = None,
    where: Where = None,
    details: Annotated[
        bool, typer.Option("--details", help="Add all numbers per model, and paired tests.")
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="ATTACK",
            help="Add speed-ups over this attack; implies --details.",
            show_default=False,
        ),
    ] = None,
    transfer: Annotated[
        bool, typer.Option("--transfer", help="Add the transfer matrix, where victims judged.")
    ] = False,
    trapezoid: Annotated[
        bool,
        typer.Option(
            "--trapezoid",
            help="Show also the optimality as AttackBench's code computes it, for comparison.",
        ),
    ] = False,
    best_so_far: Annotated[
        bool,
        typer.Option(
            "--best-so-far",
            help="Compare also with images that an attack saw and did not return (traced runs).",
        ),
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX, for booktabs.")] = False,
    csv: Annotated[
        Board | None,
        typer.Option(
            metavar="attacks|models|details|transfer",
            help="Print one board, the details or the transfer matrix as CSV, with every number in "
            "full.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the leaderboard of a store.

    Attacks are ranked by optimality: how near they come to the best of all attacks on every image.
    Models are ranked by robust accuracy at k under the worst case of the attacks. An attack or a
    model that lacks images is shown and not ranked. A rank is one more than the number of lines
    whose 95 % interval lies wholly above.
    """
    from pinprick.bench.store import Store
    from pinprick.report.leaderboard import leaderboard

    if markdown + latex + (csv is not None) > 1:
        raise BadInput("give one of --markdown, --latex and --csv")
    chosen = read_where(where)
    if not store.is_dir():
        raise BadInput(f"there is no store {store}; pinprick bench run makes one")
    opened = Store(store)
    read = opened.rows_and_cells(whole=best_so_far)
    _warn_of_damage(opened)
    board = leaderboard(
        *read,
        unit=unit.value,
        rank_at=k,
        attacks=None if attacks is None else split_values(attacks),
        where=chosen,
        best_so_far=best_so_far,
        trapezoid=trapezoid,
        details=details or baseline is not None or csv is Board.DETAILS,
        baseline=baseline,
        transfer=transfer or csv is Board.TRANSFER,
    )
    if transfer and not board.transfers:
        Console(quiet=False).warn("no victims judged the images: there is no transfer matrix")
    if csv is not None:
        printed = {
            Board.ATTACKS: board.csv,
            Board.MODELS: board.models_csv,
            Board.DETAILS: board.details_csv,
            Board.TRANSFER: board.transfer_csv,
        }
        typer.echo(printed[csv]())
    elif markdown or latex:
        typer.echo(board.markdown() if markdown else board.latex())
    else:
        typer.echo(board.text())


def _warn_of_damage(store: "Store") -> None:
    damaged = len(store.damaged(again=False))
    if damaged:
        are = "is" if damaged == 1 else "are"
        Console(quiet=False).warn(
            f"{counted(damaged, 'file')} {are} damaged and not read; see pinprick bench status"
        )
