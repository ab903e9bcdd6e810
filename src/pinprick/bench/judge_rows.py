"""Judge the rows of one batch again: rebuild its adversarial images and query the models."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn

from pinprick.bench.run_cell import targets_of
from pinprick.bench.stored_rows import CleanBatch, Finding, StoredRows
from pinprick.model import Classifier
from pinprick.run import final_logits, logits_or_nan
from pinprick.types import Images, Logits
from pinprick.zoo.voting import one_vote


@dataclass(frozen=True, eq=False)
class Judge:
    """A frozen model, and the numerical noise of its margins on this machine."""

    model: Classifier
    noise: float


def logits_of(model: Classifier, images: Images) -> Logits:
    """The logits of a frozen model on its device, on the CPU."""
    return logits_or_nan(model, images.to(model.device or images.device))[0].cpu()


def judge_batch(
    rows: StoredRows, clean: CleanBatch, model: Judge, victims: Sequence[Judge | None]
) -> list[Finding]:
    """Every value of these rows that is another one here, and every margin within the noise.

    Args:
        rows: The rows.
        clean: The clean images of these rows.
        model: The attacked model.
        victims: The victims of the cell; None for one that is not there.
    """
    cell = rows.cell
    targets = targets_of(cell.goal, cell.seed, clean.logits, clean.given)
    goal = rows.goal(clean, targets)
    adversarial: tuple[Logits, Logits] | None = None
    if rows.rebuilt.any():
        adv = rows.adv.to(model.model.device or rows.adv.device)
        logits, rounded = (answer.cpu() for answer in final_logits(model.model, adv)[:2])
        adversarial = logits, rounded
        if cell.device != adv.device.type:
            rows.allow_for_another_device(goal, logits)
            net = model.model.net
            if isinstance(net, nn.Module) and (vote := one_vote(net, logits)) is not None:
                rows.allow_noise(vote)
    rows.limit_noise(clean.logits)
    rows.allow_noise(model.noise)
    found = [*rows.identity(clean, targets), *rows.perturbation()]
    found += rows.prediction("clean_class", clean.logits)
    found += rows.flag("skipped", goal.met(clean.logits), clean.logits)
    correct = goal.labels == clean.logits.argmax(dim=1)
    found += rows.flag("correct", correct & clean.logits.isfinite().all(dim=1), clean.logits)
    if adversarial is not None:
        logits, rounded = adversarial
        found += rows.prediction("adversarial_class", logits, adversarial=True)
        found += rows.flag("success", goal.met(logits), logits, adversarial=True)
        found += rows.flag("success_8bit", goal.met(rounded), rounded, adversarial=True)
        found += rows.sizes()
        found += rows.narrow_margins(goal, logits)
    for number, victim in enumerate(victims):
        known = clean.victims[number]
        if victim is not None and known is not None:
            found += rows.victim("victims_clean", number, known, victim.noise)
            if rows.rebuilt.any():
                answer = logits_of(victim.model, rows.adv)
                found += rows.victim("victims", number, answer, victim.noise)
    return found
