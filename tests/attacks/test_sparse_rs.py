"""Sparse-RS: its schedule, what it keeps, the oracle, and models that give scores alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pinprick import BadInput, Classifier, Goal, build, load_model, run_attack, score_model
from pinprick.attacks import SparseRS
from pinprick.attacks.sparse_rs import Swaps, SwapState
from pinprick.oracle import exact_images, exact_linear, fewest_elements, fewest_pixels, sure_images

OWN = 7  # questions of the referee before the attack on one image: 2, and 5 for the noise


class Asked:
    """A model that remembers the margin and the image of every question about one image."""

    def __init__(self, model: Classifier, goal: Goal) -> None:
        self.model, self.goal = model, goal
        self.margins: list[float] = []
        self.images: list[Tensor] = []

    def __call__(self, images: Tensor) -> Tensor:
        logits = self.model(images)
        self.images += [image.clone() for image in images]
        self.margins += self.goal.margin(logits).tolist()
        return logits


def guesses(model: Classifier, images: Tensor) -> Tensor:
    with torch.no_grad():
        return model(images).argmax(dim=1)


# The schedule


STARTS = {0: 1, 1: 2, 51: 4, 201: 5, 501: 6, 1001: 8, 2001: 10, 4001: 12, 6001: 15, 8001: 20}


@pytest.mark.parametrize(("start", "divisor"), STARTS.items())
def test_the_share_falls_as_in_the_paper(start: int, divisor: int) -> None:
    end = min((other for other in STARTS if other > start), default=10_000) - 1
    for spent in (start, end):
        assert SparseRS()._share(spent, 10_000, 0.3) == 0.3 / divisor
        assert SparseRS()._share(2 * spent, 20_000, 0.3) == 0.3 / divisor
        assert SparseRS(schedule="constant")._share(spent, 10_000, 0.8) == 0.4


# The search


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 4])
def test_finds_the_optimum_of_a_linear_model_and_no_less(classes: int) -> None:
    """One channel, 64 pixels, k up to 4."""
    model, images = exact_linear(classes, (1, 8, 8), seed=3), exact_images(160, (1, 8, 8))
    labels = guesses(model, images)
    fewest = fewest_pixels(model, images, Goal(labels))
    found = 0
    for k in range(1, 5):
        at = fewest == k
        assert at.any()
        result = run_attack(SparseRS(k=k, queries=1500), model, images[at], labels[at])
        assert (result.l0_pixels <= k).all()
        found += int(result.success.sum())
        if k > 1:
            less = run_attack(SparseRS(k=k - 1, queries=300), model, images[at], labels[at])
            assert not less.success.any()
    assert found >= 0.95 * (fewest <= 4).sum()


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["pixels", "elements"])
def test_the_smallest_k_comes_near_the_optimum_of_a_linear_model(unit: str) -> None:
    model = exact_linear(4, (3, 8, 8), seed=4)
    images = sure_images(model, exact_images(16, (3, 8, 8), seed=6))
    labels = guesses(model, images)
    attack = build({"name": "sparse_rs", "k": "smallest", "unit": unit, "queries": 300})
    assert attack.facts().kind == "minimal"
    assert attack.facts().max_forwards == 3000
    result = run_attack(attack, model, images, labels)
    needed = result.needed_pixels if unit == "pixels" else result.needed_elements
    fewest = fewest_pixels if unit == "pixels" else fewest_elements
    ratio = needed / fewest(model, images, Goal(labels))
    assert (ratio >= 1).all()
    assert ratio.mean() <= 1.25


def test_reaches_targets_by_the_cross_entropy() -> None:
    model, images = exact_linear(4, (3, 6, 5)), exact_images(12, (3, 6, 5))
    labels = guesses(model, images)
    targets = (labels + 2) % 4
    attack = SparseRS(k=10, queries=400)
    result = run_attack(attack, model, images, labels, targets=targets)
    assert result.success.all()
    assert torch.equal(guesses(model, result.adversarial), targets)
    same = SparseRS(k=10, queries=400, loss="cross_entropy")
    again = run_attack(same, model, images, labels, targets=targets)
    assert torch.equal(again.adversarial, result.adversarial)
    other = SparseRS(k=10, queries=400, loss="margin")
    third = run_attack(other, model, images, labels, targets=targets)
    assert not torch.equal(third.adversarial, result.adversarial)


def test_the_papers_settings_depend_on_the_goal() -> None:
    model, images = exact_linear(4, (3, 6, 5)), exact_images(12, (3, 6, 5))
    labels = guesses(model, images)
    goals = ((None, 0.3, 10_000), ((labels + 2) % 4, 0.1, 100_000))
    for targets, alpha, queries in goals:
        own = run_attack(SparseRS(k=20), model, images, labels, targets=targets, max_forwards=60)
        named = SparseRS(k=20, alpha=alpha, queries=queries)
        same = run_attack(named, model, images, labels, targets=targets, max_forwards=60)
        assert torch.equal(own.adversarial, same.adversarial)
        assert torch.equal(own.forwards, same.forwards)
    assert SparseRS().facts().max_forwards == 100_000  # towards a target, which takes more
    assert SparseRS(queries=70).facts().max_forwards == 70


def test_an_image_that_fails_keeps_its_best_try() -> None:
    model = exact_linear(4, (3, 6, 5), seed=2)
    images = sure_images(model, exact_images(1, (3, 6, 5)))
    labels = guesses(model, images)
    asked = Asked(model, Goal(labels))
    result = run_attack(SparseRS(k=1, queries=80), Classifier(asked), images, labels)
    assert not result.success.any()
    asked.margins, asked.images = asked.margins[OWN:-2], asked.images[OWN:-2]  # the referee's own
    assert len(asked.margins) == result.forwards.item() == 80
    best = int(np.argmin(asked.margins))
    assert torch.equal(result.adversarial[0], asked.images[best])
    assert (result.l0_pixels == 1).all()


@pytest.mark.parametrize("limit", [1, 2, 7, 30])
def test_what_was_found_is_kept_when_the_budget_runs_out(limit: int) -> None:
    """The last question is answered with the clean logits, which must not be taken for its own."""
    model = exact_linear(4, (3, 6, 5), seed=2)
    images = sure_images(model, exact_images(6, (3, 6, 5)))
    labels = guesses(model, images)
    held = run_attack(SparseRS(k=2), model, images, labels, max_forwards=limit)
    assert (held.forwards == limit).all()
    assert held.out_of_budget.all()
    for row in range(6):
        only = slice(row, row + 1)
        asked = Asked(model, Goal(labels[only]))
        one = run_attack(
            SparseRS(k=2),
            Classifier(asked),
            images[only],
            labels[only],
            ids=torch.tensor([row]),
            max_forwards=limit,
        )
        assert len(asked.margins) == limit + OWN + 2
        best = OWN + int(np.argmin(asked.margins[OWN:-2]))
        assert torch.equal(one.adversarial[0], asked.images[best])
        assert torch.equal(held.adversarial[row], asked.images[best])


def test_a_budget_of_nothing_gives_the_clean_image(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(SparseRS(), linear, images, labels, max_forwards=0)
    assert torch.equal(result.adversarial, images)
    assert set(result.remarks) == {"out of budget"}


def test_a_fooled_image_is_asked_about_no_more(
    linear: Classifier, images: Tensor, labels: Tensor
) -> None:
    result = run_attack(SparseRS(k=30, queries=500), linear, images, labels)
    assert result.success.all()
    for row in range(len(images)):
        only = slice(row, row + 1)
        asked = Asked(linear, Goal(labels[only]))
        ids = torch.tensor([row])
        run_attack(
            SparseRS(k=30, queries=500), Classifier(asked), images[only], labels[only], ids=ids
        )
        margins = asked.margins[OWN:-2]
        assert len(margins) == result.forwards[row]
        assert (torch.tensor(margins[:-1]) >= 0).all()
        assert margins[-1] <= 0


@pytest.mark.parametrize("k", [1, 4, 1000])
def test_never_changes_more_than_k(curved: Classifier, images: Tensor, k: int) -> None:
    labels = guesses(curved, images)
    by_pixels = run_attack(SparseRS(k=k, queries=40), curved, images, labels)
    assert (by_pixels.l0_pixels <= k).all()
    attack = SparseRS(k=k, queries=40, unit="elements")
    by_elements = run_attack(attack, curved, images, labels)
    assert (by_elements.l0_elements <= k).all()
    assert (by_elements.l0_elements > 0).all()


def test_a_logit_that_is_no_number_is_never_the_best() -> None:
    """The model says NaN of every image in which the first pixel is dark."""

    def moody(images: Tensor) -> Tensor:
        bad = images[:, 0, 0, 0] == 0
        lead = 10 + images.sum(dim=(1, 2, 3)).masked_fill(bad, torch.nan)
        return torch.stack((lead, torch.zeros_like(lead)), dim=1)

    images, labels = torch.full((8, 1, 2, 2), 0.5), torch.zeros(8, dtype=torch.long)
    result = run_attack(SparseRS(k=2, queries=60), Classifier(moody), images, labels)
    assert (result.adversarial[:, 0, 0, 0] == 0.5).all()
    assert torch.equal(result.adversarial.sum(dim=(1, 2, 3)), torch.ones(8))  # two are dark


def test_an_image_of_which_every_try_is_no_number_stays_clean() -> None:
    def moody(images: Tensor) -> Tensor:
        lead = torch.where((images == 0.5).flatten(1).all(dim=1), 1.0, torch.nan)
        return torch.stack((lead, torch.zeros_like(lead)), dim=1)

    images, labels = torch.full((2, 1, 2, 2), 0.5), torch.zeros(2, dtype=torch.long)
    result = run_attack(SparseRS(k=2, queries=4), Classifier(moody), images, labels)
    assert torch.equal(result.adversarial, images)
    assert result.forwards.tolist() == [4, 4]


def test_one_swap_fewer_is_drawn_than_queries_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with the share and the random numbers of the query that it is for."""
    seen = []
    propose = Swaps.propose

    def note(self: Swaps, state: SwapState, share: float, step: int) -> SwapState:
        seen.append((share, step))
        return propose(self, state, share, step)

    monkeypatch.setattr(Swaps, "propose", note)
    model = exact_linear(4, (3, 6, 5), seed=2)
    images = sure_images(model, exact_images(1, (3, 6, 5)))
    attack = SparseRS(k=1, queries=5, alpha=0.3)
    result = run_attack(attack, model, images, guesses(model, images))
    assert result.forwards.tolist() == [5]
    assert seen == [(0.3 / 8, 1), (0.3 / 10, 2), (0.3 / 12, 3), (0.3 / 15, 4)]


# Models that give scores alone


def test_a_function_that_gives_scores_is_enough() -> None:
    weight = torch.randn(3, 48, generator=torch.Generator().manual_seed(0))
    sent: list[int] = []

    def ask(images: Tensor) -> Any:
        sent.append(len(images))
        return (images.flatten(1) @ weight.T).tolist()

    model = score_model(ask, name="a function", max_batch=4)
    images = exact_images(6, (3, 4, 4), dtype=torch.float32)
    labels = guesses(model, images)
    result = run_attack(SparseRS(k=8, queries=100), model, images, labels)
    assert result.success.all()
    assert max(sent) <= 4
    assert torch.equal(
        (result.adversarial.flatten(1) @ weight.T).argmax(dim=1) != labels, result.success
    )


def test_an_onnx_file_is_enough(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weight = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Flatten", ["images"], ["flat"]),
            onnx.helper.make_node("MatMul", ["flat", "weight"], ["scores"]),
        ],
        "linear",
        [onnx.helper.make_tensor_value_info("images", floats, ["batch", 3, 4, 4])],
        [onnx.helper.make_tensor_value_info("scores", floats, ["batch", 4])],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "m.onnx")
    model = load_model(f"file:{tmp_path / 'm.onnx'}")
    images = exact_images(6, (3, 4, 4), dtype=torch.float32)
    labels = guesses(model, images)
    attack = SparseRS(k="smallest", queries=60)
    result = run_attack(attack, model, images, labels)
    assert result.success.all()
    scores = result.adversarial.flatten(1) @ torch.from_numpy(weight)
    assert (scores.argmax(dim=1) != labels).all()


def test_a_model_that_gives_labels_alone_is_refused() -> None:
    model = score_model(
        lambda images: [0] * len(images), name="labels", access="labels", classes=("a", "b")
    )
    images, labels = exact_images(2, (3, 4, 4), dtype=torch.float32), torch.zeros(2).long()
    with pytest.raises(BadInput, match="sparse_rs needs scores, but labels gives labels alone"):
        run_attack(SparseRS(), model, images, labels)


# Settings


@pytest.mark.parametrize("setting", ["schedule", "loss", "unit", "k"])
def test_words_that_it_does_not_know_are_refused(setting: str) -> None:
    with pytest.raises(BadInput, match=f"{setting} of sparse_rs must be"):
        build({"name": "sparse_rs", setting: "slow"})
