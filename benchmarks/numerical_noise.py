"""How far margins change with the batch size, and how much of it a few images show.

    python benchmarks/numerical_noise.py [--device cuda] [--images 64]

The models that come with the package are asked about the same smooth random images in batches of
several sizes, in float32 and, on a GPU, in both half precisions. A line of JSON per model and
precision: the largest change of any difference of two logits over all images and pairs of batch
sizes, and how many times that is of what four images show alone against the largest batch, in the
median and at most over choices of the four. The rows are in results/numerical_noise/.
"""

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from write_rows import surroundings

from pinprick import Classifier
from pinprick.files import write_text
from pinprick.zoo.shipped import load, names

SIZES = (1, 2, 3, 5, 8, 16, 32, 48, 64)
CHOICES, PROBES = 200, 4


def spread(change: Tensor) -> Tensor:
    """How far the difference of any two logits moves."""
    return change.amax(dim=-1) - change.amin(dim=-1)


@torch.no_grad()
def measure(model: Classifier, images: Tensor) -> dict[str, object]:
    asked = [torch.cat([model(part) for part in images.split(size)]) for size in SIZES]
    logits = torch.stack(asked).double()
    largest = max(spread(one - other).max().item() for one in logits for other in logits)
    shown = spread(logits[0] - logits[-1])
    generator = torch.Generator().manual_seed(0)
    some = [torch.randperm(len(images), generator=generator)[:PROBES] for _ in range(CHOICES)]
    ratio = largest / shown[torch.stack(some).to(images.device)].amax(dim=1)
    return {
        "largest": largest,
        "ratio_median": ratio.median().item(),
        "ratio_most": ratio.max().item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--out", type=Path, help="results/numerical_noise/DEVICE.jsonl by default")
    options = parser.parse_args()
    device = torch.device(options.device)
    place = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    halves = (torch.bfloat16, torch.float16) if device.type == "cuda" else ()
    torch.manual_seed(0)
    lines = []
    for name in names():
        model = load(name)
        assert isinstance(model.net, nn.Module)
        channels, side = (3, 32) if name.startswith("cifar") else (1, 28)
        coarse = torch.rand(options.images, channels, side // 4, side // 4)
        images = F.interpolate(coarse, size=(side, side), mode="bilinear").clamp(0, 1)
        for precision in (torch.float32, *halves):
            model.net.to(device, precision)
            with model.frozen():
                row = measure(model, images.to(device, precision))
            told = {"model": f"pinprick:{name}", "precision": str(precision)[6:], **row}
            run = {"images": options.images, **surroundings(device), "device": place}
            lines.append(json.dumps({**told, "run": run}))
            print(lines[-1], flush=True)
    out = options.out or Path(f"results/numerical_noise/{device.type}.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text(out, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
