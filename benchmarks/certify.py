"""Certify that few changed pixels fool no image of a shipped network, or find some that do.

    python benchmarks/certify.py --model pinprick:fashion_cnn --data SET[IMAGES] -t 2

Images that the model gets wrong are left out. First an attack gives upper bounds. Then --chunk
images at a time are certified for 1 to t pixels, within --seconds per chunk. Each image is one line
of results/certified/NAME_T.jsonl. Images that have their line are skipped, so the same command goes
on where it was stopped.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from case import read_attack
from write_rows import surroundings

from pinprick import AttackResult, Classifier, load_model, load_subset, run_attack
from pinprick.bounds.certify import Certificate, certify
from pinprick.data.subset import parse


def right_images(
    model: Classifier, options: argparse.Namespace
) -> tuple[torch.Tensor, torch.Tensor, list[int]]:
    """The images that the model gets right, their labels, and their indices in the dataset."""
    data = load_subset(parse(options.data), root=options.root)
    images, labels = data.images().to(options.device), data.labels.to(options.device)
    with torch.no_grad(), model.frozen():
        right = (model(images).argmax(dim=1) == labels).nonzero().squeeze(1)
    return images[right], labels[right], [int(row) for row in right]


def rows_of(found: Certificate, result: AttackResult, numbers: list[int]) -> list[dict[str, Any]]:
    """One row per image."""
    return [
        {
            "image": number,
            "certified": _finite(lower - 1),
            "outcome": words,
            "fewest_known": _finite(upper),
            "attack_needs": _finite(needed),
            "nodes": nodes,
            "seconds": round(seconds, 3),
        }
        for number, lower, upper, needed, nodes, words, seconds in zip(
            numbers,
            found.lower.tolist(),
            found.upper.tolist(),
            result.needed_pixels.tolist(),
            found.nodes.tolist(),
            found.words,
            found.seconds.tolist(),
            strict=True,
        )
    ]


def _finite(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="pinprick:fashion_cnn")
    parser.add_argument("--data", default="fashion_mnist/test[0:100]", metavar="SET[IMAGES]")
    parser.add_argument("--root", type=Path, help="the folder of datasets")
    parser.add_argument("--attack", default="pinprick,unit=pixels")
    parser.add_argument("-t", type=int, default=2, help="most pixels")
    parser.add_argument("--chunk", type=int, default=100, help="images that are certified together")
    parser.add_argument("--seconds", type=float, default=600.0, help="per chunk")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="per image and t")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/certified"))
    options = parser.parse_args()
    model = load_model(options.model)
    assert isinstance(model.net, torch.nn.Module)
    model.net.to(options.device)
    path = options.out / f"{options.model.split(':')[-1]}_{options.t}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {json.loads(line)["image"] for line in lines}
    images, labels, numbers = right_images(model, options)
    about = {
        "model": options.model,
        "data": options.data,
        "n": len(images),
        "unit": "pixels",
        "t": options.t,
        "attack": options.attack,
        "time_limit": options.seconds,
        **surroundings(options.device),
    }
    todo = [row for row, number in enumerate(numbers) if number not in done]
    for start in range(0, len(todo), options.chunk):
        rows = todo[start : start + options.chunk]
        result = run_attack(read_attack(options.attack), model, images[rows], labels[rows])
        found = certify(
            model,
            images[rows],
            labels[rows],
            t=options.t,
            attacked=result,
            seconds=options.seconds,
            nodes=options.nodes,
            progress=lambda t, decided, total: print(
                f"\rt = {t}: {decided} of {total} decided", end="", file=sys.stderr
            ),
        )
        new = rows_of(found, result, [numbers[row] for row in rows])
        about["chunk"] = len(rows)
        with path.open("a") as file:
            file.writelines(json.dumps({**row, **about}) + "\n" for row in new)
        counts = {words: found.words.count(words) for words in sorted(set(found.words))}
        print(f"{counts}, {sum(found.seconds.tolist()):.1f} s", flush=True)


if __name__ == "__main__":
    main()
