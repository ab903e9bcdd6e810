"""What a network withstands: few changed values, chosen by gradients and by scores alone.

    python benchmarks/withstand.py --model pinprick:mnist_cnn --data IMAGES [--images 300]
        [--k 10 24] [--effort fast] [--queries 1000] [--unit elements]

The share of the first ``--images`` that are right and stay right with ``--k`` units changed: under
Pinprick, under Sparse-RS at each k, and under both, where either counts that fools. The exam of
``pinprick train`` asks the second about what the first left; here each is run on all images, so
that the two can be compared. Where the second fools more than the first, the network hides its
gradient. ``--data`` is as in ``sparsity.py``.
"""

import argparse
from pathlib import Path

import torch
from sparsity import read_data
from torch import nn

from pinprick import build, load_model
from pinprick.robust import stay_correct
from pinprick.types import Mask


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--k", type=int, nargs="+", default=[10, 24])
    parser.add_argument("--effort", default="fast")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--unit", default="elements", choices=("elements", "pixels"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    model = load_model(options.model)
    if isinstance(model.net, nn.Module):
        model.net.to(options.device)
    images, labels = (given[: options.images] for given in read_data(options.data, model))

    def left(budget: int, **settings: object) -> Mask:
        """Which images stay correct with so many units changed."""
        attack = build({"unit": options.unit, **settings})
        return stay_correct(attack, model, images, labels, k=budget, unit=options.unit)

    by_gradients = [left(k, name="pinprick", effort=options.effort, stop_at=k) for k in options.k]
    by_scores = [left(k, name="sparse_rs", k=k, queries=options.queries) for k in options.k]
    both = [one & other for one, other in zip(by_gradients, by_scores, strict=True)]
    print(f"{options.model}, {len(images)} images, {options.k} {options.unit} changed")
    for name, masks in (("Pinprick", by_gradients), ("Sparse-RS", by_scores), ("both", both)):
        print(f"{name:10}", *(f"{mask.double().mean():.1%}" for mask in masks), flush=True)


if __name__ == "__main__":
    main()
