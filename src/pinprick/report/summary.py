"""The summary per attack: what a paper's table holds, as text, Markdown, LaTeX or CSV."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pinprick.metrics.outcomes import Outcomes
from pinprick.metrics.paired_attacks import PairedTest, compare_pairs
from pinprick.metrics.summary_row import SummaryRow, summarise_runs
from pinprick.metrics.wrong_before import many_wrong
from pinprick.report.csv_text import csv_text
from pinprick.report.kept_small import KeptSmall, kept_small
from pinprick.report.row import plain
from pinprick.report.summary_tables import explain_tables, needed_table, rates_table, tests_table
from pinprick.report.text_table import TextTable, fill
from pinprick.report.words import goal_words, with_goal
from pinprick.result import AttackResult
from pinprick.results_by_name import Results, by_name, same_images

Format = Literal["text", "markdown", "latex", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, repr=False)
class Summary:
    """One row per attack, and the paired tests between attacks.

    Attributes:
        rows: The numbers per attack.
        pairs: The tests of every two attacks; empty unless all are on the same images.
        goal: The goal of all attacks, as in "target two"; empty if it is untargeted.
    """

    rows: tuple[SummaryRow, ...]
    pairs: tuple[PairedTest, ...] = ()
    goal: str = ""

    def text(self) -> str:
        """Tables for reading, and what they mean."""
        return self._blocks([table.text() for table in self.tables()], fill)

    def markdown(self) -> str:
        return self._blocks([table.markdown() for table in self.tables()], str)

    def latex(self) -> str:
        """One ``tabular`` per table, which needs the package booktabs; the rest is comments."""
        return self._blocks([table.latex() for table in self.tables()], "% {}".format)

    def csv(self) -> str:
        """The rows with every number in full; intervals are columns ``_low`` and ``_high``."""
        return csv_text([vars(row) for row in self.rows])

    def formatted(self, form: Format) -> str:
        """The summary in one of the formats, by name."""
        text: str = getattr(self, form)()
        return text

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_markdown_(self) -> str:
        """For notebooks."""
        return self.markdown()

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it: infinite and undefined numbers are None."""
        return {
            "goal": self.goal,
            "attacks": [plain(row) for row in self.rows],
            "pairs": [plain(pair) for pair in self.pairs],
        }

    @property
    def warning(self) -> str:
        """A sentence if many images were wrong before the attack; otherwise empty text."""
        worst = max(self.rows, key=lambda row: row.wrong / max(1, row.images))
        return many_wrong(worst.wrong, worst.images)

    def tables(self) -> list[TextTable]:
        """Fooling rate and cost; needed pixels; needed elements; paired tests, if any."""
        rows = self.rows
        tables = [rates_table(rows), needed_table(rows, "pixels"), needed_table(rows, "elements")]
        tables += [tests_table(self.pairs)] if self.pairs else []
        return [replace(table, caption=with_goal(table.caption, self.goal)) for table in tables]

    def _blocks(self, tables: list[str], sentence: Callable[[str], str]) -> str:
        return "\n\n".join([*tables, sentence(explain_tables(self.rows, self.pairs))])


def summarise(results: Results) -> Summary:
    """The summary of one or several attacks.

    Statistics are over images that were classified correctly before the attack. Warns if more than
    20 % of the images were not.

    Args:
        results: One result; several by name, each a result or a list with one per seed; or a plain
            list, in which results of the same attack are its seeds.
    """
    named = by_name(results)
    models = {name: runs[0].model for name, runs in named.items()}
    paired = same_images([runs[0] for runs in named.values()])
    outcomes = {name: [_of_result(run) for run in runs] for name, runs in named.items()}
    kept = {
        name: kept_small(runs[0].attack, grey=runs[0].images.shape[1] == 1)
        for name, runs in named.items()
    }
    goals = {_goal(run) for runs in named.values() for run in runs}
    goal = goals.pop() if len(goals) == 1 else "goals that differ by attack"
    summary = summarise_outcomes(outcomes, models, {}, kept, paired=paired, goal=goal)
    if summary.warning:
        warnings.warn(summary.warning, stacklevel=2)
    return summary


def summarise_outcomes(
    outcomes: Mapping[str, Sequence[Outcomes]],
    models: Mapping[str, str],
    settings: Mapping[str, str],
    kept: Mapping[str, KeptSmall],
    *,
    paired: bool,
    goal: str = "",
) -> Summary:
    """The summary of what was measured, by the name of each attack.

    Args:
        outcomes: One entry per seed.
        models: The name of the model.
        settings: Settings of the attack, as text, where known.
        kept: What the attack keeps small.
        paired: Whether all runs are of the same images.
        goal: As in ``Summary``.
    """
    rows = (
        summarise_runs(
            name,
            models[name],
            runs,
            settings=settings.get(name, ""),
            unit=kept[name].unit,
            fixed_k=kept[name].fixed_k,
        )
        for name, runs in outcomes.items()
    )
    return Summary(tuple(rows), tuple(compare_pairs(outcomes)) if paired else (), goal)


def _goal(result: AttackResult) -> str:
    targets = result.goal.targets
    return goal_words([] if targets is None else [f"class {one}" for one in targets.tolist()])


def _of_result(result: AttackResult) -> Outcomes:
    return Outcomes(
        correct=result.correct.cpu().numpy(),
        answered=result.clean_logits.isfinite().all(dim=1).cpu().numpy(),
        attacked=~result.skipped.cpu().numpy(),
        pixels=result.needed_pixels.cpu().numpy(),
        elements=result.needed_elements.cpu().numpy(),
        forwards=result.forwards.cpu().numpy(),
        backwards=result.backwards.cpu().numpy(),
        seconds=result.seconds,
    )
