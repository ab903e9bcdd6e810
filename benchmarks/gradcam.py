"""What Grad-CAM costs beside one bare forward and backward pass: time, and memory on a GPU.

    python benchmarks/gradcam.py --model efficientnet_lite0 --batch-size 64

Both take turns in one run, after a turn of each to warm up. The bare pass is one forward and one
backward of each image's largest logit, down to the images, in evaluation mode. Grad-CAM finds its
layer itself the first time, unless ``--layer`` names one. The images are noise, with as many
channels as the network takes: what they show makes no difference to the time. On a CPU it is
processor time, which other programs weigh on little.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from write_rows import write_rows

from pinprick import Classifier, load_model
from pinprick.explain.maps.class_maps import gradcam
from pinprick.types import Images


def channels_of(net: nn.Module) -> int:
    """As many as its first convolution takes; three where it has none."""
    return next((one.in_channels for one in net.modules() if isinstance(one, nn.Conv2d)), 3)


def bare(model: Classifier, images: Images) -> None:
    with model.frozen():
        given = images.detach().requires_grad_()
        torch.autograd.grad(model(given).amax(dim=1).sum(), given)


def timed(work: Callable[[], object], cuda: bool) -> tuple[float, int]:
    """Seconds and, on a GPU, the most memory held on top of what was there."""
    if not cuda:
        start = time.process_time()
        work()
        return time.process_time() - start, 0
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, torch.cuda.max_memory_allocated() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--layer")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="results/gradcam/MODEL.json by default")
    options = parser.parse_args()

    model = load_model(options.model)
    assert isinstance(model.net, nn.Module), "a network is needed for backward passes"
    model.net.to(options.device)
    height, width = model.size or (224, 224)
    images = torch.rand(
        options.batch_size, channels_of(model.net), height, width, device=options.device
    )

    def explain() -> None:
        gradcam(model, images, layer=options.layer, batch_size=options.batch_size)

    times, memory = [], []
    for turn in range(options.turns + 1):
        cuda = images.is_cuda
        seconds, held = timed(explain, cuda)
        bare_seconds, bare_held = timed(lambda: bare(model, images), cuda)
        if turn:
            times.append(seconds / bare_seconds)
            memory.append(held / max(bare_held, 1))
            print(f"Grad-CAM {seconds:.3f} s, bare {bare_seconds:.3f} s", flush=True)
    held_too = f", memory {statistics.median(memory):.3f}" if images.is_cuda else ""
    print(
        f"Grad-CAM on {options.model}, {len(images)} images: time {statistics.median(times):.3f} "
        f"({min(times):.3f} to {max(times):.3f}){held_too} of a bare forward and backward pass"
    )
    row = {
        "model": options.model,
        "images": len(images),
        "turns": options.turns,
        "time_ratio": statistics.median(times),
        "time_ratios": times,
        "memory_ratio": statistics.median(memory) if images.is_cuda else None,
    }
    name = options.model.rpartition(":")[2]
    write_rows(options.out or Path(f"results/gradcam/{name}.json"), [row], options.device)


if __name__ == "__main__":
    main()
