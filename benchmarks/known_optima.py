"""Train the small networks that come with the package, and prove the fewest units of images.

    python benchmarks/known_optima.py digits
    python benchmarks/known_optima.py tinted_digits
    python benchmarks/known_optima.py fashion --root DATA

Writes src/pinprick/bounds/optima/NAME.safetensors. The digits are those of scikit-learn, the tinted
ones have random colours for digit and background. Fashion is attacked on ``fashion_sample``. One
element in ten is random during training, so that fooling takes more than one or two. Images that
are not proved within --seconds are left out and counted in the file.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from write_rows import surroundings

from pinprick import Classifier, least_likely, load_data, run_attack
from pinprick.attacks import Pinprick
from pinprick.bounds.exact import prove
from pinprick.bounds.known_optima import FOLDER, fully_connected, save_known
from pinprick.bounds.proof import Proof
from pinprick.metrics.unit import Unit

Pool = tuple[Tensor, Tensor]
HELD_OUT = 397  # digits that are not trained on
NOISE = 0.1  # share of elements that are 0 or 1 at random during training


def digits(root: Path | None) -> tuple[Pool, Pool]:
    found = load_digits()
    images = torch.tensor(found.images).float()[:, None] / 16
    images, labels = (images * 255).round() / 255, torch.tensor(found.target).long()
    return (images[:-HELD_OUT], labels[:-HELD_OUT]), (images[-HELD_OUT:], labels[-HELD_OUT:])


def tinted_digits(root: Path | None) -> tuple[Pool, Pool]:
    (images, labels), held = digits(root)
    many = images.repeat(8, 1, 1, 1), labels.repeat(8)
    return (tint(many[0], seed=1), many[1]), (tint(held[0], seed=2), held[1])


def tint(images: Tensor, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    bright = 0.5 + 0.5 * torch.rand(len(images), 3, 1, 1, generator=generator)
    dark = 0.3 * torch.rand(len(images), 3, 1, 1, generator=generator)
    return ((dark + (bright - dark) * images) * 255).round() / 255


def fashion(root: Path | None) -> tuple[Pool, Pool]:
    train, sample = (
        load_data("fashion_mnist", root=root, split="train"),
        load_data("fashion_sample"),
    )
    return (train.images(), train.labels), (sample.images(), sample.labels)


GOALS = ("untargeted", "targeted")
Case = tuple[str, Unit]
Setting = tuple[Callable[[Path | None], tuple[Pool, Pool]], list[int], int, int, list[Case]]
NETWORKS: dict[str, Setting] = {  # images, widths, epochs of training, images to prove, cases
    "digits": (digits, [64, 16, 16, 10], 60, 24, [(goal, "elements") for goal in GOALS]),
    "tinted_digits": (
        tinted_digits,
        [192, 16, 10],
        12,
        24,
        [(goal, unit) for goal in GOALS for unit in ("elements", "pixels")],
    ),
    "fashion": (fashion, [784, 24, 10], 3, 16, [("untargeted", "elements")]),
}


def train(widths: list[int], images: Tensor, labels: Tensor, epochs: int) -> nn.Sequential:
    """Trained with Adam, then rounded to float16."""
    torch.manual_seed(0)
    net = fully_connected(widths)
    steps = len(images) // 64
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=epochs * steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(images))[: steps * 64].view(steps, 64):
            random = (torch.rand_like(images[rows]) < 0.5).float()
            noisy = torch.where(torch.rand_like(random) < NOISE, random, images[rows])
            loss = F.cross_entropy(net(noisy), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.half().float().eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--root", type=Path, help="the folder of datasets")
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit per image")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    pools, widths, epochs, count, cases = NETWORKS[options.network]
    (seen, seen_labels), (images, labels) = pools(options.root)
    net = train(widths, seen, seen_labels, epochs)
    model = Classifier(net, name=options.network)
    with torch.no_grad():
        logits = net(images)
    right = logits.argmax(dim=1) == labels
    print(f"accuracy {right.double().mean():.3f} on {len(images)} images", flush=True)
    rows = right.nonzero().squeeze(1)[: count + 8]
    images, labels = images[rows], labels[rows]
    proofs: dict[Case, Proof] = {}
    for goal, unit in cases:
        targets = least_likely(logits[rows], labels) if goal == "targeted" else None
        attack = Pinprick(effort="thorough", unit=unit)
        result = run_attack(attack, model, images, labels, targets=targets)
        proof = prove(result, model, unit=unit, seconds=options.seconds)
        proofs[goal, unit] = proof
        longest = proof.seconds.max().item()
        print(goal, unit, proof, f"better {int(proof.better.sum())}, longest {longest:.1f} s")
        print(proof.lower.int().tolist(), proof.upper.int().tolist(), flush=True)
    proved = torch.stack([proof.proved for proof in proofs.values()]).all(dim=0)
    chosen = proved.nonzero().squeeze(1)[:count]
    about = {
        "accuracy": right.double().mean().item(),
        "left_out": int((~proved[: int(chosen.max()) + 1]).sum()),
        "slack": max(proof.slack.max().item() for proof in proofs.values()),
        **surroundings("cpu"),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    some = {case: proof[chosen] for case, proof in proofs.items()}
    save_known(options.out / f"{options.network}.safetensors", net, widths, some, about)
    print(f"left out {about['left_out']}, saved {len(chosen)} images", flush=True)


if __name__ == "__main__":
    main()
