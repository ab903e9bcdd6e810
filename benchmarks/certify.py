"""Certify that few changed pixels fool no image of a shipped network, or find some that do.

    python benchmarks/certify.py --model pinprick:fashion_cnn --data SET[IMAGES] -t 2

Images that the model gets wrong are left out. First an attack gives upper bounds. Then all images
are certified for 1 to t pixels, within --seconds. Each image and number of pixels is one line of
results/certified/NAME.jsonl, written as soon as it is decided. What has its line is not written
again, and images with nothing left to decide are skipped, so the same command goes on where it was
stopped.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
from case import read_attack
from write_rows import surroundings

from pinprick import Classifier, load_model, load_subset, run_attack
from pinprick.bounds.certify import Decision, certify
from pinprick.data.subset import parse
from pinprick.metrics.unit import finite_count


def right_images(
    model: Classifier, options: argparse.Namespace
) -> tuple[torch.Tensor, torch.Tensor, list[int], int]:
    """The images that the model gets right, their labels, their numbers, and how many there are."""
    data = load_subset(parse(options.data), root=options.root)
    images, labels = data.images().to(options.device), data.labels.to(options.device)
    with torch.no_grad(), model.frozen():
        right = (model(images).argmax(dim=1) == labels).nonzero().squeeze(1)
    return images[right], labels[right], right.tolist(), len(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--model", default="pinprick:fashion_cnn")
    parser.add_argument("--data", default="fashion_mnist/test[0:100]", metavar="SET[IMAGES]")
    parser.add_argument("--only", type=int, nargs="+", metavar="INDEX", help="images to try now")
    parser.add_argument("--root", type=Path, help="the folder of datasets")
    parser.add_argument("--attack", default="pinprick,unit=pixels")
    parser.add_argument("-t", type=int, default=2, help="most pixels")
    parser.add_argument("--seconds", type=float, default=600.0, help="for all images together")
    parser.add_argument("--nodes", type=int, default=100_000_000, help="per image and t")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("results/certified"))
    options = parser.parse_args()
    model = load_model(options.model)
    assert isinstance(model.net, torch.nn.Module)
    model.net.to(options.device)
    path = options.out / f"{options.model.split(':')[-1]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    written = {(row["image"], row["t"]): row["outcome"] for row in map(json.loads, lines)}
    over = {image for (image, t), word in written.items() if word == "refuted" or t >= options.t}
    images, labels, numbers, total = right_images(model, options)
    wanted = set(numbers if options.only is None else options.only) - over
    todo = [row for row, number in enumerate(numbers) if number in wanted]
    if not todo:
        return
    result = run_attack(read_attack(options.attack), model, images[todo], labels[todo])
    needed = [finite_count(count) for count in result.needed_pixels.tolist()]
    about = {
        "model": options.model,
        "data": options.data,
        "images": total,
        "correct": len(numbers),
        "unit": "pixels",
        "most": options.t,
        "attack": options.attack,
        "time_limit": options.seconds,
        "together": len(todo),
        **surroundings(options.device),
    }
    with path.open("a") as file:

        def write(decision: Decision) -> None:
            number = numbers[todo[decision.image]]
            if (number, decision.t) not in written:
                row = {
                    "image": number,
                    "t": decision.t,
                    "outcome": "certified" if decision.certified else "refuted",
                    "attack_needs": needed[decision.image],
                    "nodes": decision.nodes,
                    "seconds": round(decision.seconds, 3),
                }
                file.write(json.dumps({**row, **about}) + "\n")
                file.flush()
            print(decision, file=sys.stderr)

        found = certify(
            model,
            images[todo],
            labels[todo],
            t=options.t,
            attacked=result,
            seconds=options.seconds,
            nodes=options.nodes,
            decided=write,
        )
    counts = {words: found.words.count(words) for words in sorted(set(found.words))}
    print(f"{counts}, {sum(found.seconds.tolist()):.1f} s, nodes {int(found.nodes.sum())}")


if __name__ == "__main__":
    main()
