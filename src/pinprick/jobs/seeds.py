"""The same job under several seeds: one folder per seed, and the summary over all of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pinprick.data.pictures import Unreadable
from pinprick.errors import PinprickError
from pinprick.jobs.output import open_out, write_json
from pinprick.report.document_summary import summarise_documents
from pinprick.report.summary import Summary


@runtime_checkable  # shape checks look at it
class Outcome(Protocol):
    """What a job gave under one seed; names as in ``AttackOutcome``."""

    @property
    def document(self) -> dict[str, Any]: ...
    @property
    def failure(self) -> PinprickError | None: ...
    @property
    def unreadable(self) -> Sequence[Unreadable]: ...


One = TypeVar("One", bound=Outcome)


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedRuns(Generic[One]):
    """What a job gave under all seeds.

    Attributes:
        outcomes: One per seed that was run now.
        documents: One per seed, also of those that had finished before.
        summary: The summary over all seeds.
        failure: The error that ended the run early; None if all went well.
    """

    outcomes: list[One]
    documents: list[dict[str, Any]]
    summary: Summary
    failure: PinprickError | None

    @property
    def unreadable(self) -> Sequence[Unreadable]:
        """Files that were left out, the same under every seed."""
        return self.outcomes[-1].unreadable if self.outcomes else ()


def run_seeds(
    seeds: Sequence[int],
    out: Path,
    document: str,
    work: Callable[[int, Path], One],
    *,
    resume: bool | None = None,
) -> SeedRuns[One]:
    """Run a job once per seed, and write summary.json to ``out``.

    A failure ends the run; what was found until then is summarised.

    Args:
        seeds: The seeds. With one seed its files go to ``out`` itself.
        out: The folder; with several seeds each has a folder in it, such as ``seed-0``.
        document: The name of the JSON file that a job writes to its folder.
        work: Runs the job with a seed, in a folder.
        resume: Whether seeds that have finished are read instead of run.
    """
    several = len(seeds) > 1
    if several:
        open_out(out)
    outcomes: list[One] = []
    documents: list[dict[str, Any]] = []
    failure: PinprickError | None = None
    for seed in seeds:
        folder = out / f"seed-{seed}" if several else out
        done = _finished(folder / document) if several and resume else None
        if done is None:
            try:
                outcome = work(seed, folder)
            except PinprickError as error:
                if not documents:
                    raise
                failure = error
                break
            outcomes.append(outcome)
            done, failure = outcome.document, outcome.failure
        documents.append(done)
        if failure is not None:
            break
    summary = summarise_documents(documents)
    plain = {"format": 1, "seeds": [each["seed"] for each in documents], **summary.plain()}
    write_json(plain, out / "summary.json")
    return SeedRuns(outcomes=outcomes, documents=documents, summary=summary, failure=failure)


def _finished(path: Path) -> dict[str, Any] | None:
    """The document of a run that has finished; None if there is none."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and document.get("complete") is True else None
