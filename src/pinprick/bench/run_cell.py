"""Run one cell: attack its images, ask its victims, and give its rows.

Images are attacked in batches of the cell's size. A batch that fails keeps its error as its result,
and the others go on. Where a victim fails, the rows lack the predictions of victims and say why.
"""

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import torch

from pinprick import __version__
from pinprick.arithmetic import arithmetic
from pinprick.attacks.build import build
from pinprick.attacks.card import Attack
from pinprick.bench.cache import Cache, LabelledImages
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import Origin
from pinprick.bench.extra import needed
from pinprick.bench.own_code_hash import own_code_hash
from pinprick.bench.rows import error_table, to_table
from pinprick.errors import BadInput, PinprickError, one_line
from pinprick.goal import least_likely
from pinprick.jobs.device import device_and_versions
from pinprick.model import Classifier
from pinprick.result import AttackResult, join
from pinprick.run import attack_batches, logits_or_nan
from pinprick.speed import ModelPasses
from pinprick.threads import limited_threads
from pinprick.types import Images, Labels

if TYPE_CHECKING:
    import pyarrow as pa


def run_cell(cell: Cell, loaded: Cache | None = None) -> "tuple[pa.Table, Origin]":
    """The rows of a cell, and where they come from.

    An attack or model that fails gives error rows. ``BadInput`` where the cell cannot be run here:
    no GPU, another revision of the attack, other weights or other images.

    Args:
        cell: The cell.
        loaded: Models and images that are loaded already.
    """
    pa = needed("pyarrow")
    cache, begin = loaded or Cache(), time.perf_counter()
    with limited_threads(cell.threads), arithmetic(cell.precision):
        attack = attack_of(cell)
        model, victims = cache.model_of(cell), cache.victims_of(cell)
        given = cache.images_of(cell)
        tables, peaks = [], [0]
        with ModelPasses(model, cell.speed) as passes:
            for start in range(0, len(cell), cell.batch_size):
                rows = slice(start, start + cell.batch_size)
                part = LabelledImages(given.images[rows], given.labels[rows], given.ids[rows])
                indices = range(cell.first + start, cell.first + start + len(part.labels))
                try:
                    result = _attack(cell, attack, passes, part)
                    result = replace(result, ids=torch.tensor(indices))
                    judged, judged_clean, victim_error = _judge(cell, victims, result)
                    tables.append(
                        to_table(
                            result,
                            cell.key,
                            victims=judged,
                            victims_clean=judged_clean,
                            victim_error=victim_error,
                            dense=cell.dense,
                        )
                    )
                    peaks.append(result.peak_memory or 0)
                except Exception as error:  # what fails keeps its error as its result
                    tables.append(error_table(cell.key, indices, _words(error)))
        device = str(device_and_versions(model)["device"])
    seconds = time.perf_counter() - begin
    peak = max(peaks) or _peak_memory()
    return pa.concat_tables(tables), _origin(device, cache.commit, seconds, peak)


def failed_cell(cell: Cell, error: str, seconds: float) -> "tuple[pa.Table, Origin]":
    """Error rows for a whole cell that could not be run."""
    table = error_table(cell.key, range(cell.first, cell.last), error)
    return table, _origin(cell.device, Cache().commit, seconds, None)


def attack_of(cell: Cell) -> Attack:
    """The attack of a cell; ``BadInput`` if this version of it is another."""
    attack = build(cell.attack)
    name, revision = attack.full_name(), attack.facts().revision
    if revision != cell.revision:
        raise BadInput(f"{name} has revision {revision} here, the cell wants {cell.revision}")
    if own_code_hash(attack) != cell.code:
        raise BadInput(f"the code of {name} is another than the cell was made for")
    return attack


def targets_of(goal: str, seed: int, logits: torch.Tensor, part: LabelledImages) -> Labels | None:
    """The target of each image; None for an untargeted goal.

    A random target is any class but the label, each equally likely. It depends on the seed and on
    the index of the image in its dataset alone.
    """
    if goal == "untargeted":
        return None
    if goal == "least_likely":
        return least_likely(logits, part.labels)
    if goal == "random":
        others = logits.shape[1] - 1
        steps = [_draw(seed, index, others) for index in part.ids.tolist()]
        return (part.labels + 1 + torch.tensor(steps)) % (others + 1)
    return torch.full_like(part.labels, int(goal.removeprefix("class ")))


def _draw(seed: int, index: int, count: int) -> int:
    digest = hashlib.sha256(f"target {seed} {index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % max(1, count)


def _attack(cell: Cell, attack: Attack, passes: ModelPasses, part: LabelledImages) -> AttackResult:
    model = passes.model
    logits = _logits(model, part.images) if cell.goal != "untargeted" else torch.empty(0)
    results: Iterator[AttackResult] = attack_batches(
        attack,
        model,
        part.images,
        part.labels,
        targets=targets_of(cell.goal, cell.seed, logits, part),
        seed=cell.seed,
        ids=part.ids,
        batch_size=cell.batch_size,
        max_forwards=cell.max_forwards,
        max_backwards=cell.max_backwards,
        max_passes=cell.max_passes,
        trace=True,
        speed=passes,
    )
    return join(list(results))


def _judge(
    cell: Cell, victims: Sequence[Classifier], result: AttackResult
) -> tuple[list[Labels], list[Labels], str]:
    """Predictions of the victims for adversarial and clean images; why not, if one fails."""
    adversarial, clean = [], []
    for (name, _), victim in zip(cell.victims, victims, strict=True):
        try:
            adversarial.append(predictions(victim, result.adversarial))
            clean.append(predictions(victim, result.images))
        except Exception as error:  # the rows of the attack stay
            return [], [], f"{name}: {_words(error)}"
    return adversarial, clean, ""


def _logits(model: Classifier, images: Images) -> torch.Tensor:
    with model.frozen(), torch.no_grad():
        return logits_or_nan(model, images.to(model.device or images.device))[0].cpu()


def predictions(victim: Classifier, images: Images) -> Labels:
    """The classes that a victim predicts, on the CPU."""
    return _logits(victim, images).argmax(dim=1)


def _words(error: Exception) -> str:
    kind = "" if isinstance(error, PinprickError) else f"{type(error).__name__}: "
    return f"{kind}{one_line(error)}"


def _origin(device: str, commit: str, seconds: float, peak: int | None) -> Origin:
    return Origin(
        version=__version__,
        commit=commit,
        torch=torch.__version__,
        device=device,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        peak_memory=peak,
    )


def _peak_memory() -> int | None:
    """Peak memory of this process in bytes; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
