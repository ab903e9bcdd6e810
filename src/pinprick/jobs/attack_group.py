"""Run an attack on a group of pictures, within the time that is left."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from pinprick.attacks.card import Attack
from pinprick.data.pictures import PictureRecord
from pinprick.jobs.device import choose_batch_size
from pinprick.jobs.pictures import PictureGroup
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.run import TimeLeft, attack_batches


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How attacks are run; names and meaning as in ``run_attack``."""

    seed: int = 0
    batch_size: int | None = None
    max_forwards: int | None = None
    max_backwards: int | None = None
    max_seconds: float | None = None
    trace: bool = False

    def limits(self) -> dict[str, float | int | None]:
        return {
            "max_forwards": self.max_forwards,
            "max_backwards": self.max_backwards,
            "max_seconds": self.max_seconds,
        }


def attack_group(
    attack: Attack,
    model: Classifier,
    group: PictureGroup,
    run: RunOptions,
    time_left: TimeLeft,
    start: AttackResult | Tensor | None = None,
) -> Iterator[tuple[tuple[PictureRecord, ...], AttackResult]]:
    """The records and the result of each batch. All input is checked before the first starts."""
    results = attack_batches(
        attack,
        model,
        group.images,
        group.labels,
        targets=group.targets,
        allowed=group.allowed,
        seed=run.seed,
        ids=group.ids,
        batch_size=choose_batch_size(run.batch_size, model),
        start=start,
        trace=run.trace,
        max_forwards=run.max_forwards,
        max_backwards=run.max_backwards,
        max_seconds=time_left,
    )
    return _with_records(results, group.records)


def _with_records(
    results: Iterator[AttackResult], records: tuple[PictureRecord, ...]
) -> Iterator[tuple[tuple[PictureRecord, ...], AttackResult]]:
    done = 0
    for result in results:
        yield records[done : done + len(result)], result
        done += len(result)
