"""The summary of JSON documents, one per seed, whole or cut short."""

from typing import Any

from pinprick.report.document_summary import summarise_documents


def image(needed: int | None, *, confidence: float | None = 0.9, **other: Any) -> dict[str, Any]:
    """What result.json has of one picture, as far as the summary reads it."""
    return {
        "correct": True,
        "skipped": False,
        "clean": {"index": 0, "name": "a", "confidence": confidence},
        "needed_pixels": needed,
        "needed_elements": None if needed is None else 3 * needed,
        "forwards": 10,
        "backwards": 5,
        "seconds": 0.5,
        **other,
    }


def result(*images: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    return {"attack": {"name": "pin"}, "model": "net", "seed": seed, "images": list(images)}


def compared(*images: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    """A comparison; each image has name and settings of the attacks that are done, and a row."""
    entries = [
        {"attacks": [{"attack": name, "settings": words, **row} for name, words, row in columns]}
        for columns in images
    ]
    return {"attacks": [], "model": "net", "seed": 0, "images": entries}


def test_numbers_are_those_of_the_pictures() -> None:
    wrong = image(0, correct=False, skipped=True, forwards=0, backwards=0, seconds=0.0)
    (row,) = summarise_documents([result(image(4), image(None), wrong)]).rows
    assert (row.attack, row.model, row.images, row.correct, row.wrong) == ("pin", "net", 3, 2, 1)
    assert (row.fooling_rate.value, row.mean_elements_fooled.value) == (0.5, 12.0)
    assert (row.forwards, row.backwards, row.seconds) == (10.0, 5.0, 0.5)


def test_a_picture_without_an_answer_is_not_wrong() -> None:
    silent = image(None, confidence=None, correct=False, forwards=0)
    (row,) = summarise_documents([result(image(4), silent)]).rows
    assert (row.images, row.correct, row.wrong) == (2, 1, 0)


def test_a_model_of_labels_alone_has_no_confidences_but_answers() -> None:
    wrong = image(0, confidence=None, correct=False, skipped=True, forwards=0)
    (row,) = summarise_documents([result(image(4, confidence=None), wrong)]).rows
    assert (row.correct, row.wrong) == (1, 1)


def test_seeds_that_were_cut_short_are_left_out() -> None:
    whole = [result(image(4), image(6), seed=seed) for seed in (0, 1)]
    (row,) = summarise_documents([*whole, result(image(1), seed=2)]).rows
    assert (row.seeds, row.images, row.mean_pixels.value) == (2, 2, 5.0)


def test_attacks_that_were_cut_short_are_shown_and_not_paired() -> None:
    done = [("a", "", image(2)), ("b", "k=3", image(3))]
    half = compared(done, done[:1])
    summary = summarise_documents([half])
    assert [(row.attack, row.images, row.settings) for row in summary.rows] == [
        ("a", 2, ""),
        ("b", 1, "k=3"),
    ]
    assert summary.pairs == ()
    assert len(summarise_documents([compared(done, done)]).pairs) == 1


def test_marks_come_from_the_unit_of_the_column_and_the_k_in_its_settings() -> None:
    colour: dict[str, Any] = {
        "l0_pixels_percent": 10.0,
        "l0_elements_percent": 5.0,
        "unit": "pixels",
    }
    grey = {**colour, "l0_elements_percent": 10.0}
    for shares, unit in ((colour, "pixels"), (grey, None)):
        row = image(4, **shares)
        columns = [("a", "", row), ("b", "k=8, queries=5", row), ("b", "k=smallest", row)]
        rows = summarise_documents([compared(columns)]).rows
        assert [row.unit for row in rows] == [unit] * 3
        assert [row.fixed_k for row in rows] == [False, True, False]
