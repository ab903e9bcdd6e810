"""What the first run of an attack costs in a fresh process, against further ones.

    python benchmarks/first_call.py --model file:models/cifar10_resnet18 \
        --data cifar10/test[0:1200] --images 256 --attack sparse_pgd,k=10,steps=300 \
        --speed exact --out results/speed

The network is warm: it has made a few passes of the batch size. Each attack then runs three times.
``--profile`` also lists the operations that took longer in the first run, by the time that the CPU
spent in them; the runs themselves are slower then.
"""

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from case import open_run, read_attack, run_parser
from overhead import Recorder
from torch import nn
from write_rows import surroundings

from pinprick import Classifier, run_attack
from pinprick.speed_names import SPEEDS

_WARM = 5  # passes of the batch size before the first run
_LISTED = 30  # operations of a profile


def operations(profile: Any) -> dict[str, float]:
    """Seconds of the CPU in each operation, without those that it calls."""
    return {one.key: one.self_cpu_time_total / 1e6 for one in profile.key_averages()}


def main() -> None:
    parser = run_parser(__doc__)
    parser.add_argument("--speed", choices=SPEEDS, default="exact")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    model, images, labels, _, about = open_run(options)
    assert isinstance(model.net, nn.Module)
    device = model.device or torch.device("cpu")
    images, labels = images.to(device), labels.to(device)

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    inputs = images.clone().requires_grad_()
    with model.frozen():
        for _ in range(_WARM):
            torch.autograd.grad(model(inputs).sum(), inputs)
    wait()
    if options.profile:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            model(inputs.detach())
    net = Recorder(model.net)
    noted = Classifier(net, mean=model.mean, std=model.std)
    rows, profiles = [], []
    for turn in range(3):
        net.passes.clear()
        modules, start = set(sys.modules), time.perf_counter()
        with (
            torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            if options.profile
            else nullcontext() as profile
        ):
            result = run_attack(
                read_attack(options.attack[0]),
                noted,
                images,
                labels,
                batch_size=len(images),
                speed=options.speed,
            )
            wait()
            wall = time.perf_counter() - start
        if options.profile and turn < 2:
            profiles.append(operations(profile))
        rows.append(
            {
                "kind": "first call",
                "attack": options.attack[0],
                "speed": options.speed,
                "turn": turn,
                "images": len(images),
                "fooled": int(result.success.sum()),
                "wall": wall,
                "seconds": result.seconds,
                "calls": len(net.passes),
                "sizes": len({one.size for one in net.passes}),
                "profiled": options.profile,
                "new_modules": sorted({name.split(".")[0] for name in set(sys.modules) - modules}),
                **(result.speed or {}),
            }
        )
        print(rows[-1], flush=True)
    if options.profile:
        first, second = profiles
        more = {name: first[name] - second.get(name, 0.0) for name in first}
        listed = sorted(more, key=lambda name: -more[name])[:_LISTED]
        rows[0]["operations"] = [[name, first[name], second.get(name, 0.0)] for name in listed]
        rows[0]["in_operations"] = [sum(first.values()), sum(second.values())]
        for name in listed:
            print(f"{first[name]:8.3f} {second.get(name, 0.0):8.3f} {name}", flush=True)
        print(rows[0]["in_operations"])
    name = Path(options.model).name.rpartition(":")[2]
    with (options.out / f"{name}_{len(images)}.jsonl").open("a") as file:
        for row in rows:
            file.write(json.dumps(about | surroundings(options.device) | row) + "\n")


if __name__ == "__main__":
    main()
