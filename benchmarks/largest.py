"""What the largest of each row cost: a mask and positions by one rule for ties, against topk.

    python benchmarks/largest.py [--devices cpu cuda] [--out results/largest/h200.json]

Random keys of 24 bits, of which few are tied, and keys of 8 bits, of which nearly all are. The
counts are drawn for each row. The three functions take turns, so that a busy machine slows all.
On a GPU a function is started ten times between two events, and an error is raised if it makes
the processor wait for the GPU.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from write_rows import surroundings

from pinprick.parts.largest import find_largest, mask_largest

SHAPES = (256, 3072), (64, 50_176), (64, 150_528)
NUMBERS = 10, 100, 1000
BITS = 24, 8
_STARTS = 10  # of a function between two events


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", nargs="+", default=None, help="cpu, cuda; all by default")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--out", type=Path, default=Path("results/largest/rows.json"))
    options = parser.parse_args()
    devices = options.devices or ["cpu", *["cuda"] * torch.cuda.is_available()]

    rows = []
    print("| device | rows x values | bits | k | topk, ms | mask, ms | positions, ms |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for device in map(torch.device, devices):
        for shape in SHAPES:
            for bits in BITS:
                for k in NUMBERS:
                    row = measure(device, shape, bits, k, options.repeats)
                    rows.append(row)
                    times = " | ".join(f"{row[name]:.3f}" for name in ("topk", "mask", "positions"))
                    print(f"| {device} | {shape[0]} x {shape[1]} | {bits} | {k} | {times} |")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({**about(devices), "rows": rows}, indent=1) + "\n")


def measure(
    device: torch.device, shape: tuple[int, int], bits: int, k: int, repeats: int
) -> dict[str, Any]:
    """The median milliseconds of each function on the same keys."""
    generator = torch.Generator().manual_seed(0)
    keys = torch.randint(1, 2**bits, shape, generator=generator).to(device) / 2**bits
    count = torch.randint(1, k + 1, shape[:1], generator=generator).to(device)
    functions: dict[str, Callable[[], Any]] = {
        "topk": lambda: keys.topk(k, dim=1),
        "mask": lambda: mask_largest(keys, count, k),
        "positions": lambda: find_largest(keys, count, k),
    }
    check(keys, count, k)
    milliseconds = on_gpu if device.type == "cuda" else on_cpu
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(repeats + 1):
        for name, function in functions.items():
            spent = milliseconds(function)
            if turn:  # the first one sets things up
                times[name].append(spent)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {"device": device.type, "shape": list(shape), "bits": bits, "k": k, **medians}


def check(keys: Tensor, count: Tensor, k: int) -> None:
    """Mask and positions are those of a stable sort, in the first rows at least."""
    keys, count = keys[:4], count[:4]
    order = keys.argsort(dim=1, descending=True, stable=True)[:, :k]
    places, chosen = find_largest(keys, count, k)
    assert torch.equal(places[chosen], order[chosen])
    expected = torch.zeros_like(keys, dtype=torch.bool).scatter_(1, places, chosen)
    assert torch.equal(mask_largest(keys, count, k), expected)


def on_cpu(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return 1000 * (time.perf_counter() - start)


def on_gpu(function: Callable[[], Any]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.set_sync_debug_mode("error")
    try:
        begin.record()
        for _ in range(_STARTS):
            function()
        end.record()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    total: float = begin.elapsed_time(end)
    return total / _STARTS


def about(devices: list[str]) -> dict[str, Any]:
    gpu = torch.cuda.get_device_name() if "cuda" in devices else None
    return {**surroundings("cpu"), "gpu": gpu}


if __name__ == "__main__":
    main()
