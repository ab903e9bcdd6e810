"""The same job under several seeds: one folder per seed, and the summary over all of them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pinprick.data.pictures import Unreadable
from pinprick.errors import BadInput, PinprickError, Stopped
from pinprick.jobs.attack_group import RunOptions
from pinprick.jobs.output import as_json, open_out, write_json
from pinprick.jobs.progress import Progress
from pinprick.jobs.resume import check_not_stopped, read_finished
from pinprick.report.document_summary import summarise_documents
from pinprick.report.summary import Summary

_SUMMARY = "summary.json"
_SAME_SO_FAR = ("attack", "attacks", "limits", "model", "mask", "judge")  # under every seed
_SAME = (*_SAME_SO_FAR, "data")  # of a run that was stopped it names the images so far


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
        if self.outcomes:
            return self.outcomes[-1].unreadable
        listed = self.documents[-1].get("unreadable", [])
        return [Unreadable(Path(file["path"]), file["reason"]) for file in listed]


def run_seeds(
    seeds: Sequence[int],
    out: Path,
    document: str,
    work: Callable[[RunOptions, Path], One],
    *,
    run: RunOptions | None = None,
    request: Mapping[str, Any] | None = None,
    resume: bool | None = None,
    progress: Progress | None = None,
) -> SeedRuns[One]:
    """Run a job once per seed, and write summary.json to ``out``.

    A failure or Ctrl-C ends the run; what was found until then is summarised.

    Args:
        seeds: The seeds. With one seed its files go to ``out`` itself.
        out: The folder; with several seeds each has a folder in it, such as ``seed-0``.
        document: The name of the JSON file that a job writes to its folder.
        work: Runs the job with options, in a folder.
        run: The options of every seed. Where they leave the number of threads open, that of the
            first seed holds for all.
        request: What the run is asked for, by ``describe_request``. A finished seed that was asked
            for something else is refused.
        resume: True reads seeds that have finished and goes on with the others. False starts again.
            None refuses where a run was stopped.
        progress: Receives a remark per seed, and one where all have finished.
    """
    several, progress, run = len(seeds) > 1, progress or Progress(), run or RunOptions()
    folders = {seed: out / f"seed-{seed}" if several else out for seed in seeds}
    finished: dict[int, dict[str, Any]] = {}
    if several:
        open_out(out)
        for folder in folders.values():  # all of them, before the first seed takes its time
            check_not_stopped(folder, resume=resume)
    if resume:
        for seed, folder in folders.items():
            one = read_finished(folder, document, seed, request or {})
            if one is not None:
                finished[seed] = one
    if len(finished) == len(seeds):
        progress.remark(
            f"the run in {out} has finished: its saved results are shown; "
            "leave --resume out to run it again"
        )
    outcomes: list[One] = []
    documents: list[dict[str, Any]] = []
    failure: PinprickError | None = None
    for seed, folder in folders.items():
        if seed in finished:
            documents.append(finished[seed])
            continue
        if several:
            progress.remark(f"seed {seed}, {len(documents) + 1} of {len(seeds)}")
        try:
            outcome = work(replace(run, seed=seed), folder)
        except (PinprickError, KeyboardInterrupt) as error:
            if not documents:
                raise
            failure = _stopped(error, seed, out)
            break
        run = replace(run, threads=outcome.document["threads"])
        _check_same_run(finished.values(), outcome.document, folder)
        outcomes.append(outcome)
        documents.append(outcome.document)
        failure = outcome.failure
        if failure is not None:
            break
    summary = summarise_documents(documents)
    plain = {
        "format": 1,
        "complete": len(documents) == len(seeds) and all(map(_is_finished, documents)),
        "seeds": [each["seed"] for each in documents],
        **summary.plain(),
    }
    write_json(plain, out / _SUMMARY)
    return SeedRuns(outcomes=outcomes, documents=documents, summary=summary, failure=failure)


def _stopped(error: PinprickError | KeyboardInterrupt, seed: int, out: Path) -> PinprickError:
    """The error, or after Ctrl-C one that says that seeds before this one have finished."""
    if isinstance(error, KeyboardInterrupt) or (isinstance(error, Stopped) and not error.resumable):
        return Stopped(
            f"stopped before the first batch of seed {seed} was finished; the seeds before it are "
            f"in {out}",
            resumable=True,
        )
    return error


def _check_same_run(
    read: Iterable[Mapping[str, Any]], now: Mapping[str, Any], folder: Path
) -> None:
    """Raise ``BadInput`` if a seed that was read differs from this run in more than the seed."""
    for other in read:
        for key in _SAME if _is_finished(now) else _SAME_SO_FAR:
            if other.get(key) != json.loads(as_json(now.get(key))):
                raise BadInput(
                    f"seed {other['seed']} has another {key} than seed {now['seed']} in {folder}: "
                    "--no-resume runs all seeds again, and --out names another folder"
                )


def _is_finished(document: Mapping[str, Any]) -> bool:
    return document.get("complete") is True
