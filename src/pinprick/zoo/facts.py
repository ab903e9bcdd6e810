"""Facts of a model card in words: percentages with two decimals, attacks with their budgets."""

from collections.abc import Mapping
from typing import Any

from pinprick.errors import BadInput

Facts = Mapping[str, Any]

TOLERATED = 0.05  # share of images by which PGD may look better than the stronger attack


def percent(share: Any) -> str:
    """A percentage with two decimals; a dash where there is no number."""
    return f"{100 * share:.2f} %" if isinstance(share, int | float) else "-"


def l0_attack(facts: Facts) -> str:
    """The attacks that the l0 accuracy was measured with; on older cards, Pinprick alone."""
    few = _part(facts, "l0_elements")
    if not few:
        return "-"
    attacks = few.get("attacks") or ["Pinprick, effort fast"]
    return f"{attacks[0]}, alone" if len(attacks) == 1 else f"worst of {'; '.join(attacks)}"


def linf_attack(attack: Facts) -> str:
    """A short name for PGD on a card, as "PGD-20, eps 8/255" or "PGD-50 x 5, margin, eps 0.3"."""
    words = f"PGD-{attack.get('steps', '?')}"
    if attack.get("restarts", 1) > 1:
        words += f" x {attack['restarts']}"
    if attack.get("loss", "cross_entropy") != "cross_entropy":
        words += f", {attack['loss']}"
    eps = attack.get("eps")
    if not isinstance(eps, float):
        return words
    levels = eps * 255
    whole = abs(levels - round(levels)) < 1e-6  # a number of 8-bit levels
    return f"{words}, eps " + (f"{levels:.0f}/255" if whole else f"{eps:.4g}")


def accuracy_under(attack: Facts) -> str:
    """Accuracy under a PGD of a card; for the strong one, also under plain PGD on its images."""
    if not attack:
        return "-"
    plain = attack.get("pgd_accuracy")
    beside = "" if plain is None else f"; PGD alone on these images {percent(plain)}"
    return f"{percent(attack.get('accuracy'))} ({linf_attack(attack)}{beside})"


def overstatement(facts: Facts) -> str:
    """Why the accuracy under PGD is too high, as a sentence; empty if it is not."""
    strong = _part(facts, "strong_pgd")
    plain, worst = strong.get("pgd_accuracy"), strong.get("accuracy")
    if plain is None or worst is None or round(plain - worst, 6) <= TOLERATED:
        return ""
    return (
        f"{linf_attack(facts.get('pgd') or {})} leaves {percent(plain)} of {strong['images']} "
        f"images correct, {linf_attack(strong)} only {percent(worst)}"
    )


def check_facts(facts: Facts) -> None:
    """Raise ``BadInput`` where the results of a card contradict its own settings."""
    exam = _part(_part(facts, "training"), "exam")
    total = _test_images(facts)
    pgd, strong = _part(facts, "pgd"), _part(facts, "strong_pgd")
    few = _part(facts, "l0_elements")
    tested = facts.get("test_images")
    said = {
        "test_images": (tested, _count(exam, "exam_images", total)),
        "pgd images": (pgd.get("images"), tested),
        "pgd eps": (pgd.get("eps"), exam.get("exam_eps")),
        "pgd steps": (pgd.get("steps"), exam.get("exam_steps")),
        "strong_pgd images": (strong.get("images"), _count(exam, "strong_images", tested)),
        "strong_pgd eps": (strong.get("eps"), exam.get("exam_eps")),
        "strong_pgd steps": (strong.get("steps"), exam.get("strong_steps")),
        "strong_pgd restarts": (strong.get("restarts"), exam.get("strong_restarts")),
        "l0_elements images": (few.get("images"), _count(exam, "l0_images", total)),
    }
    for name, (measured, set_) in said.items():
        if measured is not None and set_ is not None and measured != set_:
            raise BadInput(
                f"the card contradicts itself: {name} is {measured} where it was measured, and "
                f"{set_} by its settings; measure the model again with these settings"
            )


def _test_images(facts: Facts) -> int | None:
    """How many test images there were, from their fingerprint or, where all were used, a count."""
    words = str(facts.get("tested_on", "")).split()
    if words and words[0].isdecimal():
        return int(words[0])
    exam = _part(_part(facts, "training"), "exam")
    tested = facts.get("test_images")
    whole = "exam_images" in exam and exam["exam_images"] is None
    return tested if whole and isinstance(tested, int) else None


def _count(exam: Facts, name: str, total: Any) -> int | None:
    """How many images a setting stands for; None where the card does not say."""
    if name not in exam or not isinstance(total, int):
        return None
    wanted = exam[name]
    if wanted is None:
        return total
    return min(wanted, total) if isinstance(wanted, int) else None


def _part(facts: Facts, name: str) -> Facts:
    """An entry that has entries itself; empty where the card holds something else."""
    found = facts.get(name)
    return found if isinstance(found, Mapping) else {}
