"""Results on disk come back as they were saved, and nothing else is taken for one."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from pinprick import (
    AttackResult,
    BadInput,
    Classifier,
    Failure,
    Goal,
    attack_batches,
    load_result,
    run_attack,
    save_result,
)
from pinprick.attacks import IFGSM

plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False), st.just([1, 2])
)


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a result, of any size and precision, with whatever logits may hold."""
    count, classes = draw(st.integers(0, 4)), draw(st.integers(2, 3))
    shape = (count, draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    dtype = draw(st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    odd = draw(st.sampled_from([float("nan"), float("inf"), -0.0]))

    def logits() -> Tensor:
        return torch.randn(count, classes, generator=generator).to(dtype).fill_diagonal_(odd)

    def whole() -> Tensor:
        return torch.randint(-(2**62), 2**62, (count,), generator=generator)

    return {
        "images": torch.rand(shape, generator=generator).to(dtype),
        "adversarial": torch.rand(shape, generator=generator).to(dtype),
        "goal": (whole(), whole() if draw(st.booleans()) else None),
        "clean_logits": logits(),
        "adversarial_logits": logits(),
        "rounded_logits": logits(),
        "forwards": whole(),
        "backwards": whole(),
        "out_of_budget": whole() > 0,
        "out_of_time": whole() > 0,
        "ids": whole(),
        "batch_size": whole(),
        "remarks": tuple(draw(st.lists(st.text(), min_size=count, max_size=count))),
        "seconds": draw(st.floats(0, allow_infinity=False)),
        "peak_memory": draw(st.one_of(st.none(), st.integers(0, 2**50))),
        "sent": draw(st.none() | st.dictionaries(st.text(), st.integers())),
        "attack": draw(st.dictionaries(st.text(), plain)),
        "model": draw(st.text()),
        "seed": draw(st.integers()),
    }


def assert_same(first: AttackResult, second: AttackResult) -> None:
    assert first.tensors().keys() == second.tensors().keys()
    for name, saved in first.tensors().items():
        back = second.tensors()[name]
        assert (saved.dtype, saved.shape) == (back.dtype, back.shape)
        assert torch.equal(saved.nan_to_num(7), back.nan_to_num(7))
        assert torch.equal(saved.isnan(), back.isnan())
    assert torch.equal(first.goal.labels, second.goal.labels)
    assert (first.goal.targets is None) == (second.goal.targets is None)
    if first.goal.targets is not None and second.goal.targets is not None:
        assert torch.equal(first.goal.targets, second.goal.targets)
    for name in ("remarks", "seconds", "peak_memory", "sent", "attack", "model", "seed"):
        assert getattr(first, name) == getattr(second, name)


def test_reasons_of_failure_come_back_as_reasons(tmp_path: Path) -> None:
    said = "service did not answer in 3 tries"
    remarks = (*Failure, "", said)
    count = len(remarks)
    numbers, logits = torch.arange(count), torch.zeros(count, 2)
    result = AttackResult(
        images=torch.zeros(count, 1, 1, 1),
        adversarial=torch.zeros(count, 1, 1, 1),
        goal=Goal(torch.zeros_like(numbers)),
        clean_logits=logits,
        adversarial_logits=logits,
        rounded_logits=logits,
        forwards=numbers,
        backwards=numbers,
        out_of_budget=numbers > 1,
        out_of_time=numbers > 2,
        ids=numbers,
        batch_size=numbers,
        remarks=remarks,
        seconds=0.0,
    )
    save_result(result, tmp_path / "a.safetensors")
    back = load_result(tmp_path / "a.safetensors")
    assert back.failures == result.failures == (*Failure, None, Failure.NO_ANSWER)
    assert [type(remark) for remark in back.remarks] == [type(remark) for remark in remarks]
    assert (str(back.remarks[2]), back.remarks[-1]) == ("out of budget", said)


@given(fields())
def test_there_and_back_without_loss(given: dict[str, Any]) -> None:
    result = AttackResult(**{**given, "goal": Goal(*given["goal"])})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "result.safetensors"
        save_result(result, path)
        assert_same(load_result(path), result)
        assert list(Path(folder).iterdir()) == [path]


def test_what_was_measured_comes_back(
    linear: Classifier, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    result = run_attack(IFGSM(eps=0.5), linear, images, labels, seed=3)
    save_result(result, tmp_path / "a.safetensors")
    back = load_result(str(tmp_path / "a.safetensors"))
    assert_same(back, result)
    assert back.fooling_rate == result.fooling_rate
    assert torch.equal(back.needed_pixels, result.needed_pixels)


def test_tensors_that_share_memory_can_be_saved(
    linear: Classifier, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    same = linear(images).detach()
    stuck = Classifier(lambda batch: same[: len(batch)] + 0 * batch.sum())
    always = Classifier(lambda batch: same if len(batch) == len(same) else same[: len(batch)])
    for model in (stuck, always):
        (result,) = attack_batches(IFGSM(), model, images, labels + 1, ids=labels)
        save_result(result, tmp_path / "a.safetensors")
        assert_same(load_result(tmp_path / "a.safetensors"), result)


def test_saving_again_replaces_the_file_as_a_whole(
    linear: Classifier, images: Tensor, labels: Tensor, tmp_path: Path
) -> None:
    path = tmp_path / "a.safetensors"
    for seed in (1, 2):
        save_result(run_attack(IFGSM(), linear, images, labels, seed=seed), path)
    assert load_result(path).seed == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def saved(linear: Classifier, images: Tensor, labels: Tensor, tmp_path: Path) -> Path:
    path = tmp_path / "saved.safetensors"
    save_result(run_attack(IFGSM(), linear, images, labels), path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_a_truncated_file_is_refused(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(BadInput, match="is not a result saved by pinprick"):
        load_result(saved)


@pytest.mark.parametrize("content", [b"", b"\x80\x04.", b"PK\x03\x04", b"hello " * 100])
def test_a_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="foreign is not a result saved by pinprick"):
        load_result(path)


@pytest.mark.parametrize(
    "header",
    [
        None, "", "{", "[]", "7", "null", '{"format": 1}', '{"format": 1, "remarks": 5}',
        "[" * 100_000,
    ],
    ids=lambda header: str(header)[:30],
)  # fmt: skip
def test_tensors_of_another_kind_are_refused(header: str | None, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    metadata = None if header is None else {"pinprick": header}
    save_file({"weight": torch.zeros(2)}, path, metadata=metadata)
    with pytest.raises(BadInput, match=r"weights.safetensors is not a result saved by pinprick"):
        load_result(path)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "; give a file that attack --save or save_result wrote"),
        ({"pinprick": '{"format": 1}'}, ": it has no 'remarks'"),
    ],
)
def test_the_line_about_a_foreign_file_is_a_sentence(
    metadata: dict[str, str] | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "digits.safetensors"
    save_file({"weight": torch.zeros(2)}, path, metadata=metadata)
    with pytest.raises(BadInput) as error:
        load_result(path)
    assert str(error.value) == f"{path} is not a result saved by pinprick{reason}"


def test_another_version_of_the_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "later.safetensors"
    save_file({"weight": torch.zeros(2)}, path, metadata={"pinprick": '{"format": 2}'})
    with pytest.raises(BadInput, match="was written by another version of pinprick"):
        load_result(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no file .*nothing.safetensors"):
        load_result(tmp_path / "nothing.safetensors")


def test_a_folder_is_not_a_result(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a result saved by pinprick"):
        load_result(tmp_path)


def test_what_cannot_be_saved_leaves_nothing_behind(saved: Path, linear: Any) -> None:
    before = saved.read_bytes()
    result = load_result(saved)
    broken = AttackResult(**{**vars(result), "attack": {"name": object()}})
    with pytest.raises(TypeError):
        save_result(broken, saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
