"""Run an attack on a group of pictures, within the time that is left."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from pinprick.attacks.card import Attack
from pinprick.checks import ADVICE, softmax_outputs
from pinprick.data.pictures import PictureRecord
from pinprick.jobs.batch_size import choose_batch_size
from pinprick.jobs.pictures import PictureGroup
from pinprick.jobs.progress import Progress
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.run import TimeLeft, attack_batches
from pinprick.speed import ModelPasses
from pinprick.speed_names import Speed
from pinprick.threads import choose_threads
from pinprick.types import Images, Logits


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How attacks are run; names and meaning as in ``run_attack``.

    ``threads`` is the number of CPU threads; None to measure which suits the model.
    """

    seed: int = 0
    batch_size: int | None = None
    max_forwards: int | None = None
    max_backwards: int | None = None
    max_passes: int | None = None
    max_seconds: float | None = None
    trace: bool = False
    threads: int | None = None
    speed: Speed = "exact"

    def limits(self) -> dict[str, float | int | None]:
        return {
            "max_forwards": self.max_forwards,
            "max_backwards": self.max_backwards,
            "max_passes": self.max_passes,
            "max_seconds": self.max_seconds,
        }


def settle_threads(
    run: RunOptions, model: Classifier, images: Images, progress: Progress
) -> RunOptions:
    """Set the number of CPU threads, once per job; the options with that number.

    The caller must be decorated with ``restored_threads()``, so that the number ends with the job.
    """
    chosen = choose_threads(model, images, count=run.threads, batch_size=run.batch_size)
    if chosen.count != chosen.instead_of:
        torch.set_num_threads(chosen.count)
        if run.threads is None:
            progress.remark(f"{chosen}; --threads {chosen.count} leaves out this test")
    return replace(run, threads=chosen.count)


def remark_probabilities(model: Classifier, logits: Logits, progress: Progress) -> None:
    """Remark on outputs that are probabilities, of which a softmax is taken once more."""
    if found := softmax_outputs(model, logits[logits.isfinite().all(dim=1)]):
        progress.remark(f"{model.name}: {found}; {ADVICE['softmax_outputs']}")


def remark_speed(result: AttackResult, progress: Progress, *, earlier: str = "") -> str:
    """Remark on what makes the attack slower, once; the remark for the next call."""
    speed = result.speed or {}
    remark = str(speed.get("remark", ""))
    if remark and remark != earlier:
        kept = speed["speed"] == "exact"
        what = "the attack is slower" if kept else f"{speed['speed']} speed was not kept"
        progress.remark(f"{what}: {remark}")
    return remark or earlier


def attack_group(
    attack: Attack,
    model: Classifier,
    group: PictureGroup,
    run: RunOptions,
    time_left: TimeLeft,
    start: AttackResult | Tensor | None = None,
    folder: Path | None = None,
    passes: ModelPasses | None = None,
) -> Iterator[tuple[tuple[PictureRecord, ...], AttackResult]]:
    """The records and the result of each batch. All input is checked before the first starts.

    Finished batches are saved in ``folder``, and read from there when a run is resumed. Several
    groups and attacks share the recordings of ``passes``.
    """
    results = attack_batches(
        attack,
        model,
        group.images,
        group.labels,
        targets=group.targets,
        allowed=group.allowed,
        seed=run.seed,
        ids=group.ids,
        batch_size=choose_batch_size(
            run.batch_size,
            model,
            group.images,
            attack.facts(),
            max_forwards=run.max_forwards,
            max_backwards=run.max_backwards,
            max_passes=run.max_passes,
        ),
        start=start,
        trace=run.trace,
        max_forwards=run.max_forwards,
        max_backwards=run.max_backwards,
        max_passes=run.max_passes,
        max_seconds=time_left,
        folder=folder,
        speed=run.speed if passes is None else passes,
    )
    return _with_records(results, group.records)


def _with_records(
    results: Iterator[AttackResult], records: tuple[PictureRecord, ...]
) -> Iterator[tuple[tuple[PictureRecord, ...], AttackResult]]:
    done = 0
    for result in results:
        yield records[done : done + len(result)], result
        done += len(result)
