"""Takes the exam again for stored models, and writes their cards anew.

    python benchmarks/cards.py exam --model pinprick:mnist_cnn --data mnist.safetensors [--out DIR]

``exam`` measures the model with the settings on its card, those that are younger than the card at
their defaults, and writes the card again: results and exam settings are new, the facts of the
training stay. Without ``--out`` the card beside the weights is replaced; with it, the card is
written to ``DIR/NAME.json``. ``--data`` is what ``pinprick train`` takes.
"""

import argparse
import platform
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from pinprick import __version__, load_model
from pinprick.aside import aside
from pinprick.train.exam import take_exam
from pinprick.train.material import fingerprint, read_material
from pinprick.train.plan import read_plan
from pinprick.zoo import shipped
from pinprick.zoo.card import ModelCard, read_card
from pinprick.zoo.facts import linf_attack, percent
from pinprick.zoo.save import CARD


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    exam = commands.add_parser("exam", help="measure models again and write their cards")
    exam.add_argument("--model", nargs="+", required=True, help="pinprick:NAME or file:FOLDER")
    exam.add_argument("--data", required=True)
    exam.add_argument("--root", type=Path)
    exam.add_argument("--out", type=Path)
    exam.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    material = read_material(options.data, root=options.root)
    for name in options.model:
        folder = folder_of(name)
        card = read_card((folder / CARD).read_text(encoding="utf-8"), str(folder / CARD))
        model = load_model(name)
        assert isinstance(model.net, nn.Module)
        model.net.to(options.device)
        exam_ = read_plan(card.facts["training"]).exam
        results = take_exam(exam_, model, material.test, seed=card.facts["seed"])
        results |= {"tested_on": fingerprint(material.test)}
        card = examined(card, results, asdict(exam_), device_name(options.device))
        path = folder / CARD if options.out is None else options.out / f"{folder.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside(path) as new:
            new.write_text(card.as_json() + "\n", encoding="utf-8")
        few = card.facts["l0_elements"]
        print(
            f"{name}: {percent(card.facts['accuracy'])}, "
            f"{linf_attack(card.facts['pgd'])} {percent(card.facts['pgd']['accuracy'])}, "
            f"strong {card.facts['strong_pgd']}, l0 {few}",
            flush=True,
        )


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
