"""Takes the exam again for stored models, and writes their cards.

    python benchmarks/exam.py --model pinprick:mnist_cnn --data mnist.safetensors [--out DIR]

The model is measured with the settings on its card, those that are younger than the card at their
defaults. Results and exam settings on the card are new, the facts of the training stay. Without
``--out`` the card beside the weights is replaced; with it, the card is written to
``DIR/NAME.json``. ``--data`` is what ``pinprick train`` takes.
"""

import argparse
import json
import platform
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from pinprick import __version__, load_model
from pinprick.files import write_text
from pinprick.train.exam import evaluate
from pinprick.train.material import fingerprint, read_material
from pinprick.train.plan import read_plan
from pinprick.zoo import shipped
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.saved_folder import CARD


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", nargs="+", required=True, help="pinprick:NAME or file:FOLDER")
    parser.add_argument("--data", required=True)
    parser.add_argument("--root", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    material = read_material(options.data, root=options.root)
    for name in options.model:
        folder = folder_of(name)
        card = read_card((folder / CARD).read_text(encoding="utf-8"), str(folder / CARD))
        model = load_model(name)
        assert isinstance(model.net, nn.Module)
        model.net.to(options.device)
        exam_ = read_plan(card.facts["training"]).exam
        results = evaluate(exam_, model, material.test, seed=card.facts["seed"])
        results |= {"tested_on": fingerprint(material.test)}
        card = examined(card, results, asdict(exam_), device_name(options.device))
        path = folder / CARD if options.out is None else options.out / f"{folder.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, card.as_json() + "\n")
        print(f"{name}: {json.dumps(results)}", flush=True)


def folder_of(name: str) -> Path:
    """Where the weights and the card of a model lie."""
    source, _, rest = name.partition(":")
    folder = shipped.FOLDER / rest if source == "pinprick" else Path(rest)
    if source not in ("pinprick", "file") or not (folder / CARD).is_file():
        raise SystemExit(f"{name} has no {CARD}; give pinprick:NAME or file:FOLDER")
    return folder


def examined(
    card: ModelCard, results: dict[str, Any], exam: dict[str, Any], device: str
) -> ModelCard:
    """The card with new results, and with the settings and the surroundings they came from."""
    facts = {**card.facts, **results}
    facts["training"] = {**card.facts["training"], "exam": exam}
    facts["examined"] = {
        "device": device,
        "pinprick": __version__,
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "python": platform.python_version(),
    }
    return replace(card, facts=facts)


def device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


if __name__ == "__main__":
    main()
