"""The arithmetic of a cell: convolutions of a GPU are in float32 only if torch is told so."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def arithmetic(precision: str) -> Iterator[None]:
    """Compute in "float32", or with convolutions in "tf32"; afterwards as before.

    TF32 has 10 bits of mantissa in place of 23. Only GPUs have it. It is torch's default for
    convolutions. An image that fools by a narrow margin in TF32 may not fool in float32.
    """
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = matmul.allow_tf32
    with cudnn.flags(
        enabled=cudnn.enabled,
        benchmark=cudnn.benchmark,
        deterministic=cudnn.deterministic,
        allow_tf32=precision == "tf32",
    ):
        matmul.allow_tf32 = False
        try:
            yield
        finally:
            matmul.allow_tf32 = before
