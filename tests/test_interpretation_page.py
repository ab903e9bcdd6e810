"""The page on interpretation: how its answer compares and pools the rows of runs."""

from typing import Any

import pytest

from generators.interpretation import figures, rows, tables
from generators.interpretation.answer import answer

pytestmark = pytest.mark.plain
FLIP = "obscuring alone"


def run(
    attack: str,
    decided: tuple[float, float] = (0.8, 0.9),
    network: str = "ResNet-20",
    **totals: Any,
) -> rows.Row:
    low, high = decided
    share = {"value": (low + high) / 2, "low": low, "high": high, "images": 50}
    case = {"network": network, "goal": "untargeted"}
    return {"attack": attack, **case, "totals": {"decided": share, **totals}}


@pytest.mark.parametrize(
    ("dense", "where"),
    [
        ((0.70, 0.79), "below"),
        ((0.70, 0.80), "overlaps"),
        ((0.86, 0.97), "overlaps"),
        ((0.96, 0.99), "above"),
    ],
)
def test_the_dense_interval_is_apart_only_if_it_meets_no_sparse_one(
    dense: tuple[float, float], where: str
) -> None:
    sparse = [run("pinprick", (0.8, 0.85)), run("wifgsm", (0.9, 0.95))]
    assert rows.interval_beside(run("ifgsm", dense), sparse) == where


def test_only_networks_with_both_kinds_of_attacks_are_compared() -> None:
    both = [run("pinprick"), run("ifgsm")]
    found = rows.dense_and_sparse([*both, run("wifgsm", network="ResNet-18")])
    assert found == {("ResNet-20", "untargeted"): (both[1], [both[0]])}


def test_a_network_with_many_attacks_counts_once_in_the_mean_over_networks() -> None:
    def flips(value: float) -> list[dict[str, Any]]:
        return [{"name": FLIP, "leaves": {"value": value, "images": 10}}]

    many = [run(attack, flips=flips(0.0)) for attack in ("pinprick", "wifgsm", "fmn")]
    found = [*many, run("pinprick", network="ResNet-18", flips=flips(0.8))]
    assert rows.pooled_flip(found, FLIP, "leaves") == (8, 40)
    mean = rows.mean_over_cases(found, lambda mine: rows.pooled_flip(mine, FLIP, "leaves"))
    assert mean == pytest.approx(0.4)


def test_an_attack_that_a_network_has_twice_is_named_with_its_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [run("wifgsm"), run("wifgsm,steps=200"), run("wifgsm,steps=200", network="ResNet-18")]
    monkeypatch.setattr(rows, "all_rows", lambda: found)
    titles = [rows.title_of(row) for row in found]
    assert titles == ["WI-FGSM", "WI-FGSM (`steps=200`)", "WI-FGSM"]


def test_runs_of_the_answer_have_enough_images() -> None:
    assert min(row["totals"]["explained"] for row in rows.all_rows()) >= rows.LEAST_IMAGES


def test_the_answer_and_the_tables_name_the_networks_whose_dense_labels_are_less_decided() -> None:
    found = rows.dense_and_sparse(rows.same_sampling())
    lower = [case for case, both in found.items() if rows.interval_beside(*both) == "below"]
    text = answer().replace("\n   ", " ")
    assert f"less often on {len(lower)} of {len(found)} networks and goals" in text
    assert all(f"{', '.join(case)}: " in text for case in lower)
    assert len(list(tables.coverage())) == 1 + len(rows.NETWORKS) * len(rows.GOALS)


@pytest.mark.parametrize("name", figures.PLOTS)
def test_a_label_of_a_legend_stands_once(name: str) -> None:
    (legend,) = figures.PLOTS[name]().legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(labels) == len(set(labels)) > 1
