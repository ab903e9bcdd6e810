"""Attack against attack on the same model and images, in one run.

    python benchmarks/sparsity.py --model efficientnet_lite0 --data PHOTOS --out OUT \
        --attack pinprick,effort=fast --attack pinprick --attack sigma_zero

``--data`` is a folder of photographs with the NIPS-2017 ``images.csv`` (labels from 1), or a
``.safetensors`` file with 8-bit ``images`` (image, channel, height, width) and ``labels``, or the
name of a dataset of small images, as ``pinprick explain --data`` takes it. Only images that the
model gets right are attacked: the first ``--images`` of them after ``--skip``.

Writes ``sparsity.json`` (a row an attack, and what each image needed) and ``sparsity.png``
(elements against passes), and prints the table.
"""

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor

import pinprick
from pinprick import AttackResult, Classifier, build, describe, least_likely, load_model, run_attack
from pinprick.data.select import load_subset
from pinprick.data.subset import parse


def read_data(path: Path, model: Classifier) -> tuple[Tensor, Tensor]:
    if path.is_dir():
        rows = list(csv.DictReader((path / "images.csv").open()))
        pictures = [Image.open(path / "images" / f"{row['ImageId']}.png") for row in rows]
        images = torch.stack([model.prepare(picture.convert("RGB")) for picture in pictures])
        return images, torch.tensor([int(row["TrueLabel"]) - 1 for row in rows])
    if not path.exists():
        data = load_subset(parse(str(path)))
        return data.images(), data.labels
    tensors = load_file(path)
    return tensors["images"].float() / 255, tensors["labels"].long()


def right_ones(
    model: Classifier, images: Tensor, labels: Tensor, skip: int, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Images that the model gets right, their labels, and the classes it believes in least."""
    images, labels = images[skip:], labels[skip:]
    with torch.no_grad(), model.frozen():
        pieces = [model(piece.to(model.device)).cpu() for piece in images.split(64)]
    logits = torch.cat(pieces)
    chosen = (logits.argmax(dim=1) == labels).nonzero().squeeze(1)[:count]
    return images[chosen], labels[chosen], least_likely(logits[chosen], labels[chosen])


def read_attack(text: str) -> pinprick.Attack:
    name, *options = text.split(",")
    return build({"name": name, **dict(option.split("=", 1) for option in options)})


def row_of(text: str, attack: pinprick.Attack, result: AttackResult) -> dict[str, Any]:
    elements, pixels = result.needed_elements, result.needed_pixels
    return {
        "attack": text,
        "settings": describe(attack),
        "images": len(result),
        "fooled": result.fooling_rate,
        "mean_elements": elements.mean().item(),
        "median_elements": elements.median().item(),
        "mean_pixels": pixels.mean().item(),
        "median_pixels": pixels.median().item(),
        "forwards": result.forwards.double().mean().item(),
        "backwards": result.backwards.double().mean().item(),
        "most_forwards": int(result.forwards.max()),
        "most_backwards": int(result.backwards.max()),
        "survives_8bit": result.survives_8bit.double().mean().item(),
        "seconds": result.seconds,
        "peak_memory": result.peak_memory,
        "elements": elements.tolist(),
    }


def show(rows: list[dict[str, Any]]) -> None:
    base = next((row for row in rows if row["attack"] == "sigma_zero"), None)
    print(f"{'attack':34} fooled  elements (median)   pixels  forw.  backw.  seconds  ratio")
    for row in rows:
        ratio = f"{row['mean_elements'] / base['mean_elements']:.3f}" if base else ""
        print(
            f"{row['attack']:34} {row['fooled']:6.1%}  {row['mean_elements']:8.2f} "
            f"({row['median_elements']:6.1f})  {row['mean_pixels']:7.2f}  {row['forwards']:5.0f}  "
            f"{row['backwards']:5.0f}  {row['seconds']:7.1f}  {ratio}",
            flush=True,
        )


def draw(rows: list[dict[str, Any]], title: str, path: Path) -> None:
    from matplotlib.figure import Figure

    rows = [row for row in rows if 0 < row["mean_elements"] < torch.inf]  # all images fooled
    if not rows:
        return
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(row["settings"]["name"] for row in rows):
        of_name = [row for row in rows if row["settings"]["name"] == name]
        of_name.sort(key=lambda row: float(row["forwards"]))
        forwards = [row["forwards"] for row in of_name]
        axes.plot(forwards, [row["mean_elements"] for row in of_name], "o-", label=name)
    axes.set(xscale="log", yscale="log", title=title)
    axes.set(xlabel="forward passes an image", ylabel="mean elements needed")
    axes.legend()
    figure.savefig(path, dpi=150)


def run_parser(about: str | None) -> argparse.ArgumentParser:
    """The options that say which model, images and attacks, and where to write."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0] if about else None)
    parser.add_argument("--model", default="efficientnet_lite0")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--attack", action="append", required=True)
    parser.add_argument("--images", type=int, default=128)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--least-likely", action="store_true", help="attack the least likely class")
    parser.add_argument("--out", type=Path, required=True)
    return parser


def open_run(
    options: argparse.Namespace,
) -> tuple[Classifier, Tensor, Tensor, Tensor | None, dict[str, Any]]:
    """Model, images, labels, targets if any, and the circumstances; makes the folder."""
    model = load_model(options.model)
    if isinstance(model.net, torch.nn.Module):
        model.net.to(options.device)
    images, labels = read_data(options.data, model)
    images, labels, targets = right_ones(model, images, labels, options.skip, options.images)
    options.out.mkdir(parents=True, exist_ok=True)
    about = {
        "model": options.model,
        "data": options.data.name,
        "goal": "least likely" if options.least_likely else "untargeted",
        "skip": options.skip,
        "images": len(images),
        "torch": torch.__version__,
        "pinprick": pinprick.__version__,
        "device": torch.cuda.get_device_name() if options.device == "cuda" else options.device,
    }
    return model, images, labels, targets if options.least_likely else None, about


def main() -> None:
    options = run_parser(__doc__).parse_args()
    model, images, labels, targets, about = open_run(options)
    rows: list[dict[str, Any]] = []
    for text in options.attack:
        attack = read_attack(text)
        result = run_attack(
            attack,
            model,
            images,
            labels,
            targets=targets,
            batch_size=options.batch_size,
        )
        rows.append(row_of(text, attack, result))
        (options.out / "sparsity.json").write_text(json.dumps({**about, "rows": rows}, indent=1))
    show(rows)
    draw(rows, f"{options.model}, {len(images)} images", options.out / "sparsity.png")


if __name__ == "__main__":
    main()
