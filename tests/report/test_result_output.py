"""A result as rows, a CSV file, PNG files and a figure."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import AttackResult, BadInput, Classifier, Failure, load_data, run_attack
from pinprick.attacks import Greedy
from pinprick.report.png import read_png
from pinprick.trace import Passes


@pytest.fixture
def result(linear: Classifier, images: Tensor, labels: Tensor) -> AttackResult:
    """Four images; the last is misclassified to begin with."""
    labels = labels[:4].clone()
    labels[3] = (labels[3] + 1) % 4
    return run_attack(Greedy(), linear, images[:4], labels, ids=[7, 5, 3, 1])


def run_failed(result: AttackResult) -> AttackResult:
    return replace(
        result, adversarial_logits=result.clean_logits, remarks=(Failure.NOT_FOUND,) * len(result)
    )


def test_rows_are_plain_values_under_the_names_of_the_result(result: AttackResult) -> None:
    rows = result.rows()
    assert json.loads(json.dumps(rows)) == rows
    failed = run_failed(result).rows()
    assert {type(value) for row in failed for value in row.values()} <= {
        bool,
        int,
        float,
        str,
        type(None),
    }
    assert [row["id"] for row in rows] == [7, 5, 3, 1]
    assert [row["skipped"] for row in rows] == [False, False, False, True]
    for name in ("success", "l0_pixels", "l2", "forwards", "batch_size"):
        assert [row[name] for row in rows] == getattr(result, name).tolist()
    assert [row["clean"] for row in rows] == result.clean_logits.argmax(dim=1).tolist()
    assert rows[0]["clean_name"] == f"class {rows[0]['clean']}"
    assert "trace" not in rows[0]


def test_rows_have_the_names_of_the_model_and_infinity_where_the_goal_was_missed(
    result: AttackResult, linear: Classifier, tmp_path: Path
) -> None:
    named = Classifier(linear.net, classes=("a", "b", "c", "d"))
    failed = run_failed(result)
    first, *_, last = failed.rows(named)
    assert first["label_name"] in ("a", "b", "c", "d")
    assert first["needed_pixels"] == first["needed_elements"] == math.inf
    assert last["needed_pixels"] == 0  # it was wrong already
    failed.to_csv(tmp_path / "failed.csv")
    with (tmp_path / "failed.csv").open(newline="") as file:
        read = [float(line["needed_pixels"]) for line in csv.DictReader(file)]
    assert read == failed.needed_pixels.tolist()


@pytest.mark.plain  # numbers and values of other kinds
@pytest.mark.parametrize("model", [("a", "b", "c", "d"), "mynet", torch.nn.Identity()])
def test_names_come_from_a_classifier(result: AttackResult, model: Any) -> None:
    line = r"^model must be the attacked Classifier, which has the names of the classes; got "
    for call in (result.rows, result.plot):
        with pytest.raises(BadInput, match=line):
            call(model)


def test_stages_and_the_start_are_columns(result: AttackResult) -> None:
    passes = Passes(torch.arange(4), torch.arange(4) + 10)
    row = replace(result, stages={"search": passes}, start=passes).rows()[2]
    assert (row["search_forwards"], row["search_backwards"]) == (2, 12)
    assert (row["start_forwards"], row["start_backwards"]) == (2, 12)
    assert result.rows()[2]["start_forwards"] is None


def test_a_csv_file_holds_the_rows(result: AttackResult, tmp_path: Path) -> None:
    result.to_csv(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    rows = result.rows()
    assert list(read[0]) == list(rows[0])
    for line, row in zip(read, rows, strict=True):
        assert line == {key: "" if value is None else str(value) for key, value in row.items()}
    with pytest.raises(BadInput, match="the result holds no image to write as a row"):
        result[:0].to_csv(tmp_path / "none.csv")
    with pytest.raises(BadInput, match="cannot write"):
        result.to_csv(tmp_path / "missing" / "rows.csv")


def test_pngs_hold_the_rounded_images_in_order(result: AttackResult, tmp_path: Path) -> None:
    paths = result.save_pngs(tmp_path / "new" / "folder")
    assert [path.name for path in paths] == ["0000.png", "0001.png", "0002.png", "0003.png"]
    for path, adv in zip(paths, result.adversarial, strict=True):
        rounded = (adv * 255).round() / 255
        torch.testing.assert_close(read_png(path), rounded.float(), rtol=0, atol=1e-6)


def test_only_what_fools_in_its_file_is_said_to_fool(result: AttackResult, tmp_path: Path) -> None:
    rounded = result.rounded_logits.clone()
    rounded[0] = result.clean_logits[0]  # fools until it is rounded
    result = replace(result, rounded_logits=rounded)
    assert result.success.tolist() == [True, True, True, True]
    result.save_pngs(tmp_path)
    with (tmp_path / "images.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [line["fools"] for line in read] == ["False", "True", "True", "False"]
    assert [line["attacked"] for line in read] == ["True", "True", "True", "False"]
    assert [int(line["prediction"]) for line in read] == rounded.argmax(dim=1).tolist()
    data = load_data(f"csv:{tmp_path / 'images.csv'}")
    assert torch.equal(data.labels, result.goal.labels)


def test_images_that_no_png_can_hold_are_refused_before_a_folder_is_made(
    result: AttackResult, tmp_path: Path
) -> None:
    two = replace(result, images=result.images[:, :2], adversarial=result.adversarial[:, :2])
    with pytest.raises(BadInput, match="a PNG holds 1 or 3 channels, these images have 2"):
        two.save_pngs(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_a_plot_has_one_line_per_image_and_is_shown_in_a_notebook(
    result: AttackResult, linear: Classifier
) -> None:
    named = Classifier(linear.net, classes=("a$", "b$", "c$", "d$"))
    figure = result.plot(named, most=2)
    assert len(figure.axes) == 6
    assert figure.get_suptitle() == f"greedy on {result.model}, first 2 of 4 images"
    assert figure.axes[0].get_title() == f"label: {named.class_name(int(result.goal.labels[0]))}"
    assert figure.axes[2].get_title() == "fooled"
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert len(result.plot().axes) == 12


def test_a_plot_of_nothing_is_refused(result: AttackResult) -> None:
    with pytest.raises(BadInput, match="the result holds no image to draw"):
        result[:0].plot()
    with pytest.raises(BadInput, match="most must be at least 1, got 0"):
        result.plot(most=0)
