"""A model card goes to JSON and back, and says what is wrong with one written by hand."""

import json
from typing import Any

import pytest

from pinprick import BadInput, UnknownName
from pinprick.zoo.card import ModelCard, read_card

CARD = ModelCard(
    net="resnet20",
    classes=("cat", "naïve dog"),
    mean=(0.5, 0.4, 0.3),
    std=(0.2, 0.2, 0.1),
    size=(32, 32),
    facts={"data": "cifar10", "accuracy": {"clean": 0.915}, "seed": 0},
)


def test_a_card_comes_back_as_it_was() -> None:
    assert read_card(CARD.as_json(), "card.json") == CARD


def test_what_a_card_by_hand_may_leave_out() -> None:
    card = read_card('{"net": "mnist_cnn", "classes": 3, "size": [28, 28]}', "card.json")
    assert card.classes == ("0", "1", "2")
    assert card.mean is card.std is None
    assert card.facts == {}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"nett": "x"}, "no entry of card.json is called 'nett'; did you mean net"),
        (
            {"size": [0, 32]},
            r"card.json: size is height and width in pixels, at most 4096, got \(0, 32\)",
        ),
        ({"size": [32]}, r"size in card.json must be \[height, width\], got \[32\]"),
        ({"size": "32"}, r'size in card.json must be \[height, width\], got "32"'),
        ({"size": [True, 4]}, r"must be \[height, width\]"),
        ({"mean": [0.5]}, "mean has 1 values for 3 channels"),
        ({"std": [0, 1, 1]}, "std must be above zero"),
        ({"mean": "0.5"}, "mean in card.json must be a list of numbers, or null"),
        ({"channels": 4}, "1 or 3 channels, got 4"),
        ({"classes": []}, "at least one class"),
        ({"classes": [1, 2]}, "must be a list of names, or a number"),
        ({"classes": True}, "must be a list of names, or a number"),
        ({"classes": 10**12}, "must be a list of names, or a number"),
        ({"classes": -1}, "must be a list of names, or a number"),
        ({"resize": 16}, r"a crop of \(32, 32\) does not fit a short side of 16"),
        ({"interpolation": "cubic"}, "did you mean bicubic"),
        ({"facts": None}, "facts in card.json must be an object, got null"),
    ],
)
def test_a_card_that_cannot_be_is_refused_with_the_reason(
    entries: dict[str, Any], message: str
) -> None:
    text = json.dumps({**json.loads(CARD.as_json()), **entries})
    with pytest.raises((BadInput, UnknownName), match=message):
        read_card(text, "card.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "card.json is not JSON"),
        ("[]", "must hold a JSON object, not a list"),
        ('{"net": "resnet20"}', "must name the classes and the size"),
    ],
)
def test_text_that_is_no_card_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_card(text, "card.json")


@pytest.mark.parametrize("fact", [float("nan"), object()])
def test_facts_must_be_plain_json(fact: object) -> None:
    card = ModelCard(
        net="n", classes=("a",), mean=None, std=None, size=(1, 1), facts={"fact": fact}
    )
    with pytest.raises(BadInput, match="plain JSON"):
        card.as_json()


@pytest.mark.parametrize(
    "facts",
    [
        {"training": "by hand"},
        {"training": {"exam": 3}},
        {"training": {"exam": {"exam_images": "x"}}, "tested_on": "5 images", "test_images": 5},
        {"pgd": [1], "strong_pgd": "no", "l0_elements": 4},
    ],
)
def test_facts_may_be_anything_that_their_writer_wants(facts: dict[str, Any]) -> None:
    card = ModelCard(net="n", classes=("a",), mean=None, std=None, size=(1, 1), facts=facts)
    assert read_card(card.as_json(), "card.json").facts == facts
