"""The time that an attack may still take, where it is called once for each group of pictures."""

from collections.abc import Iterable, Iterator, Sequence

import typer

from pinprick.report.row import Row
from pinprick.result import AttackResult


def print_out_of_time(rows: Sequence[Row]) -> None:
    """A line on the images that --max-seconds cut short, if there are any."""
    late = [row for row in rows if row.out_of_time]
    if late:
        begun = sum(row.forwards > 0 for row in late)
        typer.echo(
            f"out of time: {begun} of {len(rows)} cut short, {len(late) - begun} not attacked; "
            "--max-seconds gives more"
        )


class TimeLeft:
    """``seconds`` are left; None for any number."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    def spend(self, batches: Iterable[AttackResult]) -> Iterator[AttackResult]:
        """The same results; the time of each is taken away."""
        for result in batches:
            if self.seconds is not None:
                self.seconds = max(0.0, self.seconds - result.seconds)
            yield result
