"""The summary per attack, against numbers worked out by hand."""

import csv
import io
import math
from dataclasses import replace

import pytest
import torch
from attacked_images import attacked

from pinprick import Attack, BadInput, Goal, summarise
from pinprick.attacks import PGD, SigmaZero, SparseRS
from pinprick.attacks.build import describe
from pinprick.report.summary import FORMATS

INF = math.inf


def test_a_row_by_hand_with_ties_a_failure_and_images_that_were_wrong() -> None:
    """Correct are 2, 2, 5 and a failure; two more were wrong and are skipped."""
    (row,) = summarise(attacked(2, 2, 5, INF, 0, 0, wrong=2)).rows
    assert (row.attack, row.model, row.seeds) == ("pin", "net", 1)
    assert (row.images, row.correct, row.wrong) == (6, 4, 2)
    assert row.fooling_rate.value == 0.75
    assert (row.fooling_rate.low, row.fooling_rate.high) == pytest.approx(
        (0.3006, 0.9544), abs=1e-4
    )
    assert row.median_pixels.value == 3.5
    assert (row.median_pixels.low, row.median_pixels.high) == (2.0, INF)
    assert row.mean_pixels.value == INF
    assert row.mean_pixels_fooled.value == 3.0
    assert (row.mean_pixels_fooled.low, row.mean_pixels_fooled.high) == (2.0, 5.0)
    assert row.median_elements.value == 3.5  # one channel of each pixel
    assert (row.forwards, row.backwards) == (4.5, 1.5)  # 3, 4, 5, 6 and 0, 1, 2, 3
    assert row.seconds == 0.5  # 2 seconds, four images attacked
    assert math.isnan(row.fooling_rate.deviation)


def test_all_failed() -> None:
    summary = summarise(attacked(INF, INF, INF))
    (row,) = summary.rows
    assert (row.fooling_rate.value, row.median_pixels.value, row.mean_pixels.value) == (0, INF, INF)
    assert math.isnan(row.mean_pixels_fooled.value)
    assert "∞ [∞, ∞]" in summary.text()


def test_all_skipped() -> None:
    with pytest.warns(UserWarning, match=r"2 of 2 images \(100 %\) are misclassified before"):
        summary = summarise(attacked(0, 0, wrong=2))
    (row,) = summary.rows
    assert row.correct == 0
    assert all(map(math.isnan, (row.forwards, row.backwards, row.seconds)))
    assert math.isnan(row.fooling_rate.value)
    assert math.isnan(row.median_pixels.value)
    (line,) = (line for line in summary.text().splitlines() if "0 of 2" in line)
    assert line.split() == ["pin", "0", "of", "2", "-", "-", "+", "-", "-"]


def test_no_image_at_all() -> None:
    (row,) = summarise(attacked()).rows
    assert (row.images, row.correct) == (0, 0)
    assert math.isnan(row.seconds)
    assert math.isnan(row.fooling_rate.value)


def test_one_image_has_a_wilson_interval_but_no_bootstrap() -> None:
    (row,) = summarise(attacked(4)).rows
    assert (row.median_pixels.value, row.mean_pixels.value) == (4.0, 4.0)
    assert math.isnan(row.median_pixels.low)
    assert row.fooling_rate.low == pytest.approx(0.2065, abs=1e-4)
    assert "100.0 % [20.7, 100.0]" in summarise(attacked(4)).text()


def test_numbers_over_seeds_are_means_with_their_deviation() -> None:
    runs = [attacked(1, 3, seed=0), attacked(2, 4, seed=1), attacked(3, INF, seed=2)]
    (row,) = summarise({"mine": runs}).rows
    assert (row.attack, row.seeds, row.images) == ("mine", 3, 2)
    assert row.fooling_rate.value == pytest.approx((1 + 1 + 0.5) / 3)
    assert row.fooling_rate.deviation == pytest.approx(math.sqrt(1 / 12))
    assert row.mean_pixels_fooled.value == pytest.approx((2 + 3 + 3) / 3)
    assert row.mean_pixels.value == INF
    assert math.isnan(row.mean_pixels.deviation)
    assert "over 3 seeds" in summarise({"mine": runs}).text()
    assert summarise(runs).text() == summarise({"pin": runs}).text()


def test_attacks_on_the_same_images_are_tested_in_pairs() -> None:
    first = attacked(1, 1, 1, 1, 1, 1, 4)
    second = attacked(2, 3, 4, 5, 6, INF, 4, name="other")
    (pair,) = summarise({"a": first, "b": second}).pairs
    assert (pair.first, pair.second, pair.images) == ("a", "b", 7)
    assert (pair.only_first, pair.only_second, pair.p_fooled) == (1, 0, 1.0)
    assert pair.fewer_pixels == pair.fewer_elements == (6, 0)
    assert pair.p_pixels == pytest.approx(2 / 64)
    three = summarise({"a": first, "b": second, "c": second})
    assert [pair.p_pixels for pair in three.pairs] == pytest.approx([6 / 64, 6 / 64, 1.0])


def test_other_images_or_goals_are_not_paired() -> None:
    first, second = attacked(1, 2), attacked(1, 2, name="other")
    other_images = replace(second, images=second.images + 0.5)
    other_goals = replace(second, goal=Goal(torch.zeros(2).long(), torch.ones(2).long()))
    for other in (other_images, other_goals, attacked(1, 2, 3, name="other")):
        assert summarise([first, other]).pairs == ()
    assert len(summarise([first, second]).pairs) == 1


def test_a_plain_list_is_grouped_by_attack_and_model() -> None:
    runs = [attacked(1, 2), attacked(1, 3, seed=1), attacked(2, 2, name="two")]
    assert [(row.attack, row.seeds) for row in summarise(runs).rows] == [("pin", 2), ("two", 1)]
    settings = replace(attacked(1, 2), attack={"name": "pin", "k": 3})
    assert [row.attack for row in summarise([runs[0], settings]).rows] == ["pin", "pin, k=3"]
    two = replace(
        attacked(1, 2), attack={"name": "pin", "k": 2, "steps": 9, "start": {"name": "a"}}
    )
    three = replace(two, attack={**two.attack, "k": 3, "start": {"name": "b"}})
    rows = summarise([two, three, replace(three, seed=1)]).rows
    assert [row.attack for row in rows] == ["pin, k=2, start=a", "pin, k=3, start=b"]
    models = [runs[0], replace(runs[0], model="other")]
    assert [row.attack for row in summarise(models).rows] == ["pin on net", "pin on other"]


def test_results_with_other_settings_are_no_seeds_of_one_attack() -> None:
    one = replace(attacked(1), attack={"name": "pin", "unit": "elements"})
    other = replace(attacked(1, seed=1), attack={"name": "pin", "unit": "pixels"})
    line = r"^the results of a differ in more than the seed: unit=elements and unit=pixels; give"
    with pytest.raises(BadInput, match=line):
        summarise({"a": [one, other]})


def marked(attack: Attack, *, grey: bool = False) -> str:
    """The lines of the needed units, and the notes, of a result of this attack."""
    result = replace(attacked(1, 2), attack=describe(attack))
    if grey:
        result = replace(result, images=result.images[:, :1], adversarial=result.adversarial[:, :1])
    return summarise({"a": result}).text().partition("Needed pixels")[2]


def test_counts_that_the_attack_does_not_keep_small_are_marked() -> None:
    pixels, _, elements = marked(SigmaZero(unit="pixels")).partition("Needed elements")
    assert "†" not in pixels
    assert "1.50 [1, 2]†" in elements
    assert "† a counts pixels: its elements are not kept small." in elements
    pixels, _, elements = marked(SigmaZero(unit="elements")).partition("Needed elements")
    assert "1.50 [1, 2]†" in pixels
    assert "† a counts elements: its pixels are not kept small." in " ".join(elements.split())
    assert "†" not in marked(SigmaZero(unit="pixels"), grey=True)
    assert "†" not in marked(PGD())  # counts neither


def test_attacks_at_a_fixed_k_are_marked() -> None:
    pixels, _, elements = marked(SparseRS(k=8)).partition("Needed elements")
    assert "1.50 [1, 2]‡" in pixels
    assert "1.50 [1, 2]†‡" in elements
    assert "‡ a may change k units: its counts are not kept small." in " ".join(elements.split())
    assert "‡" not in marked(SparseRS(k="smallest"))
    assert "1.50 [1, 2]‡" in marked(SparseRS(k=8), grey=True)
    polished = replace(attacked(1, 2), attack={**describe(SparseRS(k=8)), "polished": "pixels"})
    (row,) = summarise(polished).rows
    assert (row.unit, row.fixed_k) == ("pixels", False)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="a seed of its own, got the seeds 0, 0"):
        summarise([attacked(1), attacked(2)])
    with pytest.raises(BadInput, match="not of the same images"):
        summarise({"a": [attacked(1), attacked(1, 2, seed=1)]})
    with pytest.raises(BadInput, match="give at least one"):
        summarise([])
    with pytest.raises(BadInput, match="a has no result"):
        summarise({"a": []})


@pytest.mark.plain
def test_what_is_no_result_is_refused() -> None:
    for wrong in ({"a": [3]}, [3]):
        with pytest.raises(
            BadInput, match="expected an AttackResult as run_attack gives it, got 3"
        ):
            summarise(wrong)  # type: ignore[arg-type]


def test_the_formats_hold_the_same_numbers() -> None:
    summary = summarise({"my_attack": attacked(2, 2, 5, INF), "b|c": attacked(2, 2, 2, 2)})
    for form in ("text", "markdown", "latex"):
        text = summary.formatted(form)
        assert "75.0" in text
        assert "3.50 [2, " in text
        assert len(text.split("\n\n")) == {"text": 5, "markdown": 9, "latex": 5}[form]
    assert str(summary) == repr(summary) == summary.text()
    assert r"my\_attack & 4 of 4 & 75.0 \% [30.1, 95.4]" in summary.latex()
    assert r"3.50 [2, $\infty$]" in summary.latex()
    assert summary.latex().count(r"\begin{tabular}{llll}") == 2
    assert r"| b\|c | 4 of 4 |" in summary.markdown()
    first, second = csv.DictReader(io.StringIO(summary.csv()))
    assert (first["attack"], first["mean_pixels"], second["mean_pixels"]) == (
        "my_attack",
        "inf",
        "2.0",
    )
    assert first["mean_pixels_deviation"] == ""
    assert set(FORMATS) == {"text", "markdown", "latex", "csv"}


def test_the_lines_of_the_text_are_in_columns() -> None:
    lines = summarise([attacked(1, 2), attacked(3, 4, name="longer")]).text().splitlines()
    head, rule, first, second = lines[1:5]
    at = head.index("correct before")
    assert rule[at] == "─"
    assert first[at:].startswith("2 of 2")
    assert second[at:].startswith("2 of 2")


def test_plain_data_has_no_number_that_json_cannot_hold() -> None:
    plain = summarise([attacked(1, INF), attacked(INF, INF, name="other")]).plain()
    assert plain["attacks"][0]["mean_pixels"]["value"] is None
    assert plain["attacks"][0]["mean_pixels_fooled"]["value"] == 1.0
    assert plain["pairs"][0]["only_first"] == 1
