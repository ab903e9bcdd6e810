"""``check_attack``: hold an attack to the contract that the attacks of this package keep."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pinprick.attacks.card import Attack
from pinprick.contract.further_runs import FURTHER_RUNS
from pinprick.contract.kinds_of_images import BLOCKS, breaches_on
from pinprick.contract.one_run import ONE_RUN
from pinprick.contract.watched_run import WatchedRun, watch
from pinprick.errors import one_line
from pinprick.intake import check_parties
from pinprick.oracle import exact_linear

Clause = Callable[[WatchedRun], Iterator[str]]


@dataclass(frozen=True)
class Verdict:
    """The outcome of one test.

    Attributes:
        name: What was tested.
        passed: Whether the test passed.
        detail: What was found; if it failed, what is wrong.
    """

    name: str
    passed: bool
    detail: str


def check_attack(attack: Attack) -> list[str]:
    """Run an attack on small exact networks; print and return what it breaks of the contract.

    The list has one sentence per breach. It is empty for an attack that keeps the contract.
    """
    found = find_breaches(attack)
    broken = [f"{clause}: {sentence}" for clause, some in found.items() for sentence in some]
    for line in broken:
        print(line)
    kept = sum(not some for some in found.values())
    print(f"{attack.card.name} keeps {kept} of {len(found)} clauses of the contract")
    return broken


def contract_verdicts(attack: Attack) -> list[Verdict]:
    """One verdict per clause of the contract."""
    found = find_breaches(attack)
    return [Verdict(clause, not some, " ".join(some) or "kept") for clause, some in found.items()]


def find_breaches(attack: Attack) -> dict[str, list[str]]:
    """The sentences of each clause; "runs" alone where the attack fails on the simplest input."""
    check_parties(attack, exact_linear(2, (1, 1, 1)))
    try:
        run = watch(attack)
    except Exception as error:
        return {"runs": [_raised(error, attack)]}
    questions: dict[str, Callable[[], Iterable[str]]] = {
        clause.__name__.replace("_", " "): partial(clause, run)
        for clause in (*ONE_RUN, *FURTHER_RUNS)
    }
    questions["runs on every kind of image"] = partial(breaches_on, BLOCKS[0], attack)
    return {name: _sentences(question, attack) for name, question in questions.items()}


def _sentences(question: Callable[[], Iterable[str]], attack: Attack) -> list[str]:
    """What a clause yields; an error inside the attack is a breach."""
    try:
        return list(dict.fromkeys(question()))
    except Exception as error:
        return [_raised(error, attack)]


def _raised(error: Exception, attack: Attack) -> str:
    """The error in one sentence, with the last line of the attack's own file on its way."""
    lines = traceback.extract_tb(error.__traceback__)
    own = [line for line in lines if line.filename == type(attack).__call__.__code__.co_filename]
    last = (own or lines)[-1]
    notes = "".join(f", {note}" for note in getattr(error, "__notes__", ()))
    place = f"{Path(last.filename).name}, line {last.lineno}{notes}"
    return f"It raised {type(error).__name__} ({place}): {one_line(error)}"
