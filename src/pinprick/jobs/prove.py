"""Prove how few units would have fooled the model of a saved result."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pinprick.bounds.exact import prove
from pinprick.bounds.proof import Proof
from pinprick.data.pictures import PictureRecord
from pinprick.errors import BadInput
from pinprick.explain.explain_result import facts_of
from pinprick.intake import check_whole
from pinprick.jobs.explain_saved import check_attacked, load_attacked
from pinprick.jobs.masks import read_masks
from pinprick.jobs.progress import Progress
from pinprick.metrics.unit import Unit, check_unit, finite_count
from pinprick.model import Classifier
from pinprick.result import AttackResult
from pinprick.result_file import load_result, save_result
from pinprick.run import final_logits
from pinprick.types import PerImage


@dataclass(frozen=True, kw_only=True, eq=False)
class ProveOutcome:
    """What was proved about a saved result.

    Attributes:
        result: The images of the result that were looked at.
        proof: The proof.
        needed: Units that the attack needs; infinite where it failed.
    """

    result: AttackResult
    proof: Proof
    needed: PerImage

    @property
    def attacked(self) -> list[int]:
        """The images that were not fooled before, by row."""
        return (self.proof.upper > 0).nonzero().squeeze(1).tolist()

    @property
    def ratio(self) -> float | None:
        """Mean of the attack's units over the optimum; None where nothing finite is proved."""
        proof = self.proof
        known = proof.proved & proof.upper.isfinite() & (proof.upper > 0) & self.needed.isfinite()
        return (self.needed / proof.lower)[known].mean().item() if known.any() else None

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; infinite numbers are null."""
        proof = self.proof
        columns = zip(
            self.result.ids.tolist(),
            self.result.goal.labels.tolist(),
            map(finite_count, self.needed.tolist()),
            map(finite_count, proof.lower.tolist()),
            map(finite_count, proof.upper.tolist()),
            proof.status,
            proof.slack.tolist(),
            proof.seconds.tolist(),
            strict=True,
        )
        names = ("image", "label", "needed", "lower", "upper", "status", "slack", "seconds")
        return {
            "attack": self.result.attack,
            "model": proof.model,
            "unit": proof.unit,
            "proved": int(proof.proved[self.attacked].sum()),
            "attacked": len(self.attacked),
            "ratio": self.ratio,
            "images": [dict(zip(names, row, strict=True)) for row in columns],
        }


def prove_saved(
    path: Path,
    *,
    model: str | Classifier | None = None,
    unit: str | None = None,
    mask: Path | None = None,
    limit: int | None = None,
    seconds: float = 60.0,
    save: Path | None = None,
    trust: bool = False,
    progress: Progress | None = None,
) -> ProveOutcome:
    """Prove the fewest units for each image of a file that ``save_result`` wrote.

    Args:
        path: The file, as ``pinprick attack --save`` writes it.
        model: The attacked model, or its name; None for the one that the file names.
        unit: What is counted; None for what the attack counts.
        mask: The mask that the attack had, as ``pinprick attack --mask`` takes it.
        limit: Most images, from the first on.
        seconds: Time limit per image.
        save: A file to write the result to, with every better image in its place.
        trust: Load model files that are programs, too.
        progress: Receives remarks and counts.
    """
    result = load_result(path)
    if limit is not None:
        result = result[: check_whole("limit", limit, least=1)]
    if not len(result):
        raise BadInput(f"{path} holds no image to prove anything about")
    counted = _unit(unit, result)
    classifier = load_attacked(model, result, path, "cpu", trust=trust)
    check_attacked(classifier, result, path)
    allowed = None
    if mask is not None:
        records = [
            PictureRecord(f"image-{number}", Path(f"{path}[{number}]"))
            for number in result.ids.tolist()
        ]
        allowed = read_masks(mask, records, result.images, classifier)
    proofs = []
    with (progress or Progress()).count_images(len(result), "prove") as advance:
        for row, one in enumerate(result):
            own = None if allowed is None else allowed[row : row + 1]
            proofs.append(prove(one, classifier, unit=counted, allowed=own, seconds=seconds))
            advance(1)
    proof = Proof.join(proofs)
    if save is not None:
        save_result(_with_better(result, proof, classifier), save)
    needed = result.needed_pixels if counted == "pixels" else result.needed_elements
    return ProveOutcome(result=result, proof=proof, needed=needed)


def _unit(given: str | None, result: AttackResult) -> Unit:
    if given is None:
        facts = facts_of(result)
        return "pixels" if facts is not None and facts.unit == "pixels" else "elements"
    return check_unit(given)


def _with_better(result: AttackResult, proof: Proof, model: Classifier) -> AttackResult:
    """The result with the better images of the proof, and what the model says of them."""
    rows = proof.better.nonzero().squeeze(1)
    if not len(rows):
        return result
    with model.frozen():
        logits, rounded, _ = final_logits(model, proof.adversarial[rows])
    adversarial, said = result.adversarial.clone(), result.adversarial_logits.clone()
    said_rounded = result.rounded_logits.clone()
    adversarial[rows], said[rows] = proof.adversarial[rows], logits.to(said.dtype)
    said_rounded[rows] = rounded.to(said.dtype)
    better = set(rows.tolist())
    remarks = tuple("" if row in better else text for row, text in enumerate(result.remarks))
    return replace(
        result,
        adversarial=adversarial,
        adversarial_logits=said,
        rounded_logits=said_rounded,
        remarks=remarks,
        attack={**result.attack, "improved_by": "prove"},
    )
