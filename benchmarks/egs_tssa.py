"""What a trained generator of EGS-TSSA does: images per second alone, and fooling rates by pixels.

    python benchmarks/egs_tssa.py --weights made --model pinprick:cifar10_resnet20 \
        --data "cifar10/test[0:1000]" --out results/egs_tssa/made.json

The generator alone is timed in float32, TF32 and bfloat16, as the median of five times ten passes.
The attack runs with several budgets, and on ``--fallback`` images with Pinprick as its second
stage. The fooling rate is over images that are classified correctly.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from write_rows import write_rows

from pinprick import Classifier, load_model, load_subset, run_attack
from pinprick.attacks.egs_tssa import EGSTSSA
from pinprick.attacks.egs_tssa.saved_generator import load_generator
from pinprick.attacks.pinprick import Pinprick
from pinprick.data.dataset import Dataset

PRECISIONS = ("float32", "tf32", "bfloat16")
TIMES, PASSES = 5, 10


def time_alone(attack: EGSTSSA, batch: int, device: str) -> Iterator[dict[str, Any]]:
    """Images per second of the generator alone, by precision."""
    card, generator = load_generator(attack.weights, attack.sha256)
    layout = torch.channels_last
    generator = generator.to(device).to(memory_format=layout)
    images = torch.rand(batch, card.channels, card.height, card.width, device=device)
    images = images.contiguous(memory_format=layout)
    for kind in PRECISIONS:
        half = torch.autocast(device, torch.bfloat16, enabled=kind == "bfloat16")
        tuned = torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=kind == "tf32")
        seconds = []
        with torch.no_grad(), half, tuned:
            for _ in range(TIMES + 1):
                start = time.perf_counter()
                for _ in range(PASSES):
                    generator(images)
                if device == "cuda":
                    torch.cuda.synchronize()
                seconds.append((time.perf_counter() - start) / PASSES)
        speed = round(batch / statistics.median(seconds[1:]))  # the first is to warm up
        yield {
            "what": "generator alone",
            "precision": kind,
            "batch": batch,
            "images_per_second": speed,
            "n": TIMES,
        }


def measure(attack: EGSTSSA, model: Classifier, data: Dataset) -> dict[str, Any]:
    """Fooling rate, change and passes."""
    target = attack.facts().inputs.target  # type: ignore[union-attr]
    data = data if target is None else data[data.labels != target]
    targets = None if target is None else torch.full_like(data.labels, target)
    result = run_attack(attack, model, data.images(model), data.labels, targets=targets)
    right = result.correct
    assert result.generator_forwards is not None
    means = {
        "pixels": result.l0_pixels,
        "elements": result.l0_elements,
        "forwards": result.forwards,
        "backwards": result.backwards,
        "generator_forwards": result.generator_forwards,
    }
    return {
        "what": "attack",
        "settings": attack.describe(),
        "model": model.name,
        "target": target,
        "n": int(right.sum()),
        "fooling_rate": round(result.fooling_rate, 4),
        **{name: round(each[right].double().mean().item(), 2) for name, each in means.items()},
        "seconds": round(result.seconds, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", default="cifar10_resnet20")
    parser.add_argument("--model", default="pinprick:cifar10_resnet20")
    parser.add_argument("--data", default="cifar10/test[0:1000]")
    parser.add_argument("--budgets", type=int, nargs="*", default=[10, 20, 51, 102])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fallback", type=int, default=50)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    model = load_model(given.model)
    model.net.to(given.device)  # type: ignore[attr-defined]
    data = load_subset(given.data).for_model(model)
    rows = list(time_alone(EGSTSSA(weights=given.weights), given.batch, given.device))
    rows += [measure(EGSTSSA(weights=given.weights, k=k), model, data) for k in given.budgets]
    second = EGSTSSA(weights=given.weights, fallback=Pinprick(effort="fast", unit="pixels"))
    rows.append(measure(second, model, data[: given.fallback]))
    write_rows(given.out, rows, given.device)


if __name__ == "__main__":
    main()
