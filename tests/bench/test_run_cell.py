"""A cell gives one row per image, and what fails keeps its error as its result."""

import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch

from bench.conftest import WritePlan
from pinprick.attacks import SigmaZero
from pinprick.bench import run_cell as module
from pinprick.bench.cache import Cache, LabelledImages
from pinprick.bench.cell import Cell
from pinprick.bench.cell_file import rows_sha256
from pinprick.bench.plan_file import read_plan
from pinprick.bench.row_schema import ROWS, TIMES
from pinprick.bench.rows import rebuild
from pinprick.bench.run_cell import failed_cell, run_cell, targets_of
from pinprick.data.select import load_subset
from pinprick.errors import BadInput
from pinprick.model import Classifier
from pinprick.problem import Problem
from pinprick.run import run_attack
from pinprick.types import Images, Labels


@pytest.fixture
def cell(write_plan: WritePlan, cache: Cache) -> Cell:
    text = """
        models = ["pinprick:fashion_cnn"]
        data = ["fashion_sample[2:8]"]
        attacks = [{name = "sigma_zero", steps = 5}]
        images_per_cell = 4
        batch_size = 2
        dense = true
        """
    return read_plan(write_plan(text)).cells(cache)[0]


def test_rows_are_those_of_run_attack(cell: Cell, cache: Cache) -> None:
    table, origin = run_cell(cell, cache)
    data = load_subset("fashion_sample[2:6]")
    result = run_attack(
        SigmaZero(steps=5),
        cache.model(cell.model),
        data.images(),
        data.labels,
        ids=data.indices,
        batch_size=2,
    )
    assert table.schema == ROWS
    assert table.column("index").to_pylist() == [0, 1, 2, 3]
    assert table.column("success").to_pylist() == result.success.tolist()
    assert table.column("forwards").to_pylist() == result.forwards.tolist()
    for row, clean, adv in zip(table.to_pylist(), result.images, result.adversarial, strict=True):
        assert torch.equal(rebuild(row, clean), adv)
    assert origin.seconds > 0
    assert origin.peak_memory is None or origin.peak_memory > 1_000_000


def test_the_same_cell_gives_the_same_rows_apart_from_times(cell: Cell, cache: Cache) -> None:
    digests = {rows_sha256(run_cell(cell, cache)[0], without=TIMES) for _ in range(2)}
    assert len(digests) == 1


def test_the_number_of_threads_is_that_of_the_cell_and_ends_with_it(
    cell: Cell, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, before = [], torch.get_num_threads()

    def watch(attack: SigmaZero, problem: Problem) -> Images:
        seen.append(torch.get_num_threads())
        return problem.images

    monkeypatch.setattr(SigmaZero, "__call__", watch)
    run_cell(replace(cell, threads=before + 1), cache)
    assert set(seen) == {before + 1}
    assert torch.get_num_threads() == before


def test_a_batch_that_fails_keeps_its_error_and_the_others_go_on(
    cell: Cell, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = iter((0, 1))
    work = SigmaZero.__call__

    def fail_first(attack: SigmaZero, problem: Problem) -> Images:
        if next(calls) == 0:
            raise RuntimeError("no\nluck")
        return work(attack, problem)

    monkeypatch.setattr(SigmaZero, "__call__", fail_first)
    table = run_cell(cell, cache)[0]
    assert table.column("error").to_pylist() == ["RuntimeError: no luck"] * 2 + [""] * 2
    assert table.column("index").to_pylist() == [0, 1, 2, 3]
    assert table.column("forwards").null_count == 2


def test_ctrl_c_ends_a_cell(cell: Cell, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(attack: SigmaZero, problem: Problem) -> Images:
        raise KeyboardInterrupt

    monkeypatch.setattr(SigmaZero, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, cache)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"revision": 999}, "has revision .* here, the cell wants 999"),
        ({"code": "x"}, "the code of sigma_zero is another"),
        ({"weights": "x"}, "pinprick:fashion_cnn has other weights"),
        ({"data_hash": "x"}, "holds other images"),
        ({"victims": (("pinprick:mnist_cnn", "x"),)}, "pinprick:mnist_cnn has other weights"),
    ],
)
def test_a_cell_made_for_something_else_is_refused(
    cell: Cell, cache: Cache, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        run_cell(replace(cell, **change), cache)


def test_victims_judge_clean_and_adversarial_images(
    write_plan: WritePlan, cache: Cache, numbered: str
) -> None:
    text = f"""
        models = ["pinprick:mnist_cnn"]
        victims = ["pinprick:mnist_cnn_pgd_at", "pinprick:mnist_cnn_fast_at"]
        data = ["{numbered}"]
        attacks = ["greedy"]
        """
    (cell,) = read_plan(write_plan(text)).cells(cache)
    rows = run_cell(cell, cache)[0].to_pylist()
    clean = cache.images(cell.model, cell.data, 0, 4).images
    adv = torch.stack([rebuild(row, image) for row, image in zip(rows, clean, strict=True)])
    for number, (name, _) in enumerate(cell.victims):
        for column, images in (("victims_clean", clean), ("victims", adv)):
            with cache.model(name).frozen(), torch.no_grad():
                wanted = cache.model(name)(images).argmax(dim=1).tolist()
            assert [row[column][number] for row in rows] == wanted


def test_a_victim_that_fails_leaves_the_rows_of_the_attack(
    write_plan: WritePlan, cache: Cache, numbered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""
        models = ["pinprick:mnist_cnn"]
        victims = ["pinprick:mnist_cnn_pgd_at"]
        data = ["{numbered}"]
        attacks = ["greedy"]
        batch_size = 2
        """
    (cell,) = read_plan(write_plan(text)).cells(cache)
    sound, _ = run_cell(cell, cache)
    work, calls = module.predictions, iter((0, 1, 2))

    def fail_first(victim: Classifier, images: Images) -> Labels:
        if next(calls) == 0:
            raise RuntimeError("no\nmemory")
        return work(victim, images)

    monkeypatch.setattr(module, "predictions", fail_first)
    table, _ = run_cell(cell, cache)
    judged = ("victims", "victims_clean", "remark")
    assert rows_sha256(table, without=(*TIMES, *judged)) == rows_sha256(
        sound, without=(*TIMES, *judged)
    )
    for name in ("victims", "victims_clean"):
        wanted = sound.column(name).to_pylist()
        assert table.column(name).to_pylist() == [None, None, *wanted[2:]]
    note = "no predictions of victims: pinprick:mnist_cnn_pgd_at: RuntimeError: no memory"
    before = sound.column("remark").to_pylist()
    wanted = [f"{one}; {note}" if one else note for one in before[:2]] + before[2:]
    assert table.column("remark").to_pylist() == wanted


def test_random_targets_depend_on_seed_and_index_alone_and_are_never_the_label() -> None:
    labels, ids = torch.arange(1000) % 10, torch.arange(1000)
    part = LabelledImages(torch.empty(1000, 1, 1, 1), labels, ids)
    logits = torch.zeros(1000, 10)
    targets = targets_of("random", 0, logits, part)
    assert targets is not None
    assert not (targets == labels).any()
    counts = ((targets - labels) % 10).bincount(minlength=10)[1:]
    assert counts.min() > 70  # of 111 on average
    some = LabelledImages(part.images[500:], labels[500:], ids[500:])
    again, other = (targets_of("random", seed, logits[500:], some) for seed in (0, 1))
    assert again is not None
    assert other is not None
    assert torch.equal(again, targets[500:])
    assert not torch.equal(again, other)


@pytest.mark.parametrize("goal", ["least_likely", "class 3"])
def test_a_targeted_goal_has_its_target_in_every_row(cell: Cell, cache: Cache, goal: str) -> None:
    cell = replace(cell, goal=goal)
    rows = run_cell(cell, cache)[0].to_pylist()
    given = cache.images_of(cell)
    with cache.model(cell.model).frozen(), torch.no_grad():
        least = cache.model(cell.model)(given.images).argmin(dim=1).tolist()
    assert [row["target"] for row in rows] == (least if goal == "least_likely" else [3] * 4)


def test_a_whole_cell_may_fail(cell: Cell) -> None:
    table, origin = failed_cell(cell, "the worker died", 2.5)
    assert table.column("error").to_pylist() == ["the worker died"] * 4
    assert table.column("index").to_pylist() == [0, 1, 2, 3]
    assert origin.seconds == 2.5


def test_a_cache_arrives_empty_in_another_process(cell: Cell, cache: Cache) -> None:
    cache.model_of(cell)
    copy = pickle.loads(pickle.dumps(cache))
    assert len(pickle.dumps(copy)) < 1000
    assert copy.weights(cell.model) == cell.weights
