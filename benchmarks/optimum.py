"""Prove the fewest elements that fool a small network, and how near attacks come to them.

    python benchmarks/optimum.py --hidden 32 --root DATA [--stop-after 170]

Trains a network 784-HIDDEN-10 on MNIST, once: the same seed gives the same weights on one machine.
Attacks the first images of the test set that it gets right. Then proves image by image, starting
from the result of Pinprick. Each image is one line of results/optimum/mnist_HIDDEN.jsonl, with the
units that each attack needs. Images that have their line are skipped, so the same command goes on
where it was stopped.
"""

import argparse
import json
import time
from pathlib import Path

import torch
from case import read_attack, right_ones
from torch import nn
from torch.nn import functional as F
from write_rows import surroundings

from pinprick import AttackResult, Classifier, load_data, load_result, run_attack, save_result
from pinprick.bounds.exact import prove

ATTACKS = (
    "pinprick",
    "pinprick,effort=fast",
    "sigma_zero,steps=1000",
    "fmn,steps=1000",
    "pdpgd,prox=l0_exact",
    "homotopy",
    "greedy",
    "vfga",
    "jsma",
    "sparsefool",
)
EPOCHS, BATCH, RATE = 6, 128, 4e-3


def train(hidden: int, root: Path | None) -> nn.Sequential:
    """The network, trained with Adam and a one-cycle schedule."""
    torch.manual_seed(0)
    data = load_data("mnist", root=root, split="train")
    images, labels = data.images(), data.labels
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    optimizer = torch.optim.Adam(net.parameters())
    steps = len(images) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=EPOCHS * steps)
    for _ in range(EPOCHS):
        order = torch.randperm(len(images))[: steps * BATCH].view(steps, BATCH)
        for rows in order:
            loss = F.cross_entropy(net(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net


def load_or_train(hidden: int, root: Path | None, folder: Path) -> Classifier:
    path = folder / f"mnist_{hidden}.pt"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(train(hidden, root), path)
    net = torch.load(path, weights_only=False)
    return Classifier(net.eval(), name=f"MNIST 784-{hidden}-10")


def attacked(model: Classifier, spec: str, options: argparse.Namespace) -> AttackResult:
    """The result of an attack on the images, made once."""
    path = options.work / f"mnist_{options.hidden}-{spec}.safetensors"
    if not path.exists():
        data = load_data("mnist", root=options.root)
        images, labels, _ = right_ones(model, data.images(), data.labels, 0, options.images)
        save_result(run_attack(read_attack(spec), model, images, labels), path)
    return load_result(path)


def accuracy(model: Classifier, root: Path | None) -> float:
    data = load_data("mnist", root=root)
    with torch.no_grad():
        return (model(data.images()).argmax(dim=1) == data.labels).double().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit per image")
    parser.add_argument("--stop-after", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--root", type=Path, help="the folder of datasets")
    parser.add_argument("--work", type=Path, default=Path("pinprick-out/optimum"))
    parser.add_argument("--out", type=Path, help="results/optimum/mnist_HIDDEN.jsonl by default")
    options = parser.parse_args()
    start = time.monotonic()
    out = options.out or Path(f"results/optimum/mnist_{options.hidden}.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    done = (
        {json.loads(line)["image"] for line in out.read_text().splitlines()} if out.exists() else ()
    )
    model = load_or_train(options.hidden, options.root, options.work)
    about = {
        "model": model.name,
        "weights": model.digest[:12],
        "accuracy": accuracy(model, options.root),
        "unit": "elements",
        "goal": "untargeted",
        "time_limit": options.seconds,
        "n": options.images,
        **surroundings("cpu"),
    }
    results = {}
    for spec in ATTACKS:
        if time.monotonic() - start > options.stop_after:
            return
        results[spec] = attacked(model, spec, options)
    for image in range(options.images):
        if image in done:
            continue
        if time.monotonic() - start > options.stop_after:
            return
        proof = prove(results["pinprick"][image], model, seconds=options.seconds)
        row = {
            "image": image,
            "lower": proof.lower.item(),
            "upper": proof.upper.item(),
            "status": proof.status[0],
            "slack": proof.slack.item(),
            "seconds": round(proof.seconds.item(), 2),
            "needed": {spec: each.needed_elements[image].item() for spec, each in results.items()},
            "passes": {
                spec: int(each.forwards[image] + each.backwards[image])
                for spec, each in results.items()
            },
        }
        with out.open("a") as file:
            file.write(json.dumps({**row, **about}) + "\n")
        print(image, row["status"], row["lower"], row["upper"], row["seconds"], flush=True)


if __name__ == "__main__":
    main()
