"""Certified floor and attacked ceiling of a network, per image: how many pixels fool it?

    python benchmarks/floor_and_ceiling.py --model pinprick:mnist_cnn_ablation --data SET[IMAGES]

The attack gives an upper bound. ``certify`` gives a lower bound for up to -t pixels. A network that
votes is certified by its votes, and ``certify_smoothed`` also gives the radius of its smoothed
classifier, which is another classifier. Each image of the range is one line of
results/floors/NAME.jsonl, also those that the network gets wrong.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch
from case import read_attack
from write_rows import surroundings

from pinprick import certify, certify_smoothed, load_model, load_subset, run_attack
from pinprick.data.subset import parse
from pinprick.files import write_text
from pinprick.zoo.voting import VotingNetwork


def finite(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, metavar="SET[IMAGES]")
    parser.add_argument("--root", type=Path, help="the folder of datasets")
    parser.add_argument("--attack", default="auto")
    parser.add_argument("-t", type=int, default=20, help="most pixels to certify")
    parser.add_argument("--seconds", type=float, default=600.0, help="for certificates")
    parser.add_argument("--draws", type=int, default=10_000, help="of the smoothed classifier")
    parser.add_argument("--alpha", type=float, default=0.001)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/floors"))
    options = parser.parse_args()
    model = load_model(options.model)
    assert isinstance(model.net, torch.nn.Module)
    model.net.to(options.device)
    data = load_subset(parse(options.data), root=options.root)
    images, labels = data.images(model).to(options.device), data.labels.to(options.device)
    attack = read_attack(options.attack)
    result = run_attack(attack, model, images, labels)
    found = certify(model, images, labels, t=options.t, attacked=result, seconds=options.seconds)
    columns: dict[str, list[Any]] = {
        "image": data.indices.tolist(),
        "label": labels.tolist(),
        "attack_needs": [finite(each) for each in result.needed_pixels.tolist()],
        "beaten_by_scores": result.beaten_by_scores.tolist(),
        "certified": [finite(each) for each in found.certified.tolist()],
        "fewest_known": [finite(each) for each in found.upper.tolist()],
        "outcome": list(found.words),
    }
    about: dict[str, Any] = {
        "model": options.model,
        "data": options.data,
        "n": len(images),
        "unit": "pixels",
        "t": options.t,
        "attack": options.attack,
        "revision": attack.facts().revision,
        "attack_seconds": round(result.seconds, 1),
        "certify_seconds": round(sum(found.seconds.tolist()), 1),
    }
    if isinstance(model.net, VotingNetwork):
        smooth = certify_smoothed(
            model,
            images,
            labels,
            draws=options.draws,
            alpha=options.alpha,
            ids=data.indices.to(options.device),
        )
        columns |= {
            "smoothed": smooth.certified.tolist(),
            "smoothed_outcome": list(smooth.words),
            "top": smooth.top.tolist(),
            "hits": smooth.hits.tolist(),
        }
        about |= {
            "kept": smooth.kept,
            "votes": model.net.ablation.draws,
            "draws": smooth.draws,
            "alpha": smooth.alpha,
            "smoothed_seconds": round(smooth.seconds, 1),
        }
    about |= surroundings(options.device)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path = options.out / f"{Path(options.model.partition(':')[2]).name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps({**row, **about}) + "\n" for row in rows))
    needed = sorted(each for each in columns["attack_needs"] if each is not None)
    print(f"{options.model}: attack needs {needed}")
    print(f"certified {sorted(each for each in columns['certified'] if each is not None)}")
    print(f"smoothed {sorted(columns.get('smoothed', []))}")


if __name__ == "__main__":
    main()
