"""Facts of cards in words, and cards that contradict themselves, which are not written."""

from typing import Any

import pytest

from pinprick import BadInput
from pinprick.checks import check_card
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.facts import check_facts, l0_attack, linf_attack, overstatement, percent

EXAM = {
    "exam_eps": 0.3, "exam_steps": 40, "exam_images": None, "strong_images": 100,
    "strong_steps": 50, "strong_restarts": 5, "l0_images": 1000,
}  # fmt: skip


def facts(**changes: Any) -> dict[str, Any]:
    """Of a model that was measured on 400 images; ``changes`` by the name of what they change."""
    made: dict[str, Any] = {
        "accuracy": 0.9446,
        "test_images": 400,
        "pgd": {"accuracy": 0.35, "images": 400, "eps": 0.3, "steps": 40},
        "strong_pgd": {
            "accuracy": 0.30, "pgd_accuracy": 0.34, "images": 100, "eps": 0.3, "steps": 50,
            "restarts": 5, "loss": "margin",
        },
        "l0_elements": {"accuracy": {"10": 0.5}, "images": 400},
        "training": {"exam": dict(EXAM)},
        "tested_on": "400 images, 0badcafe",
    }  # fmt: skip
    for name, value in changes.items():
        home, _, key = name.partition("__")
        made[home] = {**made[home], key: value} if key else value
    return made


def card_of(facts: dict[str, Any]) -> ModelCard:
    return ModelCard(net="n", classes=("a",), mean=None, std=None, size=(4, 4), facts=facts)


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.9446, "94.46 %"), (0.7997, "79.97 %"), (0, "0.00 %"), (1, "100.00 %"), (None, "-")],
)
def test_rounding_turns_no_miss_into_a_hit(share: float | None, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ({"steps": 20, "eps": 8 / 255}, "PGD-20, eps 8/255"),
        ({"steps": 40, "eps": 0.3}, "PGD-40, eps 0.3"),
        ({"steps": 50, "restarts": 5, "loss": "margin"}, "PGD-50 x 5, margin"),
        ({}, "PGD-?"),
    ],
)
def test_pgd_has_a_short_name(attack: dict[str, Any], words: str) -> None:
    assert linf_attack(attack) == words


def test_older_cards_are_printed_as_what_they_are() -> None:
    assert l0_attack({"l0_elements": {"attack": "pinprick, effort fast"}}) == (
        "Pinprick, effort fast, alone"
    )
    assert l0_attack({"l0_elements": {"attacks": ["A, fast", "B, 9 queries"]}}) == (
        "worst of A, fast; B, 9 queries"
    )
    assert l0_attack({}) == "-"


@pytest.mark.parametrize(("worst", "flagged"), [(0.30, False), (0.29, False), (0.28, True)])
def test_pgd_overstates_where_a_stronger_one_takes_more_than_five_points(
    worst: float, flagged: bool
) -> None:
    measured = facts(strong_pgd__accuracy=worst)
    assert bool(overstatement(measured)) == flagged
    assert [flag.name for flag in check_card(measured)] == ["pgd_overstates"] * flagged
    if flagged:
        (flag,) = check_card(measured)
        assert flag.sentence == (
            "its card: PGD-40, eps 0.3 leaves 34.00 % of 100 images correct, "
            "PGD-50 x 5, margin, eps 0.3 only 28.00 %"
        )
    assert check_card({}) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pgd__images": 200}, "pgd images is 200 where it was measured, and 400 by its settings"),
        ({"pgd__eps": 0.1}, "pgd eps is 0.1 where it was measured, and 0.3 by"),
        ({"pgd__steps": 20}, "pgd steps is 20"),
        ({"test_images": 100}, "test_images is 100 where it was measured, and 400 by"),
        ({"strong_pgd__images": 50}, "strong_pgd images is 50"),
        ({"strong_pgd__steps": 5}, "strong_pgd steps is 5"),
        ({"l0_elements__images": 100}, "l0_elements images is 100"),
    ],
)
def test_a_card_whose_results_contradict_its_settings_is_not_written(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=f"the card contradicts itself: {message}"):
        card_of(facts(**changes)).as_json()


@pytest.mark.parametrize(
    "sound",
    [
        {},
        {"accuracy": 0.5},
        {"training": {"exam": {"exam_images": None}}, "test_images": 7},
        facts(),
        facts(tested_on="10000 images, 0badcafe", training__exam={**EXAM, "exam_images": 400})
        | {"l0_elements": {"images": 1000}},
    ],
)
def test_a_card_that_agrees_with_itself_or_says_little_is_written(sound: dict[str, Any]) -> None:
    check_facts(sound)
    assert read_card(card_of(sound).as_json(), "here").facts == sound


def test_a_contradiction_is_found_without_the_fingerprint_of_the_test_set() -> None:
    older = facts(l0_elements__images=100)
    del older["tested_on"]
    with pytest.raises(BadInput, match="l0_elements images is 100"):
        check_facts(older)
