"""The training of a generator from start to end: resumed where it stopped, measured, saved."""

import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pinprick import __version__
from pinprick.attacks.egs_tssa import EGSTSSA
from pinprick.attacks.egs_tssa.saved_generator import (
    CARD,
    WEIGHTS,
    GeneratorCard,
    load_generator,
    read_generator_card,
    save_generator,
)
from pinprick.errors import BadInput, first_few, one_line
from pinprick.files import writing
from pinprick.metrics.wilson import wilson_interval
from pinprick.model import Classifier
from pinprick.result import join
from pinprick.run import attack_batches
from pinprick.train.checkpoint import CHECKPOINT, read_checkpoint, save_each
from pinprick.train.exam import evenly_spaced
from pinprick.train.generator_loop import GeneratorEpoch, GeneratorProgress, GeneratorTrainer
from pinprick.train.generator_plan import GeneratorPlan
from pinprick.train.job import device_name
from pinprick.train.loop import Tick
from pinprick.train.material import Material, fingerprint
from pinprick.train.plan import difference
from pinprick.zoo.weights import Store

_AT = 0.1  # share of the pixels at which the fooling rate is measured, too


@dataclass(frozen=True, eq=False)
class GeneratorJob:
    """What decides a trained generator and its measurements.

    Attributes:
        plan: How it is trained.
        model: The model that it attacks.
        material: The images.
        target: The class to reach; None for an untargeted generator.
        seed: Seed of all random numbers.
        store: How weights are stored; "float32" or "float16".
    """

    plan: GeneratorPlan
    model: Classifier
    material: Material
    target: int | None = None
    seed: int = 0
    store: Store = "float32"

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides the generator, as plain data."""
        return {
            "plan": self.plan.describe(),
            "model": self.model.digest,
            "data": fingerprint(self.material.train),
            "test data": fingerprint(self.material.test),
            "target": self.target,
            "seed": self.seed,
            "weights": self.store,
        }

    def trainer(self, device: torch.device | str) -> GeneratorTrainer:
        return GeneratorTrainer(
            self.plan, self.model, self.material, device, target=self.target, seed=self.seed
        )


def finished_generator(job: GeneratorJob, out: Path) -> GeneratorCard | None:
    """The card in ``out`` if this training is finished there; None if it is not.

    A folder of something else is refused, and nothing in it is changed.
    """
    if not out.is_dir():
        return None
    begun = (out / CHECKPOINT).exists()
    if not (out / CARD).exists():
        names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        if names and not begun:
            raise BadInput(
                f"{out} holds files that no training made ({first_few(names)}); "
                "choose another folder"
            )
        return None
    card, digest = read_generator_card(out)
    if other := difference(card.facts.get("training"), job.identity):
        raise BadInput(
            f"{out} holds a generator of another training ({other}); choose another folder"
        )
    if begun or not (out / WEIGHTS).exists():
        return None
    load_generator(str(out), digest)
    return card


def train_generator_epochs(
    job: GeneratorJob, trainer: GeneratorTrainer, out: Path, tick: Tick | None = None
) -> Iterator[GeneratorEpoch]:
    """The epochs that are left, with a checkpoint in ``out`` after each."""
    path = out / CHECKPOINT
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _resume(job, trainer, path)
    yield from save_each(
        path,
        trainer.epochs(tick),
        lambda: (
            trainer.tensors(),
            {"identity": job.identity, "progress": asdict(trainer.progress)},
        ),
    )


def _resume(job: GeneratorJob, trainer: GeneratorTrainer, path: Path) -> None:
    tensors, record = read_checkpoint(path)
    if other := difference(record.get("identity"), job.identity):
        raise BadInput(
            f"{path} is of a training with other settings ({other}); "
            "choose another folder, or delete it to begin again"
        )
    try:
        trainer.restore(tensors)
        trainer.progress = GeneratorProgress(**record["progress"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise BadInput(f"{path} does not fit the generator ({one_line(error)})") from None


def finish_generator(job: GeneratorJob, trainer: GeneratorTrainer, out: Path) -> GeneratorCard:
    """Save the generator that is kept, measure it as it is stored, and remove the checkpoint."""
    trainer.take_best()
    facts: dict[str, Any] = {
        "data": job.material.name,
        "train_data": job.material.train_words or job.material.train.source,
        "test_data": job.material.test_words or job.material.test.source,
        "train_images": len(job.material.train),
        "kept_epoch": trainer.progress.kept or trainer.progress.epochs,
        "seconds": round(trainer.progress.seconds, 1),
        "device": device_name(trainer.device),
        "history": trainer.progress.history,
        "training": job.identity,
        "versions": {
            "pinprick": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
    }
    card = replace(trainer.card, facts=facts)
    save_generator(trainer.generator, card, out, store=job.store)
    card = replace(card, facts={**measure_generator(job, str(out)), **facts})
    save_generator(trainer.generator, card, out, store=job.store)
    (out / CHECKPOINT).unlink(missing_ok=True)
    return card


def measure_generator(job: GeneratorJob, weights: str) -> dict[str, Any]:
    """Fooling rate and change on held-out images: with the whole mask, and in 10 % of the pixels.

    The fooling rate is over images that are classified correctly; with a target, over those of
    other classes, too.
    """
    data = evenly_spaced(job.material.test, job.plan.exam_images).for_model(job.model)
    if job.target is not None:
        data = data[data.labels != job.target]
    images = data.images(job.model)
    targets = None if job.target is None else torch.full_like(data.labels, job.target)
    limit = max(1, round(_AT * images[0, 0].numel()))
    found: dict[str, Any] = {}
    for name, k in (("single_pass", None), ("in_a_tenth_of_the_pixels", limit)):
        attack = EGSTSSA(weights=weights, k=k)
        batches = attack_batches(attack, job.model, images, data.labels, targets=targets)
        result = join(list(batches))
        right = result.correct
        total, fooled = int(right.sum()), int((result.success & right).sum())
        if not total:
            raise BadInput(f"{job.model.name} classifies none of the held-out images correctly")
        interval = wilson_interval(fooled, total)
        found[name] = {
            "fooling_rate": round(fooled / total, 4),
            "interval": [round(interval.low, 4), round(interval.high, 4)],
            "images": total,
            "pixels": round(result.l0_pixels[right].double().mean().item(), 2),
            "elements": round(result.l0_elements[right].double().mean().item(), 2),
            "most_pixels": k,
        }
    return found
