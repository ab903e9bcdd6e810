"""Rows of a benchmark: results as a table, and adversarial images rebuilt from it."""

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import torch
from attacked_images import attacked
from test_result import result_of
from torch import Tensor

from pinprick import BadInput
from pinprick.bench.row_schema import ROWS
from pinprick.bench.rows import error_table, rebuild, rebuild_images, to_table
from pinprick.trace import Trace


def perturbed(count: int = 4, changes: int = 3) -> tuple[Tensor, Tensor]:
    """Clean images, and the same with a few elements changed, one of them to -0.0."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(count, 3, 6, 5, generator=generator)
    images[:, 0, 0, 0] = 0.0
    adv = images.clone()
    adv[:, 0, 0, 0] = -0.0
    for row in range(count):
        at = torch.randperm(89, generator=generator)[:changes] + 1
        adv[row].view(-1)[at] = torch.rand(changes, generator=generator)
    return images, adv


def bits(images: Tensor) -> Tensor:
    return images.contiguous().view(torch.int32)


def test_a_table_has_the_columns_of_the_schema_and_one_row_per_image() -> None:
    table = to_table(attacked(2, 1, math.inf, wrong=1), "key")
    assert table.schema == ROWS
    assert table.column("cell").to_pylist() == ["key"] * 3
    assert table.column("index").to_pylist() == [100, 101, 102]
    assert table.column("pixels").to_pylist() == [2, 1, 0]
    assert table.column("skipped").to_pylist() == [False, False, True]
    assert table.column("seconds").to_pylist() == [2 / 3] * 3


def test_counts_and_norms_are_null_where_the_attack_failed() -> None:
    fooled, failed = to_table(attacked(2, math.inf), "key").to_pylist()
    assert [fooled[name] for name in ("pixels", "elements", "l1", "linf")] == [2, 2, 2.0, 1.0]
    assert fooled["l2"] == pytest.approx(math.sqrt(2))
    names = ("pixels", "elements", "l1", "l2", "linf")
    assert [failed[name] for name in names] == [None] * 5
    assert failed["remark"] == "not found"


def test_predictions_are_null_where_logits_are_not_finite() -> None:
    result = attacked(1, 1)
    broken = result.adversarial_logits.clone()
    broken[1] = math.nan
    fine, unknown = to_table(replace(result, adversarial_logits=broken), "key").to_pylist()
    assert (fine["adversarial_class"], fine["margin"]) == (1, -1.0)
    assert fine["adversarial_confidence"] == pytest.approx(1 / (1 + math.exp(-1)))
    names = ("adversarial_class", "adversarial_confidence", "margin")
    assert [unknown[name] for name in names] == [None] * 3


def test_images_are_rebuilt_bit_for_bit() -> None:
    images, adv = perturbed()
    table = to_table(result_of(images, adv), "key")
    rebuilt, done = rebuild_images(table, images)
    assert done.all()
    assert torch.equal(bits(rebuilt), bits(adv))
    for row, image, expected in zip(table.to_pylist(), images, adv, strict=True):
        assert torch.equal(bits(rebuild(row, image)), bits(expected))


def test_images_are_rebuilt_from_tables_in_several_chunks() -> None:
    images, adv = perturbed()
    halves = [
        to_table(result_of(images[:2], adv[:2]), "a"),
        to_table(result_of(images[2:], adv[2:]), "a"),
    ]
    rebuilt, _ = rebuild_images(pa.concat_tables(halves), images)
    assert torch.equal(rebuilt, adv)


def test_dense_perturbations_are_saved_on_demand() -> None:
    images, adv = perturbed(changes=23)  # of 90 elements
    result = result_of(images, adv)
    table = to_table(result, "key")
    assert table.column("positions").null_count == table.column("values").null_count == 4
    unchanged, done = rebuild_images(table, images)
    assert torch.equal(unchanged, images)
    assert not done.any()
    with pytest.raises(BadInput, match="no perturbation that fits"):
        rebuild(table.to_pylist()[0], images[0])
    rebuilt, _ = rebuild_images(to_table(result, "key", dense=True), images)
    assert torch.equal(rebuilt, adv)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("positions", [1, 2, 90]),
        ("positions", [-1, 2, 3]),
        ("positions", [1, 2]),
        ("positions", None),
        ("values", [0.0, 0.0, 1.5]),
        ("values", [0.0, 0.0, math.nan]),
        ("values", None),
        ("shape", [3, 5, 6]),
    ],
)
def test_a_perturbation_that_does_not_fit_leaves_its_image_clean(column: str, value: Any) -> None:
    images, adv = perturbed()
    rows = to_table(result_of(images, adv), "key").to_pylist()
    rows[1] |= {"positions": [1, 2, 3], "values": [0.0, 0.0, 0.0]} | {column: value}
    rebuilt, done = rebuild_images(pa.Table.from_pylist(rows, schema=ROWS), images)
    assert done.tolist() == [True, False, True, True]
    assert torch.equal(rebuilt[1], images[1])
    assert torch.equal(rebuilt[2:], adv[2:])


def test_images_of_another_type_than_float32_are_refused() -> None:
    result = attacked(1)
    images, adv = result.images.double(), result.adversarial.double()
    with pytest.raises(BadInput, match="float32"):
        to_table(replace(result, images=images, adversarial=adv), "key")


def test_victims_predictions_are_lists_in_the_order_of_the_victims() -> None:
    first, second = torch.tensor([1, 2]), torch.tensor([3, 4])
    table = to_table(attacked(1, 1), "key", victims=[first, second], victims_clean=[first, first])
    assert table.column("victims").to_pylist() == [[1, 3], [2, 4]]
    assert table.column("victims_clean").to_pylist() == [[1, 1], [2, 2]]


def test_steps_are_the_falls_of_the_counts_in_a_trace() -> None:
    inf = math.inf
    trace = Trace(
        steps=torch.tensor([4, 1]),
        forwards=torch.tensor([0, 3, 5, 9, 0]),
        backwards=torch.tensor([0, 1, 2, 4, 0]),
        margin=torch.tensor([2.0, -0.1, -0.2, -0.2, 1.0]),
        pixels=torch.tensor([inf, 3, 3, 2, inf]),
        elements=torch.tensor([inf, 7, 7, 7, inf]),
    )
    fooled, failed = to_table(replace(attacked(2, inf), trace=trace), "key").to_pylist()
    assert fooled["steps"] == [
        {"forwards": 3, "backwards": 1, "elements": 7, "pixels": 3},
        {"forwards": 9, "backwards": 4, "elements": 7, "pixels": 2},
    ]
    names = ("first_success_forwards", "first_success_backwards", "steps")
    assert [fooled[name] for name in names[:2]] == [3, 1]
    assert [failed[name] for name in names] == [None, None, []]


def test_rows_of_an_error_have_the_error_and_nothing_else() -> None:
    table = error_table("key", range(5, 7), "out of memory")
    assert table.schema == ROWS
    for index, row in enumerate(table.to_pylist(), start=5):
        known = {name: value for name, value in row.items() if value is not None}
        assert known == {"cell": "key", "index": index, "error": "out of memory"}
    _, done = rebuild_images(table, torch.zeros(2, 1, 2, 2))
    assert not done.any()
