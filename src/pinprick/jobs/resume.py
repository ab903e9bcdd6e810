"""A run that may be stopped: where its finished batches are, and when it may be resumed."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pinprick.attacks.build import describe
from pinprick.attacks.card import Attack
from pinprick.errors import BadInput, Stopped
from pinprick.files import write_text
from pinprick.jobs.attack_group import RunOptions
from pinprick.jobs.pictures import PictureSource
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.saved_batches import count_batches, count_images, remove_batches, saved_threads

_FOLDER = "unfinished"
_NOTE = "README.txt"
_TEXT = """\
Finished batches of a run that has not ended.
The same command with --resume reads them and attacks the rest.
This folder is removed when the run has ended.
"""


class UnfinishedRun:
    """The finished batches of a run, in the folder ``unfinished`` beside its results.

    As a context it makes the folder, and removes it at the end if the run has finished or there is
    no batch to resume from.

    Args:
        out: The folder of the results.
        document: The JSON file in it that says whether a run is complete.
        resume: True goes on with the run that was stopped, False starts again, and None refuses to
            start where a run was stopped.
        progress: Receives a remark where a run is resumed.
    """

    def __init__(
        self, out: Path, document: str, *, resume: bool | None, progress: Progress
    ) -> None:
        self.folder, self._document = out / _FOLDER, out / document
        self._resume, self._progress, self._finished = resume, progress, False
        check_not_stopped(out, resume=resume)
        if resume and not count_batches(self.folder) and is_complete(self._document):
            raise BadInput(
                f"the run in {out} has finished, its results are in {self._document}; "
                "leave --resume out to run it again"
            )

    def __enter__(self) -> "UnfinishedRun":
        found = count_batches(self.folder)
        if found and self._resume:
            self._progress.remark(f"resuming after {_batches(found)} in {self.folder}")
        else:
            self._remove()
        self.folder.mkdir(exist_ok=True)
        if not (self.folder / _NOTE).exists():
            write_text(self.folder / _NOTE, _TEXT)
        return self

    def __exit__(self, *_: object) -> None:
        if self._finished or not count_batches(self.folder):
            self._remove()

    def with_threads(self, run: RunOptions) -> RunOptions:
        """The options with as many CPU threads as the run that is resumed, unless they are given.

        A test of which number is faster might choose another one this time.
        """
        if not self._resume or run.threads is not None:
            return run
        return replace(run, threads=saved_threads(self.folder))

    def finish(self) -> None:
        """Say that all is attacked; the batches are removed at the end."""
        self._finished = True

    def has_made(self, file: Path) -> bool:
        """Whether this run wrote the file, before it was stopped or since."""
        return file.exists() and file.stat().st_mtime >= (self.folder / _NOTE).stat().st_mtime

    def remark_saved(self) -> None:
        """Say that a run that failed can be resumed, if it can."""
        if count_batches(self.folder):
            self._progress.remark(f"finished batches are in {self.folder}: --resume goes on")

    def stopped(self, done: int, total: str, save: Path | None = None) -> Stopped:
        """The error that says how much is saved.

        Args:
            done: Number of images in the files of the results.
            total: All images, as in "20 images".
            save: A further file of results.
        """
        found = count_batches(self.folder)
        if not found:
            return Stopped("stopped before the first batch was finished; nothing is saved")
        files = " and ".join(map(str, filter(None, (self._document, save))))
        images = count_images(self.folder)
        so_far = "so far" if done == images else f"of the first {done}"
        results = f", the results {so_far} in {files}" if done else ""
        return Stopped(
            f"stopped after {images} of {total}; {_batches(found)} saved in {self.folder}{results}",
            resumable=True,
        )

    def _remove(self) -> None:
        """Remove the batches; files of others in the folder stay."""
        for part in [path for path in self.folder.glob("*") if path.is_dir()]:
            remove_batches(part)
        (self.folder / _NOTE).unlink(missing_ok=True)
        with suppress(OSError):  # it is missing, or not empty
            self.folder.rmdir()


def check_not_stopped(out: Path, *, resume: bool | None) -> None:
    """Raise ``BadInput`` if a run was stopped in this folder and ``resume`` leaves open what to do.

    Args:
        out: The folder of the results.
        resume: As for ``UnfinishedRun``.
    """
    found = count_batches(out / _FOLDER)
    if found and resume is None:
        raise BadInput(
            f"{out} has {_batches(found)} of a run that was stopped: --resume goes on, "
            "--no-resume starts again, and --out names another folder"
        )


def describe_request(
    attacks: Sequence[Attack],
    model: str | Classifier,
    source: PictureSource,
    run: RunOptions,
    **others: str | None,
) -> dict[str, Any]:
    """What a run was asked for, the same under every seed, as JSON can hold it."""
    request = {
        "attacks": [describe(attack) for attack in attacks],
        "model": model if isinstance(model, str) else model.name,
        **asdict(source),
        **run.limits(),
        **({} if run.speed == "exact" else {"speed": run.speed}),
        **others,
    }
    plain: dict[str, Any] = json.loads(json.dumps(request, default=str))
    return plain


def read_finished(
    folder: Path, document: str, seed: int, request: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The document of a run that has finished in this folder; None if there is none.

    Raises ``BadInput`` if it was asked for something else.

    Args:
        folder: The folder of the results.
        document: The name of its JSON file.
        seed: The seed of this run.
        request: What this run is asked for, by ``describe_request``.
    """
    path = folder / document
    if count_batches(folder / _FOLDER) or not is_complete(path):
        return None
    found: dict[str, Any] = json.loads(path.read_bytes())
    before = {**found.get("request", {}), "seed": found.get("seed")}
    for key, new in {**request, "seed": seed}.items():
        if key in before and before[key] != new:
            raise BadInput(
                f"the finished run in {folder} has another {key.replace('_', ' ')}; "
                "leave --resume out to run all again, or name another folder with --out"
            )
    return found


def _batches(count: int) -> str:
    return f"{count} finished {'batch' if count == 1 else 'batches'}"


def is_complete(document: Path) -> bool:
    """Whether this JSON file is there and says that its run has finished."""
    try:
        return json.loads(document.read_bytes()).get("complete") is True
    except (OSError, ValueError, AttributeError, RecursionError):
        return False
