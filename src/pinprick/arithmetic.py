"""The arithmetic of passes on a GPU: convolutions are in float32 only if torch is told so."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def arithmetic(precision: str, *, benchmark: bool | None = None) -> Iterator[None]:
    """Compute in "float32", or with convolutions in "tf32"; afterwards as before.

    TF32 has 10 bits of mantissa in place of 23. Only GPUs have it. It is torch's default for
    convolutions. An image that fools by a narrow margin in TF32 may not fool in float32.

    Args:
        precision: "float32" or "tf32".
        benchmark: Whether cuDNN tries several algorithms per batch size; None to leave it as it is.
    """
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = matmul.allow_tf32
    with cudnn.flags(
        enabled=cudnn.enabled,
        benchmark=cudnn.benchmark if benchmark is None else benchmark,
        deterministic=cudnn.deterministic,
        allow_tf32=precision == "tf32",
    ):
        matmul.allow_tf32 = False
        try:
            yield
        finally:
            matmul.allow_tf32 = before
