"""The leaderboard by hand: ranks, coverage, seeds, errors, and what is refused."""

import csv
import math
from typing import Any

import pytest
from bench_frame import cell, frame

from pinprick.errors import BadInput, UnknownName
from pinprick.report.attack_board import AttackLine
from pinprick.report.leaderboard import Leaderboard, leaderboard

pytestmark = pytest.mark.plain  # whole numbers where hints say float

INF = math.inf
BEST = [0, 2, 4, 6, 8]


def line_of(board: Leaderboard, attack: str) -> AttackLine:
    (line,) = (line for line in board.attacks if line.attack == attack)
    return line


def test_optimality_and_both_fooling_rates_by_hand() -> None:
    board = leaderboard(*frame(cell("best", BEST), cell("half", [0, 2, INF, INF, 8])))
    best, half = board.attacks
    assert (best.attack, best.optimality.value) == ("best", 1.0)
    assert half.optimality.value == pytest.approx(0.5)
    assert half.trapezoid == pytest.approx(1.0)
    assert half.fooling_rate.value == 0.5
    assert half.fooling_rate_of_all.value == 0.6
    assert (best.median, half.median) == (5, INF)
    assert (half.forwards, half.backwards, half.seconds) == (10, 5, 0.5)
    assert (half.done, half.expected, half.images, half.tasks) == (5, 5, 5, 1)


def test_a_clean_error_is_one_also_where_it_was_attacked_towards_a_class() -> None:
    targeted: dict[str, Any] = {"goal": "class 3", "correct": [False, False, True, True, True]}
    rows = frame(cell("a", [0, 5, 2, 4, INF], **targeted), cell("b", [0, INF, 4, 4, 6], **targeted))
    board = leaderboard(*rows, rank_at=3, details=True)
    (model,) = board.models
    assert model.clean_accuracy.value == 0.6
    assert [model.robust_accuracy[k].value for k in (3, 10)] == [0.4, 0]
    first, second = line_of(board, "a"), line_of(board, "b")
    assert [first.fooling_rate.value, second.fooling_rate.value] == pytest.approx([2 / 3, 1])
    assert (first.fooling_rate_of_all.value, second.fooling_rate_of_all.value) == (0.8, 1)
    assert [first.optimality.value, second.optimality.value] == pytest.approx([1, 2 / 3])
    assert [line.area for line in board.groups[0].details[0].lines] == [12 / 5, 14 / 5]


def test_elements_are_counted_where_they_are_asked_for() -> None:
    board = leaderboard(*frame(cell("a", BEST), cell("b", [0, 4, 4, 8, 8])), unit="elements")
    assert line_of(board, "a").median == 15
    assert line_of(board, "b").optimality.value == pytest.approx(2 / 3)
    assert "in elements" in board.text()


def test_overlapping_intervals_share_a_rank_and_others_do_not() -> None:
    strong, weak = [1.0] * 50 + [9.0] * 50, [8.0] * 50 + [9.0] * 50
    board = leaderboard(*frame(cell("a", strong), cell("b", strong), cell("c", weak)))
    assert [(line.attack, line.rank) for line in board.attacks] == [("a", 1), ("b", 1), ("c", 3)]
    assert line_of(board, "c").optimality.value == pytest.approx(1 / 8)


def test_an_incomplete_attack_is_shown_and_not_ranked() -> None:
    board = leaderboard(
        *frame(cell("a", BEST), cell("b", [0, 4, 4, 8, 8]), cell("partial", [0, 2, 4]))
    )
    last = board.attacks[-1]
    assert (last.attack, last.rank, last.done, last.expected) == ("partial", None, 3, 5)
    assert last.images == 3
    assert [line.rank for line in board.attacks[:-1]] == [1, 1]
    assert board.groups[0].stated == ("a", "b")
    assert "3 of 5" in board.text()
    assert "not ranked" in board.text()


def test_an_incomplete_attack_still_sets_the_best_per_image() -> None:
    both = cell("a", [4, 6, 8]), cell("b", [4, 6, 8])
    assert line_of(leaderboard(*frame(*both)), "a").optimality.value == 1
    board = leaderboard(*frame(*both, cell("partial", [2])))
    assert line_of(board, "a").optimality.value == pytest.approx(1 - 2 / 8)


def test_an_error_is_a_missing_row_and_no_failure() -> None:
    board = leaderboard(*frame(cell("a", BEST), cell("b", [0, 2, "out of memory", 6, 8])))
    broken = line_of(board, "b")
    assert (broken.rank, broken.errors, broken.done, broken.expected) == (None, 1, 4, 5)
    assert broken.fooling_rate.value == 1
    assert "4 of 5, 1 errors" in board.text()
    every = leaderboard(*frame(cell("a", BEST), cell("b", BEST), cell("c", ["no"] * 5)))
    assert (line_of(every, "c").done, line_of(every, "c").errors) == (0, 5)
    assert "-" in every.text()


def test_images_that_one_attack_has_leave_the_others_incomplete() -> None:
    rows = frame(cell("a", BEST), cell("b", BEST), cell("a", [3, 3], model="other"))
    board = leaderboard(*rows)
    assert [(line.attack, line.rank) for line in board.attacks] == [("a", 1), ("b", None)]
    assert (board.groups[0].tasks, board.groups[0].images) == (2, 7)
    chosen = leaderboard(*rows, where={"model": ["net"]})
    assert [line.rank for line in chosen.attacks] == [1, 1]


def test_parts_of_a_subset_are_joined() -> None:
    parts = cell("a", [0, 2]), cell("a", [4, 6, 8], first=2)
    board = leaderboard(*frame(parts[1], parts[0], cell("b", [0, 4, 4, 8, 8])))
    assert line_of(board, "a").optimality.value == 1
    assert line_of(board, "b").optimality.value == pytest.approx(2 / 3)


def test_seeds_give_mean_and_deviation_and_never_the_best() -> None:
    seeds = cell("b", BEST, seed=0), cell("b", [0, 2, INF, INF, 8], seed=1)
    board = leaderboard(*frame(cell("a", BEST), *seeds))
    line = line_of(board, "b")
    assert line.optimality.value == pytest.approx(0.75)
    assert line.optimality.deviation == pytest.approx(math.sqrt(0.125))
    assert line.fooling_rate.value == pytest.approx(0.75)
    assert (line.seeds, line.done, line.expected) == (2, 10, 10)
    assert "± " in board.text()


def test_a_seed_that_is_missing_on_one_model_makes_an_attack_incomplete() -> None:
    other: dict[str, Any] = {"model": "other"}
    board = leaderboard(
        *frame(
            cell("a", BEST),
            cell("a", BEST, **other),
            cell("b", BEST, seed=0),
            cell("b", BEST, seed=1),
            cell("b", BEST, seed=0, **other),
        )
    )
    line = line_of(board, "b")
    assert (line.rank, line.done, line.expected, line.images) == (None, 15, 20, 5)


def test_each_seed_of_random_targets_is_a_goal_of_its_own() -> None:
    cells = [
        cell(name, needed, goal="random", seed=seed)
        for name, seed, needed in (
            ("a", 0, [2, 9]),
            ("a", 1, [4, 9]),
            ("b", 0, [2, 9]),
            ("b", 1, [4, 9]),
        )
    ]
    board = leaderboard(*frame(*cells))
    assert line_of(board, "a").optimality.value == 1  # seed 0 does not set the best of seed 1
    assert [line.goal for line in board.models] == ["random, seed 0", "random, seed 1"]


def test_all_failed_all_skipped_and_one_image_have_no_optimality() -> None:
    for needed in ([INF, INF], [0, 0], [3]):
        board = leaderboard(*frame(cell("a", needed), cell("b", needed)))
        assert all(math.isnan(line.optimality.value) for line in board.attacks)
        assert all(line.rank is None for line in board.attacks)
        assert board.text()
    assert board.models[0].robust_accuracy[10].value == 0


def test_the_mean_over_models_leaves_out_those_without_optimality() -> None:
    other: dict[str, Any] = {"model": "other"}
    board = leaderboard(
        *frame(
            cell("a", BEST),
            cell("b", [0, 2, INF, INF, 8]),
            cell("a", [INF, INF], **other),
            cell("b", [INF, INF], **other),
        )
    )
    assert line_of(board, "b").optimality.value == pytest.approx(0.5)
    assert line_of(board, "b").fooling_rate.value == pytest.approx(0.25)


def test_models_are_ranked_under_the_worst_case_of_all_attacks() -> None:
    strong: dict[str, Any] = {"model": "strong"}
    half = [5.0] * 50 + [INF] * 50
    board = leaderboard(
        *frame(
            cell("a", half),
            cell("b", half[::-1]),
            cell("a", [0.0] * 10 + [12.0] * 90, **strong),
            cell("b", [0.0] * 10 + [INF] * 90, **strong),
        )
    )
    first, second = board.models
    assert (first.model, first.rank, first.clean_accuracy.value) == ("strong", 1, 0.9)
    assert [first.robust_accuracy[k].value for k in (10, 24, 50, 100)] == [0.9, 0, 0, 0]
    assert (second.model, second.rank, second.robust_accuracy[10].value) == ("net", 2, 0)
    at_50 = leaderboard(*frame(cell("a", half), cell("b", half)), rank_at=7, ks=(3,))
    assert list(at_50.models[0].robust_accuracy) == [3, 7]
    assert "at 7 pixels" in at_50.text()


def test_the_worst_case_takes_one_seed_of_each_attack_at_a_time() -> None:
    seeds = [cell("b", needed, seed=seed) for seed, needed in enumerate(([5, INF], [INF, 5]))]
    board = leaderboard(*frame(cell("a", [INF, INF]), *seeds))
    (model,) = board.models
    assert model.robust_accuracy[10].value == 0.5  # the best of both seeds would be 0


def test_a_model_without_all_images_is_not_ranked() -> None:
    board = leaderboard(
        *frame(
            cell("a", BEST),
            cell("b", BEST),
            cell("a", BEST[:2], model="small"),
            cell("b", BEST[:2], model="small"),
        )
    )
    small = board.models[-1]
    assert (small.model, small.rank, small.images, small.expected) == ("small", None, 2, 5)
    assert board.models[0].rank == 1


def test_stated_attacks_are_those_of_both_boards() -> None:
    rows = frame(cell("a", BEST), cell("b", BEST), cell("c", [0, 1, 1, 1, 1]))
    board = leaderboard(*rows, attacks=["a", "b"])
    assert [line.attack for line in board.attacks] == ["a", "b"]
    assert board.groups[0].stated == ("a", "b")
    assert line_of(board, "a").optimality.value == 1
    assert leaderboard(*rows, attacks=["a"]).attacks[0].images == 5
    with pytest.raises(UnknownName, match="did you mean"):
        leaderboard(*rows, attacks=["aa"])


def test_attacks_of_one_name_are_told_apart_by_what_differs() -> None:
    rows = frame(
        cell("a", BEST, settings={"steps": 10, "eps": 1}),
        cell("a", BEST, settings={"steps": 20, "eps": 1}),
        cell("a", BEST, settings={"steps": 20, "eps": 1}, revision=2),
        cell("b", BEST, settings={"steps": 20}, max_forwards=100),
    )
    assert {line.attack for line in leaderboard(*rows).attacks} == {
        "a steps=10 revision=1",
        "a steps=20 revision=1",
        "a steps=20 revision=2",
        "b",
    }


def test_rows_that_are_there_twice_are_refused_until_some_are_chosen() -> None:
    rows = frame(cell("a", BEST), cell("a", BEST, device="cuda"), cell("b", BEST))
    with pytest.raises(BadInput, match="several rows for image 0 of some/test"):
        leaderboard(*rows)
    assert len(leaderboard(*rows, where={"device": ["cpu"]}).attacks) == 2
    with pytest.raises(UnknownName, match="no device is called 'cdua'; did you mean cuda"):
        leaderboard(*rows, where={"device": ["cdua"]})
    with pytest.raises(UnknownName, match="no column of cells is called 'modle'"):
        leaderboard(*rows, where={"modle": ["net"]})
    with pytest.raises(BadInput, match="no cell of the store has all"):
        leaderboard(*rows, where={"device": ["cuda"], "attack": ["b"]})


def test_one_of_the_cells_counts_that_differ_in_victims_or_in_what_is_saved() -> None:
    judged: dict[str, Any] = {
        "victim_models": ["v"],
        "victims": [[1]] * 5,
        "victims_clean": [[0]] * 5,
    }
    rows = frame(cell("a", BEST), cell("a", BEST, **judged), cell("b", BEST))
    board = leaderboard(*rows, details=True, transfer=True)
    assert [(line.attack, line.done, line.seeds) for line in board.attacks] == [
        ("a", 5, 1),
        ("b", 5, 1),
    ]
    assert len(board.transfers) == 1
    broken = frame(cell("a", ["no"] * 5, **judged), cell("a", BEST), cell("b", BEST))
    assert line_of(leaderboard(*broken), "a").errors == 0


def test_labels_by_number_are_a_task_of_their_own() -> None:
    by_number: dict[str, Any] = {"labels_by_number": True, "data_hash": "x"}
    rows = frame(cell("a", BEST), cell("a", [0, 0, 4, 4, 4], **by_number))
    board = leaderboard(*rows)
    assert [line.goal for line in board.models] == ["untargeted", "untargeted, labels by number"]
    assert board.attacks[0].done == 10
    (model,) = leaderboard(*rows, where={"labels_by_number": ["true"]}).models
    assert model.clean_accuracy.value == 0.6
    both = {**by_number, "goal": "random", "seed": 1}
    (model,) = leaderboard(*frame(cell("a", BEST, **both))).models
    assert model.goal == "random, seed 1, labels by number"


def test_data_that_changed_between_runs_is_refused() -> None:
    with pytest.raises(BadInput, match="the data changed between runs"):
        leaderboard(*frame(cell("a", BEST, data_hash="x"), cell("b", BEST, data_hash="y")))


def test_attacks_without_a_common_image_are_not_ranked() -> None:
    board = leaderboard(*frame(cell("a", BEST), cell("b", BEST, first=5)))
    assert [(line.done, line.expected, line.rank) for line in board.attacks] == [(5, 10, None)] * 2
    assert [line.rank for line in board.models] == [None]


def test_rows_with_errors_alone_make_no_board() -> None:
    with pytest.raises(BadInput, match="every row that was chosen has an error"):
        leaderboard(*frame(cell("a", ["no"]), cell("b", ["no"])))


def test_the_best_so_far_counts_where_it_is_asked_for() -> None:
    seen = [[], [{"forwards": 1, "backwards": 0, "elements": 3, "pixels": 1}]]
    rows = frame(cell("a", [8, 4], steps=seen), cell("b", [8, 4]))
    assert line_of(leaderboard(*rows), "b").optimality.value == 1
    best = line_of(leaderboard(*rows, best_so_far=True), "b")
    assert best.optimality.value == pytest.approx(1 - 3 / 7)


def test_every_format_has_the_same_lines() -> None:
    board = leaderboard(*frame(cell("a_b", BEST), cell("c", [0, 2, INF, INF, 8])))
    assert "| 1 | a_b | 1.000 [1.000, 1.000] |" in board.markdown()
    assert r"1 & a\_b & 1.000 [1.000, 1.000] &" in board.latex()
    assert "trapezoid" not in board.text()
    lines = list(csv.DictReader(board.csv().splitlines()))
    assert [line["attack"] for line in lines] == ["a_b", "c"]
    assert float(lines[1]["optimality"]) == pytest.approx(0.5)
    (model,) = csv.DictReader(board.models_csv().splitlines())
    assert model["robust_accuracy_at_10"] == "0.0"
    assert str(board) == board.text()


def test_seconds_per_batch_are_those_of_all_batches_divided_by_their_number() -> None:
    batches = [1.0, 1.0, 3.0, 3.0, 4.0]  # per image: batches of 2, 6 and 4 seconds
    rows = frame(
        cell("a", [1, 2, 3, 4, 5], seconds=batches, batch_size=2),
        cell("a", [1, 2], first=5, seconds=[2.0, 2.0], batch_size=2),
    )
    board = leaderboard(*rows, details=True)
    assert line_of(board, "a").seconds_per_batch == pytest.approx((2 + 6 + 4 + 4) / 4)
    assert board.groups[0].details[0].lines[0].seconds_per_batch == pytest.approx(4)


def test_details_and_the_transfer_matrix_as_csv() -> None:
    rows = frame(
        cell("a", [1, 2], victims=[[1], [0]], victims_clean=[[0], [0]], victim_models=["v"]),
        cell("b", [3, 4], victims=[[1], [1]], victims_clean=[[0], [1]], victim_models=["v"]),
    )
    board = leaderboard(*rows, details=True, transfer=True)
    lines = list(csv.DictReader(board.details_csv().splitlines()))
    assert [(line["attack"], line["model"]) for line in lines] == [("a", "net"), ("b", "net")]
    assert [line["mean_queries"] for line in lines] == ["4.0", "4.0"]
    first, second = csv.DictReader(board.transfer_csv().splitlines())
    assert (first["attack"], first["victim"], first["fooling_rate"]) == ("a", "v", "0.5")
    assert (second["images"], second["clean_error"]) == ("1", "0.5")
    plain = leaderboard(*frame(cell("a", BEST)))
    with pytest.raises(BadInput, match="there are no details"):
        plain.details_csv()
    with pytest.raises(BadInput, match="there is no transfer matrix"):
        plain.transfer_csv()


def test_the_published_form_is_shown_where_it_is_asked_for() -> None:
    rows = frame(cell("a", BEST), cell("b", [0, 2, INF, INF, 8]))
    assert "trapezoid" in leaderboard(*rows, trapezoid=True).text()


def test_details_by_hand() -> None:
    needed = [0, 10, 10, 30, INF]
    firsts = [None, 4, 400, 4, None]
    rows = frame(
        cell("a", needed, first_success_forwards=firsts, forwards=[0, 30, 30, 30, 30]),
        cell("b", needed),
    )
    (details,) = leaderboard(*rows, details=True, baseline="a").groups[0].details
    first, second = details.lines
    assert first.of_all.value == 0.8
    assert [first.at[k].value for k in (10, 24, 50, 100)] == [0.5, 0.5, 0.75, 0.75]
    assert first.area == (10 + 10 + 30 + 30) / 5
    assert list(first.within.values()) == [0.5, 0.75, 0.75]
    assert (first.mean_queries, first.median_queries) == (136, 4)
    assert (first.mean_queries_all, first.median_queries_all) == ((408 + 30) / 4, 17)
    assert (first.percent_pixels, first.percent_elements) == (20, 20)
    assert (first.mean_of_ratios, first.ratio_of_sums) == (1, 1)
    assert second.mean_of_ratios == pytest.approx(35 / 15)
    assert second.ratio_of_sums == pytest.approx(35 / 15)
    assert details.rows[0].median_pixels.value == 20
    assert (details.pairs[0].images, details.pairs[0].p_pixels) == (4, 1)
    with pytest.raises(UnknownName, match="no attack in the store is called 'z'"):
        leaderboard(*rows, details=True, baseline="z")


def test_details_of_skipped_images_alone_are_undefined() -> None:
    board = leaderboard(*frame(cell("a", [0, 0]), cell("b", [0, 0])), details=True)
    (details,) = board.groups[0].details
    rates = next(table for table in details.tables() if "cost" in table.caption)
    assert rates.rows[0] == ("a", "0 of 2", "-", "- + -", "-")


def test_queries_are_unknown_without_a_trace() -> None:
    rows = frame(cell("a", BEST, first_success_forwards=[None] * 5), cell("b", BEST))
    board = leaderboard(*rows, details=True)
    assert all(map(math.isnan, board.groups[0].details[0].lines[0].within.values()))
    assert "100 forwards" in board.text()


def test_the_transfer_matrix_by_hand() -> None:
    judged: dict[str, Any] = {
        "victim_models": ["other", "third"],
        "victims": [[1, 0], [1, 0], [0, 0], [1, 0]],
        "victims_clean": [[0, 0], [0, 0], [0, 0], [1, 0]],
    }
    rows = frame(cell("a", [0, 3, 3, 3], **judged), cell("b", [0, 3, 3, 3]))
    matrix = leaderboard(*rows, transfer=True).transfers
    (line,) = matrix.values()
    assert list(matrix) == [("a", "net", "some/test", "untargeted")]
    assert line["other"][0].fooled == (1, 2)
    assert line["other"][0].floor == (1, 3)
    assert line["third"][0].fooled == (0, 3)
    text = leaderboard(*rows, transfer=True).text()
    assert "50.0 % [9.5, 90.5] (33.3 %)" in text
    assert leaderboard(*frame(cell("b", BEST)), transfer=True).transfers == {}


def test_networks_of_one_name_are_sources_and_victims_of_their_own() -> None:
    def judged(after: int, **about: Any) -> list[dict[str, Any]]:
        victims: dict[str, Any] = {"victims": [[after]] * 2, "victims_clean": [[0]] * 2}
        return cell("a", [3, 3], victim_models=["other"], **victims, **about)

    old, new = "1" * 64, "2" * 64
    rows = frame(judged(0, weights=old), judged(1, weights=new))
    matrix = leaderboard(*rows, transfer=True).transfers
    rates = {source[1]: line["other"][0].fooled for source, line in matrix.items()}
    assert rates == {"net (11111111)": (0, 2), "net (22222222)": (2, 2)}
    rows = frame(judged(0, victim_weights=[old]), judged(1, victim_weights=[new]))
    (line,) = leaderboard(*rows, transfer=True).transfers.values()
    rates = {victim: one.fooled for victim, (one,) in line.items()}
    assert rates == {"other (11111111)": (0, 2), "other (22222222)": (2, 2)}


def test_an_image_that_a_victim_judged_twice_counts_once() -> None:
    once: dict[str, Any] = {
        "victim_models": ["v"],
        "victims": [[1]] * 2,
        "victims_clean": [[0]] * 2,
    }
    twice: dict[str, Any] = {
        "victim_models": ["v", "w"],
        "victims": [[1, 0]] * 2,
        "victims_clean": [[0, 0]] * 2,
    }
    further = cell("a", [3, 3], first=2, **twice)
    rows = frame(cell("a", [3, 3], **once), cell("a", [3, 3], **twice), further)
    (line,) = leaderboard(*rows, transfer=True).transfers.values()
    assert [one.fooled for one in line["v"]] == [(4, 4)]
    assert [one.fooled for one in line["w"]] == [(0, 4)]


def test_transfer_over_seeds_is_a_mean() -> None:
    seeds = [
        cell(
            "a", [3, 3], seed=seed, victim_models=["other"], victims=after, victims_clean=[[0]] * 2
        )
        for seed, after in enumerate(([[1], [0]], [[1], [1]]))
    ]
    text = leaderboard(*frame(*seeds), transfer=True).text()
    assert "75.0 ± 35.4 %" in text
