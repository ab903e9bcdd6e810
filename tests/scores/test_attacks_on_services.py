"""Attacks by scores alone on a function, an ONNX file and a service, also one that breaks down."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from pinprick import Classifier, NoAnswer, build, load_model, run_attack, score_model
from pinprick.oracle import exact_images, exact_linear, sure_images
from scores.service import SHAPE, Flaky, open_service

ATTACKS: dict[str, dict[str, Any]] = {
    "sparse_rs": {"k": 4, "queries": 25},
    "brusle": {"k": 4, "queries": 25, "starts": 4},
    "onepixel": {"k": 2, "population": 5, "generations": 5},
    "sa_moo": {"k": 4, "queries": 25, "population": 3},
    "corner_search": {"singles": 12, "tries": 4, "max_pixels": 3, "rivals": 1},
    "auto": {"budgets": [2, 4], "queries": 25},
}
FAULTS = ["503", "422", "drop", "shape", "nan", "page"]
SHUT = torch.ones(1, *SHAPE, dtype=torch.bool)
SHUT[0, 0, 0, 0] = False  # the first value of an image is its mark, by which the service knows it


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    with open_service() as flaky:
        yield flaky


@pytest.fixture
def images() -> Tensor:
    """Images that take long, but for the last one; each has its mark."""
    plain = exact_images(5, SHAPE)
    images = torch.cat((sure_images(exact_linear(4, SHAPE), plain)[:4], plain[4:])).float()
    images[:, 0, 0, 0] = torch.arange(1, 6) / 8
    return images


@pytest.fixture
def labels(images: Tensor) -> Tensor:
    return plain_model()(images).argmax(dim=1)


def plain_model() -> Classifier:
    linear = exact_linear(4, SHAPE)
    with torch.no_grad():
        return Classifier(lambda some: linear(some.double()).detach().to(some), access="scores")


def service(flaky: Flaky, **options: Any) -> Classifier:
    settings = {"name": "service", "max_batch": 4, "retries": 1, "backoff": 0.001, **options}
    return score_model(flaky.ask, **settings)


def write_onnx(path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weight = next(iter(exact_linear(4, SHAPE).net.parameters())).detach().float().T.numpy()  # type: ignore[attr-defined]
    floats, helper = onnx.TensorProto.FLOAT, onnx.helper
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["images"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weight"], ["scores"]),
        ],
        "linear",
        [helper.make_tensor_value_info("images", floats, ["batch", *SHAPE])],
        [helper.make_tensor_value_info("scores", floats, ["batch", 4])],
        [onnx.numpy_helper.from_array(weight, "weight")],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_function_a_file_and_a_service_are_attacked_alike(
    name: str, flaky: Flaky, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    write_onnx(tmp_path / "model.onnx")
    attack = build({"name": name, **ATTACKS[name]})
    local = run_attack(attack, plain_model(), images, labels)
    asked = service(flaky)
    remote = run_attack(attack, asked, images, labels)
    graph = run_attack(attack, load_model(f"file:{tmp_path / 'model.onnx'}"), images, labels)
    for result in (remote, graph):
        assert torch.equal(result.adversarial, local.adversarial)
        assert torch.equal(result.forwards, local.forwards)
        assert result.remarks == local.remarks
    assert local.success.any()
    assert remote.sent is not None
    assert remote.sent["asked"] == int(remote.forwards.sum()) + 3 * len(images)
    assert sum(flaky.received) == asked.sent.images == len(flaky.answered)


@pytest.mark.parametrize(  # what the fault was is nothing to the attack
    ("name", "fault"), [*zip(ATTACKS, FAULTS, strict=True), *product(["sparse_rs"], FAULTS[1:])]
)
def test_an_image_that_the_service_fails_on_keeps_its_best_and_the_rest_go_on(
    name: str, fault: str, flaky: Flaky, images: Tensor, labels: Tensor
) -> None:
    attack, model = build({"name": name, **ATTACKS[name]}), plain_model()
    whole = run_attack(attack, model, images, labels, allowed=SHUT)
    assert not whole.success[1]
    flaky.fault, flaky.patience = fault, {images[1, 0, 0, 0].item(): 11}  # of these the clean one
    asked = service(flaky)
    result = run_attack(attack, asked, images, labels, allowed=SHUT)
    rest = torch.tensor([0, 2, 3, 4])
    assert torch.equal(result.adversarial[rest], whole.adversarial[rest])
    assert torch.equal(result.forwards[rest], whole.forwards[rest])
    assert [result.remarks[row] for row in rest] == [whole.remarks[row] for row in rest]
    assert not result.success[1]
    assert not result.out_of_budget.any()
    assert result.remarks[1].startswith("service did not answer in ")
    spent = int(result.forwards[1])
    assert spent >= 10  # some of the answers may have been known already
    held = run_attack(attack, model, images, labels, allowed=SHUT, max_forwards=spent)
    assert torch.equal(result.adversarial[1], held.adversarial[1])  # all that was paid for is used
    assert len(set(flaky.answered)) == len(flaky.answered)  # nothing is paid for twice
    assert sum(flaky.received) == asked.sent.images
    assert len(flaky.received) == asked.sent.requests


@pytest.mark.parametrize(
    ("name", "fault"), [("sparse_evo", "503"), ("hopskipjump", "503"), ("hopskipjump", "nan")]
)
def test_attacks_by_classes_alone_go_on_as_well(
    name: str, fault: str, flaky: Flaky, images: Tensor, labels: Tensor
) -> None:
    attack = build({"name": name, "queries": 40})
    tops = Classifier(
        lambda some: torch.eye(4)[plain_model()(some).argmax(dim=1)], access="labels", name="tops"
    )
    whole = run_attack(attack, tops, images, labels, allowed=SHUT)
    assert whole.success[2:].any()
    healthy = run_attack(attack, service(flaky, access="labels"), images, labels, allowed=SHUT)
    assert torch.equal(healthy.adversarial, whole.adversarial)
    assert torch.equal(healthy.forwards, whole.forwards)
    flaky.fault, flaky.patience = fault, {images[1, 0, 0, 0].item(): 6}  # of these the clean one
    asked = service(flaky, access="labels")
    result = run_attack(attack, asked, images, labels, allowed=SHUT)
    rest = torch.tensor([0, 2, 3, 4])
    assert torch.equal(result.adversarial[rest], whole.adversarial[rest])
    assert torch.equal(result.forwards[rest], whole.forwards[rest])
    spent = int(result.forwards[1])
    assert 5 <= spent < whole.forwards[1]
    held = run_attack(attack, tops, images, labels, allowed=SHUT, max_forwards=spent)
    assert torch.equal(result.adversarial[1], held.adversarial[1])  # all that was paid for is used
    assert result.success[1] or result.remarks[1].startswith("service did not answer in ")


def test_an_answer_that_comes_too_late_is_no_answer(
    flaky: Flaky, images: Tensor, labels: Tensor
) -> None:
    flaky.fault, flaky.patience = "delay", {images[1, 0, 0, 0].item(): 5}
    attack = build({"name": "sparse_rs", "k": 4, "queries": 10})
    result = run_attack(attack, service(flaky), images, labels, allowed=SHUT)
    assert result.forwards[1] == 4
    assert "timed out" in result.remarks[1]
    assert result.forwards[0] == 10


@pytest.mark.parametrize("row", [0, 1])
def test_a_clean_image_without_an_answer_is_not_attacked(
    flaky: Flaky, images: Tensor, labels: Tensor, row: int
) -> None:
    flaky.patience = {images[row, 0, 0, 0].item(): 0}
    attack = build({"name": "sparse_rs", "k": 4, "queries": 25})
    result = run_attack(attack, service(flaky), images, labels)
    assert torch.equal(result.adversarial[row], images[row])
    assert result.forwards.gt(0).tolist() == [one != row for one in range(5)]
    assert not result.success[row]
    assert not result.correct[row]
    assert "503" in result.remarks[row]
    assert result.success[4]


def test_what_fooled_before_the_service_broke_down_stays_fooled(
    flaky: Flaky, images: Tensor, labels: Tensor
) -> None:
    attack = build({"name": "sparse_rs", "k": 4, "queries": 25})
    whole = run_attack(attack, plain_model(), images, labels)
    early = whole.success & (whole.forwards < 8)
    assert early.tolist() == [False] * 4 + [True]
    asked = service(flaky, max_batch=5)
    flaky.troubles = [""] * 10 + ["drop"] * 1000
    result = run_attack(attack, asked, images, labels)
    assert torch.equal(result.success, early)
    assert torch.equal(result.adversarial[early], whole.adversarial[early])
    assert result.forwards[~early].tolist() == [8] * 4
    assert all("did not answer" in remark for remark in result.remarks[:4])


def test_a_service_that_never_answered_ends_the_run(
    flaky: Flaky, images: Tensor, labels: Tensor
) -> None:
    flaky.troubles = ["503"] * 6
    with pytest.raises(NoAnswer, match="service did not answer in 2 tries"):
        run_attack(build("sparse_rs"), service(flaky), images, labels)
    assert flaky.received == [1] * 6  # two tries for each of three images
