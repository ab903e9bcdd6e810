"""The worst case over several runs, per image."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from attacked_images import attacked

from pinprick import BadInput, best_of, load_result, save_result

INF = math.inf


def test_takes_the_fewest_units_per_image_and_the_first_of_those_alike() -> None:
    one, two = attacked(3, 5, INF, INF, 2), attacked(4, 1, 7, INF, 2, name="two")
    best = best_of({"one": one, "two": two})
    assert best.needed_pixels.tolist() == [3, 1, 7, INF, 2]
    assert best.found_by == ("one", "two", "two", "", "one")
    assert torch.equal(best.adversarial[1], two.adversarial[1])
    assert best.remarks == ("", "", "", "not found", "")
    assert best.ids.tolist() == one.ids.tolist()


def test_all_runs_are_paid_for() -> None:
    best = best_of([attacked(3, 5), attacked(4, 1, name="two", seconds=0.5)])
    assert best.forwards.tolist() == [6, 8]
    assert best.backwards.tolist() == [0, 2]
    assert best.seconds == 2.5
    assert list(best.stages) == ["pin", "two"]
    assert best.stages["two"].forwards.tolist() == [3, 4]
    assert best.attack["attacks"] == [{"name": "pin"}, {"name": "two"}]


def test_seeds_are_runs_of_their_own() -> None:
    best = best_of([attacked(3, 5), attacked(4, 1, seed=7)])
    assert best.found_by == ("pin, seed 0", "pin, seed 7")


def test_skipped_images_stay_so() -> None:
    best = best_of([attacked(3, 0, wrong=1), attacked(4, 0, wrong=1, name="two")])
    assert best.skipped.tolist() == [False, True]
    assert best.found_by == ("pin", "")
    assert best.robust_accuracy([0, 2, 3]) == [0.5, 0.5, 0.0]


def test_the_unit_decides() -> None:
    one, two = attacked(3, name="one"), attacked(2, name="two")
    wide = two.adversarial.clone()
    wide[0, :, 0, :2] = 1.0  # two pixels, six elements
    two = replace(two, adversarial=wide)
    assert best_of([one, two]).found_by == ("two",)
    assert best_of([one, two], "elements").found_by == ("one",)


def test_a_search_by_scores_that_wins_is_flagged_as_by_auto() -> None:
    by_scores = replace(attacked(1, 9, name="scores"), backwards=torch.zeros(2, dtype=torch.long))
    with_gradients = replace(attacked(2, 2), backwards=torch.tensor([5, 5]))
    assert best_of([with_gradients, by_scores]).beaten_by_scores.tolist() == [True, False]


def test_goes_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    best = best_of([attacked(3, 5), attacked(4, 1, name="two")])
    save_result(best, path)
    again = load_result(path)
    assert again.found_by == best.found_by
    assert again.attack == best.attack


def test_what_does_not_fit_is_refused() -> None:
    one = attacked(1, 2)
    with pytest.raises(BadInput, match="runs on one model, got net, other"):
        best_of([one, replace(one, model="other")])
    with pytest.raises(BadInput, match="the same images"):
        best_of([one, attacked(1, 2, 3, name="two")])
