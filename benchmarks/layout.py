"""How the changes of each attack are laid out, in the terms of papers on structured attacks.

    python benchmarks/layout.py --store results/leaderboard --model pinprick:cifar10_resnet20 \
        --out results/layout/cifar10_resnet20.json

Rebuilds the adversarial images of a store and counts clusters of changed pixels, windows of 8 x 8
pixels that hold one, and the overlap with the saliency map (``pinprick.explain.noise.structure``).
Images are as the attacks returned them, without polishing. Numbers are means over the images that
an attack fools. Where an attack ran once per unit, the run that counts pixels is used.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from write_rows import write_rows

from pinprick import Classifier, Goal, load_model
from pinprick.bench.rows import rebuild_images
from pinprick.bench.store import Store, existing_store
from pinprick.data.select import load_subset
from pinprick.data.subset import parse
from pinprick.explain.noise.structure import Structure, measure_structure
from pinprick.problem import Problem
from pinprick.random import Streams
from pinprick.report.read_runs import choose_cells
from pinprick.types import Images

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    model = load_model(options.model)
    rows = list(measure(existing_store(options.store), model, options.model))
    write_rows(options.out, sorted(rows, key=lambda row: row["windows"]), "cpu")


def measure(store: Store, model: Classifier, name: str) -> Iterator[Row]:
    """One row per attack of the store on this model, untargeted."""
    cells = choose_cells(store.rows_and_cells()[1])
    named = {row["cell"]: row["name"].removesuffix(" unit=pixels") for row in cells.to_dicts()}
    images: dict[str, Images] = {}
    for key, title in sorted(named.items(), key=lambda each: each[1]):
        cell, _, table = store.read(key)
        if (cell.model, cell.goal) != (name, "untargeted") or title.endswith(" unit=elements"):
            continue
        if cell.data not in images:
            images[cell.data] = load_subset(parse(cell.data)).for_model(model).images(model)
        adv, rebuilt = rebuild_images(table, images[cell.data][cell.first : cell.last])
        known = {one: table.column(one).to_pylist() for one in ("success", "correct", "skipped")}
        fooled = torch.tensor(known["success"]) & torch.tensor(known["correct"]) & rebuilt
        rows = fooled.nonzero().squeeze(1)
        if len(rows) < len(known["success"]) // 20:
            continue  # too few for a mean
        some = table.take(rows.tolist())
        labels, rivals = (
            torch.tensor(some.column(one).to_pylist()) for one in ("label", "adversarial_class")
        )
        clean = images[cell.data][cell.first : cell.last][rows]
        found = layout(model, clean, adv[rows], labels, rivals)
        yield {
            "attack": title,
            "settings": cell.attack,
            "model": name,
            "data": cell.data,
            "cell": key,
            "n": len(rows),
            "correct": sum(known["correct"]),
            "pixels": (adv[rows] != clean).any(dim=1).flatten(1).sum(dim=1).double().mean().item(),
            "clusters": found.clusters.double().mean().item(),
            "windows": found.windows.double().mean().item(),
            "saliency_overlap": found.saliency_overlap.nanmean().item(),
        }


def layout(
    model: Classifier,
    clean: Images,
    adv: Images,
    labels: torch.Tensor,
    rivals: torch.Tensor,
) -> Structure:
    """The layout of each change."""
    with model.frozen():
        streams = Streams(0, torch.arange(len(clean)))
        problem = Problem(model, clean, Goal(labels), streams)
        return measure_structure(problem, adv, rivals, saliency=True, block=50)


if __name__ == "__main__":
    main()
