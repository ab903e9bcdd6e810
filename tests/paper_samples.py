"""Samples for tests of the paper's pages."""

from typing import Any

import numpy as np

from generators.paper.rows import Sample


def sample(image: list[int], elements: list[float], **more: Any) -> Sample:
    needed = np.array(elements, dtype=float)
    count = len(image)
    return Sample(
        image=np.array(image),
        elements=needed,
        pixels=needed,
        passes=np.full(count, 10.0),
        first=needed,
        seconds=np.full(count, 0.5),
        survives=np.isfinite(needed),
        total=100,
        rows={"index": list(image), **more},
    )
