"""Convolutions of a GPU are in float32 unless a cell says otherwise."""

import pytest
import torch

from pinprick.arithmetic import arithmetic


@pytest.mark.parametrize("precision", ["float32", "tf32"])
@pytest.mark.parametrize("fails", [False, True])
def test_convolutions_have_the_precision_and_then_the_old_one(precision: str, fails: bool) -> None:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = (cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic, matmul.allow_tf32)
    try:
        with arithmetic(precision):
            assert cudnn.allow_tf32 == (precision == "tf32")
            assert not matmul.allow_tf32
            assert (cudnn.benchmark, cudnn.deterministic) == before[1:3]
            if fails:
                raise KeyError
    except KeyError:
        assert fails
    after = (cudnn.allow_tf32, cudnn.benchmark, cudnn.deterministic, matmul.allow_tf32)
    assert after == before


@pytest.mark.parametrize("benchmark", [False, True])
def test_cudnn_tries_algorithms_where_that_is_asked_for(benchmark: bool) -> None:
    before = torch.backends.cudnn.benchmark
    with arithmetic("float32", benchmark=benchmark):
        assert torch.backends.cudnn.benchmark == benchmark
    assert torch.backends.cudnn.benchmark == before
