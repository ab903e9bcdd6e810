"""A job under several seeds: folders, failures, and seeds that have finished before."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from report.test_document_summary import image, result

from pinprick.data.pictures import Unreadable
from pinprick.errors import BadInput, NoAnswer, PinprickError, Stopped
from pinprick.jobs.attack_group import RunOptions
from pinprick.jobs.seeds import run_seeds


@dataclass(frozen=True)
class Done:
    """What a job gave."""

    document: dict[str, Any]
    failure: PinprickError | None = None
    unreadable: tuple[Unreadable, ...] = ()


class Job:
    """Writes the document of its seed; fails or raises at the seeds it is told to."""

    def __init__(
        self,
        *,
        fails: int | None = None,
        raises: int | None = None,
        error: BaseException | None = None,
        model: str | None = None,
    ) -> None:
        self.fails, self.raises, self.model = fails, raises, model
        self.error = error or NoAnswer("the service is down")
        self.ran: list[tuple[int, str]] = []
        self.threads: list[int | None] = []

    def __call__(self, run: RunOptions, folder: Path) -> Done:
        seed = run.seed
        self.threads.append(run.threads)
        self.ran.append((seed, folder.name))
        if seed == self.raises:
            raise self.error
        failed = seed == self.fails
        document = {**result(image(seed + 1), image(9), seed=seed), "complete": not failed}
        document["threads"] = run.threads or 3  # as measured
        document["model"] = self.model or document["model"]
        folder.mkdir(exist_ok=True)
        (folder / "result.json").write_text(json.dumps(document))
        return Done(document, NoAnswer("no answer") if failed else None)


def test_one_seed_works_in_the_folder_itself(tmp_path: Path) -> None:
    job = Job()
    runs = run_seeds([4], tmp_path / "out", "result.json", job)
    assert job.ran == [(4, "out")]
    assert runs.summary.rows[0].seeds == 1
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["seeds"] == [4]


def test_several_seeds_have_a_folder_each(tmp_path: Path) -> None:
    job = Job()
    runs = run_seeds([0, 2], tmp_path / "out", "result.json", job)
    assert job.ran == [(0, "seed-0"), (2, "seed-2")]
    assert runs.summary.rows[0].mean_pixels.value == (5 + 6) / 2
    assert runs.failure is None


def test_threads_are_measured_once_for_all_seeds(tmp_path: Path) -> None:
    job, given = Job(), Job()
    run_seeds([0, 1, 2], tmp_path / "out", "result.json", job)
    run_seeds([0, 1], tmp_path / "given", "result.json", given, run=RunOptions(threads=2))
    assert (job.threads, given.threads) == ([None, 3, 3], [2, 2])


def test_a_failure_ends_the_run_and_what_was_found_is_summarised(tmp_path: Path) -> None:
    job = Job(fails=1)
    runs = run_seeds([0, 1, 2], tmp_path, "result.json", job)
    assert [seed for seed, _ in job.ran] == [0, 1]
    assert str(runs.failure) == "no answer"
    assert runs.summary.rows[0].seeds == 2


def test_an_error_in_a_later_seed_keeps_the_earlier_ones(tmp_path: Path) -> None:
    runs = run_seeds([0, 1, 2], tmp_path, "result.json", Job(raises=1))
    assert str(runs.failure) == "the service is down"
    assert runs.summary.rows[0].seeds == 1
    with pytest.raises(NoAnswer, match="is down"):
        run_seeds([1, 2], tmp_path, "result.json", Job(raises=1))


def test_seeds_that_have_finished_are_read_where_the_run_is_resumed(tmp_path: Path) -> None:
    whole = run_seeds([0, 1, 2], tmp_path / "whole", "result.json", Job())
    run_seeds([0, 1, 2], tmp_path / "out", "result.json", Job(fails=1))
    job = Job()
    runs = run_seeds([0, 1, 2], tmp_path / "out", "result.json", job, resume=True)
    assert [seed for seed, _ in job.ran] == [1, 2]
    assert runs.summary.text() == whole.summary.text()
    (tmp_path / "out" / "seed-0" / "result.json").write_text("{")
    run_seeds([0, 1, 2], tmp_path / "out", "result.json", job, resume=True)
    assert [seed for seed, _ in job.ran] == [1, 2, 0]


def test_the_summary_says_whether_all_seeds_have_finished(tmp_path: Path) -> None:
    for job, complete in ((Job(fails=1), False), (Job(raises=1), False), (Job(), True)):
        run_seeds([0, 1], tmp_path, "result.json", job)
        assert json.loads((tmp_path / "summary.json").read_text())["complete"] is complete
    job = Job()
    runs = run_seeds([0, 1], tmp_path, "result.json", job, resume=True)
    assert (job.ran, runs.outcomes, len(runs.documents)) == ([], [], 2)


def test_files_that_were_left_out_of_a_finished_run_are_read_from_it(tmp_path: Path) -> None:
    run_seeds([0], tmp_path, "result.json", Job())
    path = tmp_path / "result.json"
    left_out = [{"path": "a.txt", "reason": "not a picture"}]
    path.write_text(json.dumps({**json.loads(path.read_text()), "unreadable": left_out}))
    runs = run_seeds([0], tmp_path, "result.json", Job(), resume=True)
    assert runs.unreadable == [Unreadable(Path("a.txt"), "not a picture")]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Stopped("nothing is saved")])
def test_after_a_stop_at_the_start_of_a_seed_the_earlier_ones_can_be_resumed(
    tmp_path: Path, error: BaseException
) -> None:
    runs = run_seeds([0, 1], tmp_path, "result.json", Job(raises=1, error=error))
    assert isinstance(runs.failure, Stopped)
    assert runs.failure.resumable
    assert str(runs.failure).startswith("stopped before the first batch of seed 1 was finished; ")
    with pytest.raises(type(error)):
        run_seeds([1, 2], tmp_path / "other", "result.json", Job(raises=1, error=error))


def test_a_stopped_seed_is_refused_before_the_others_are_run_again(tmp_path: Path) -> None:
    batch = tmp_path / "seed-1" / "unfinished" / "part-0" / "batch-00000.safetensors"
    batch.parent.mkdir(parents=True)
    batch.touch()
    job = Job()
    with pytest.raises(BadInput, match="seed-1 has 1 finished batch of a run that was stopped"):
        run_seeds([0, 1], tmp_path, "result.json", job)
    assert job.ran == []


def test_seeds_of_another_run_are_refused(tmp_path: Path) -> None:
    run_seeds([0, 1], tmp_path, "result.json", Job(fails=1))
    with pytest.raises(BadInput, match=r"seed 0 has another model than seed 1 in .*--no-resume"):
        run_seeds([0, 1], tmp_path, "result.json", Job(model="other"), resume=True)
