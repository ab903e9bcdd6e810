"""What a batch is worth: images per second against one at a time; and the memory it takes.

    python benchmarks/batching.py --attack cw_l0,preset=quick --model pinprick:cifar10_resnet20 \
        --data IMAGES [--batch-size 64] [--seconds 30] [--no-exit]
    python benchmarks/batching.py --memory --model efficientnet_lite0 [--batch-size 8] \
        [--data IMAGES] [--attack fmn,steps=20 --attack jsma]

The first attacks one batch, then images of it one by one for ``--seconds``, two at least. What all
of them would take alone is worked out from the passes: each image has as many alone as in the
batch, and a pass costs what it cost the single ones. With ``--no-exit`` every image is sent to a
class that no image is taken for, so that none is done early.

The second gives the most memory that an attack holds on the GPU, over that of one bare forward and
backward pass of the same batch, network and images included in both. Without ``--attack`` it takes
all that look for few elements or pixels by gradients, under their quick presets. Without ``--data``
the images are noise, labelled as the model sees them. ``--data`` is as in ``case.py``.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import torch
from case import read_attack, read_data, right_ones
from overhead import Pass, bare
from torch import Tensor, nn
from write_rows import write_rows

from pinprick import ATTACKS, Attack, AttackResult, Classifier, Goal, load_model, run_attack
from pinprick.attacks.build import build_quick


def read_images(options: argparse.Namespace, model: Classifier) -> tuple[Tensor, Tensor]:
    """A batch that the model gets right, on its device."""
    count, side = options.batch_size, options.side
    if options.data is None:
        noise = torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(0))
        with torch.no_grad(), model.frozen():
            labels = model(noise.to(model.device)).argmax(dim=1)
        return noise.to(model.device), labels
    images, labels = read_data(options.data, model)
    images, labels, _ = right_ones(model, images, labels, 0, count)
    return images.to(model.device), labels.to(model.device)


class OneMoreClass(nn.Module):
    """A network with one more class, which comes after all the others."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return torch.cat((logits, logits.amin(dim=1, keepdim=True) - 10), dim=1)


def compare_speed(
    name: str,
    attack: Attack,
    model: Classifier,
    images: Tensor,
    labels: Tensor,
    targets: Tensor | None,
    seconds: float,
) -> dict[str, Any]:
    """Print images per second of the batch and of its images one by one, and give the row."""

    def attacked(some: slice, **options: Any) -> AttackResult:
        sent = None if targets is None else targets[some]
        return run_attack(attack, model, images[some], labels[some], targets=sent, **options)

    for count in (len(images), 1):  # to warm up
        attacked(slice(count), batch_size=count, max_forwards=4, max_backwards=4)
    together = attacked(slice(None), batch_size=len(images))
    alone: list[AttackResult] = []
    start = time.perf_counter()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    for row in order.tolist():
        if len(alone) >= 2 and time.perf_counter() - start > seconds:
            break
        alone.append(attacked(slice(row, row + 1), ids=torch.tensor([row])))
    spent, took = sum(map(passes, alone)), sum(result.seconds for result in alone)
    for_all = took / max(spent, 1) * passes(together)
    print(
        f"{name} on {model.name}, {together.fooling_rate:.1%} fooled, "
        f"{passes(together) / len(images):.0f} passes an image\n"
        f"batch of {len(images)}: {together.seconds:.2f} s, "
        f"{len(images) / together.seconds:.3g} images per second\n"
        f"one by one: {took:.2f} s for {len(alone)}, {for_all:.1f} s for all by their passes, "
        f"{len(images) / for_all:.3g} images per second\n"
        f"a batch is {for_all / together.seconds:.1f} times as fast",
        flush=True,
    )
    return {
        "attack": name,
        "model": model.name,
        "images": len(images),
        "no_exit": targets is not None,
        "fooling_rate": together.fooling_rate,
        "passes_per_image": passes(together) / len(images),
        "batch_seconds": together.seconds,
        "images_alone": len(alone),
        "alone_seconds": took,
        "times_as_fast": for_all / together.seconds,
    }


def passes(result: AttackResult) -> int:
    return int(result.forwards.sum() + result.backwards.sum())


def compare_memory(
    attacks: dict[str, Attack], model: Classifier, images: Tensor, labels: Tensor, most: int | None
) -> list[dict[str, Any]]:
    """Print the most memory that each attack holds, over that of a bare pass; a row each."""
    rows: list[dict[str, Any]] = []
    for _ in range(2):  # the first also holds what libraries set up once
        _, base = bare(model, images, Goal(labels), [Pass(len(images))])
    size = "x".join(map(str, images.shape[2:]))
    print(f"{model.name}, batch {len(images)} at {size}: a bare pass holds {base / 2**20:.0f} MiB")
    for name, attack in attacks.items():
        result = run_attack(
            attack,
            model,
            images,
            labels,
            batch_size=len(images),
            max_forwards=most,
            max_backwards=most,
        )
        if result.peak_memory is None:
            held = "memory is measured on a GPU alone"
        else:
            held = f"{result.peak_memory / 2**20:7.0f} MiB, {result.peak_memory / base:.2f} times"
        print(f"{name:34} {held}  ({result.seconds:.1f} s)", flush=True)
        rows.append(
            {
                "attack": name,
                "model": model.name,
                "images": len(images),
                "size": size,
                "most_passes": most,
                "bare_bytes": base,
                "peak_bytes": result.peak_memory,
                "seconds": result.seconds,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--attack", action="append", help="name,option=value,...; may be repeated")
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--memory", action="store_true", help="measure memory, not speed")
    parser.add_argument("--batch-size", type=int, help="64, or 8 with --memory")
    parser.add_argument("--no-exit", action="store_true", help="no image is done early")
    parser.add_argument("--side", type=int, default=224, help="of the noise without --data")
    parser.add_argument("--passes", type=int, help="with --memory, the most of an image")
    parser.add_argument("--seconds", type=float, default=30, help="for the single images")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="results/batching/speed.json or memory.json")
    options = parser.parse_args()
    options.batch_size = options.batch_size or (8 if options.memory else 64)
    if not options.memory and not options.attack:
        parser.error("name the attack: --attack cw_l0,preset=quick")

    model = load_model(options.model)
    assert isinstance(model.net, nn.Module), "a network is needed for backward passes"
    model.net.to(options.device)
    images, labels = read_images(options, model)
    attacks = {text: read_attack(text) for text in options.attack or ()}
    if options.memory:
        rows = compare_memory(attacks or sparse_ones(), model, images, labels, options.passes)
        write_rows(options.out or Path("results/batching/memory.json"), rows, options.device)
        return 0
    targets = None
    if options.no_exit:
        with torch.no_grad(), model.frozen():
            targets = torch.full_like(labels, model(images[:1]).shape[1])
        net = OneMoreClass(model.net)
        model = Classifier(net, mean=model.mean, std=model.std, name=model.name)
    rows = [
        compare_speed(name, attack, model, images, labels, targets, options.seconds)
        for name, attack in attacks.items()
    ]
    write_rows(options.out or Path("results/batching/speed.json"), rows, options.device)
    return 0


def sparse_ones() -> dict[str, Attack]:
    """Every attack of the table that counts elements or pixels and needs gradients."""
    cards = {name: cls.card for name, cls in ATTACKS.items()}
    names = [name for name, card in cards.items() if card.unit and card.access == "gradients"]
    return {name: build_quick(name) for name in names}


if __name__ == "__main__":
    sys.exit(main())
